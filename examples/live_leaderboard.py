"""A live leaderboard, which is the same after any kill: its state is a compacted topic.

    python examples/live_leaderboard.py localhost:9092 scores totals

The key of a score is the player, its value the points of one game. The program keeps each player's total in memory, and
shows the best. It writes each new total to a topic with `cleanup.policy=compact`, with the place of the score that it
includes:

    alice -> {"points": 310, "partition": 2, "offset": 57}

A program that starts reads that topic first. It learns the totals, and how far each partition of the scores is counted:
up to the largest offset that a total names. There it reads on. It needs no group and no transaction:

- Totals are written in the order in which scores were counted, to one partition, by an idempotent producer. So a kill
  leaves the totals up to some score, and none after it. What came later is counted again from there, once.
- Compaction keeps each player's last total, and with it the largest offset of each partition.

One program at a time may run: a second one would write its totals between those of the first.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import nsmallest

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PATIENCE_SECONDS = 60


@dataclass
class Board:
    """The players' totals, and the next score of each partition."""

    points: dict[str, int] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)

    def best(self, count: int) -> list[tuple[str, int]]:
        """Return the players with the most points; equal ones by name."""
        return nsmallest(count, self.points.items(), key=lambda each: (-each[1], each[0]))

    def note(self, player: str, points: int, partition: int, offset: int) -> None:
        """Set a player's total, which includes the score at this place."""
        self.points[player] = points
        self.positions[partition] = max(self.positions.get(partition, 0), offset + 1)


def rebuild(bootstrap: str, totals: str) -> Board:
    """Return the board that the topic of totals tells; read it from its start to its end."""
    board = Board()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.partition.eof": True})
    try:
        consumer.assign([TopicPartition(totals, 0, 0)])
        while True:
            message = consumer.poll(PATIENCE_SECONDS)
            if message is None:
                raise TimeoutError(f"no answer about {totals} within {PATIENCE_SECONDS} s")
            if (error := message.error()) is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    return board
                raise KafkaException(error)
            told = json.loads(message.value())
            board.note(message.key().decode(), told["points"], told["partition"], told["offset"])
    finally:
        consumer.close()


def play(
    bootstrap: str,
    scores: str,
    totals: str,
    shown: Callable[[Board], None],
    enough: Callable[[], bool] = lambda: False,
) -> None:
    """Rebuild the board, and keep it up to date.

    Args:
        bootstrap: the cluster's address.
        scores: the topic of scores.
        totals: the topic of totals, of one partition; created if it does not exist.
        shown: gets the board as it was rebuilt, and again after each score.
        enough: called after every poll; True ends the loop.
    """
    create(bootstrap, totals)
    board = rebuild(bootstrap, totals)
    shown(board)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5})
    # An offset that retention has passed would skip scores in silence: let it be an error instead.
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "auto.offset.reset": "error"})
    try:
        partitions = consumer.list_topics(scores, PATIENCE_SECONDS).topics[scores].partitions
        consumer.assign([TopicPartition(scores, each, board.positions.get(each, 0)) for each in partitions])
        while not enough():
            producer.poll(0)
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error():
                raise KafkaException(message.error())
            count(board, message)
            place = {"partition": message.partition(), "offset": message.offset()}
            player = message.key().decode()
            producer.produce(totals, json.dumps({"points": board.points[player], **place}), player, on_delivery=check)
            shown(board)
        if producer.flush(PATIENCE_SECONDS):
            raise TimeoutError(f"not every total was acknowledged within {PATIENCE_SECONDS} s")
    finally:
        consumer.close()


def count(board: Board, score: Message) -> None:
    """Add a score to its player's total."""
    player = score.key().decode()
    board.note(player, board.points.get(player, 0) + int(score.value()), score.partition(), score.offset())


def check(error: KafkaError | None, _: Message) -> None:
    """Stop if a total was not written: those after it must not be written either."""
    if error is not None:
        raise KafkaException(error)


def create(bootstrap: str, totals: str) -> None:
    """Create the compacted topic of totals, unless it exists."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(totals, 1, config={"cleanup.policy": "compact"})]).values():
        try:
            created.result(PATIENCE_SECONDS)
        except KafkaException as failure:
            if failure.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: python examples/live_leaderboard.py BOOTSTRAP-SERVERS SCORES TOTALS")
    with contextlib.suppress(KeyboardInterrupt):
        play(*sys.argv[1:], shown=lambda board: print(board.best(3)))
