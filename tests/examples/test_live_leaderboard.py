"""A leaderboard that is killed at each step is rebuilt from its compacted topic, and counts each score once."""

from __future__ import annotations

import importlib
import json
import random
from collections import Counter
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import barnabas
from tests.examples.stage import EXAMPLES, KILLED, PATIENCE_SECONDS, Stage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(5 * PATIENCE_SECONDS)]

PARTITIONS = 3
PROGRAM = """
import json
def shown(board):
    done = sum(board.positions.values())
    if done == {deadly}:
        if {flushed}:
            [each.flush(30) for each in producers]
        die()
    if done == {count}:
        print(json.dumps([board.points, board.best(3)]), "done", file=book)
producers = []
real = example.Producer
def kept(settings):
    producers.append(real(settings))
    return producers[-1]
example.Producer = kept
example.play({bootstrap!r}, {scores!r}, {totals!r}, shown, enough)
"""


@pytest.fixture
def live_leaderboard(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("live_leaderboard")


def games(count: int, seed: int) -> list[tuple[str, int]]:
    chance = random.Random(seed)
    return [(f"player-{chance.randrange(9)}", chance.randrange(1, 30)) for _ in range(count)]


def topic_of(bootstrap: str, topic: str, played: list[tuple[str, int]]) -> str:
    """Create a topic with these scores; return its name."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
        created.result(PATIENCE_SECONDS)
    send(bootstrap, topic, played)
    return topic


def send(bootstrap: str, topic: str, played: list[tuple[str, int]]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for player, points in played:
        producer.produce(topic, str(points), player)
    assert producer.flush(PATIENCE_SECONDS) == 0


def points_of(played: list[tuple[str, int]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for player, points in played:
        found[player] += points
    return found


def best(found: Counter[str]) -> list[list[Any]]:
    return [[player, points] for player, points in sorted(found.items(), key=lambda each: (-each[1], each[0]))[:3]]


def test_kills_leave_the_same_board(stage: Stage) -> None:
    played = games(60, 1)
    scores, totals = topic_of(stage.bootstrap, f"scores-{stage.name}", played), f"totals-{stage.name}"
    for deadly, flushed in ((20, True), (41, False)):
        program = PROGRAM.format(
            deadly=deadly, flushed=flushed, count=len(played), bootstrap=stage.bootstrap, scores=scores, totals=totals
        )
        assert stage.start("live_leaderboard", program).wait(PATIENCE_SECONDS) == KILLED
        assert stage.processed() == []
    last = program.replace("die()", "pass")
    stage.run_until_processed({"done"}, [stage.start("live_leaderboard", last)])
    wanted = points_of(played)
    board, _, _ = stage.book.read_text().rpartition(" ")
    assert json.loads(board) == [dict(wanted), best(wanted)]


@pytest.mark.conform
def test_a_compacted_topic_has_the_whole_board(live_leaderboard: Any) -> None:
    settings = {"log.cleaner.backoff.ms": "50"}
    with barnabas.Broker(config=settings) as broker:
        bootstrap = broker.bootstrap_servers
        admin = AdminClient({"bootstrap.servers": bootstrap})
        small = {
            "cleanup.policy": "compact",
            "segment.bytes": "1048576",
            "segment.ms": "100",
            "min.cleanable.dirty.ratio": "0.01",
        }
        for created in admin.create_topics([NewTopic("totals", 1, 1, config=small)]).values():
            created.result(PATIENCE_SECONDS)
        played: list[tuple[str, int]] = []
        topic_of(bootstrap, "scores", [])
        rounds = 0
        while first_offset(live_leaderboard, bootstrap) == 0:
            rounds += 1
            assert rounds < 100, "nothing was compacted"
            more = games(20, rounds)
            send(bootstrap, "scores", more)
            played += more
            board = played_to(live_leaderboard, bootstrap, len(played))
            assert board.points == points_of(played)
        rebuilt = live_leaderboard.rebuild(bootstrap, "totals")
        assert rebuilt == board
        assert rebuilt.best(3) == [tuple(each) for each in best(points_of(played))]


def played_to(live_leaderboard: Any, bootstrap: str, count: int) -> Any:
    """Play until so many scores are counted, and return the board."""
    boards: list[Any] = []
    live_leaderboard.play(
        bootstrap, "scores", "totals", boards.append, lambda: sum(boards[-1].positions.values()) == count
    )
    return boards[-1]


def first_offset(live_leaderboard: Any, bootstrap: str) -> int:
    """Return the offset of the first total that is left."""
    consumer = live_leaderboard.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition("totals", 0, 0)])
    message = consumer.poll(PATIENCE_SECONDS)
    consumer.close()
    return 0 if message.error() else int(message.offset())


def test_scores_that_retention_has_passed_are_an_error(stage: Stage, live_leaderboard: Any) -> None:
    scores, totals = topic_of(stage.bootstrap, f"scores-{stage.name}", games(30, 2)), f"totals-{stage.name}"
    admin = AdminClient({"bootstrap.servers": stage.bootstrap})
    for deleted in admin.delete_records([TopicPartition(scores, each, 1) for each in range(PARTITIONS)]).values():
        deleted.result(PATIENCE_SECONDS)
    with pytest.raises(KafkaException, match="out of range"):
        live_leaderboard.play(stage.bootstrap, scores, totals, lambda board: None)
