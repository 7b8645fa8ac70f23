"""`topic grow` on a real broker: plain, in order, killed after each step, and what it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.cli import topic_grow
from barnabas.cli.failure import Failure
from barnabas.cli.topic import topic
from barnabas.cli.topic_grow import OrderedGrowth, Waiting
from barnabas.client.admin import Admin, NewTopic, TopicPartition, result, results
from barnabas.client.partition_records import append_batch
from barnabas.client.topic_growth import list_growth, store_growth
from barnabas.protocol.errors import ErrorCode, error_for
from barnabas.protocol.ordered_growth import Generation
from barnabas.records.builder import build_batch


class Killed(Exception):
    """Stands for SIGKILL: nothing in the command catches it."""


class Clock:
    """A clock that only sleeping moves, and that can kill."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.slept_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.slept_s += seconds
        self.now_ms += round(seconds * 1000)

    def waiting(self) -> Waiting:
        return Waiting(lambda: self.now_ms, self.sleep)


@pytest.fixture
def broker() -> Iterator[Any]:
    with barnabas.Broker() as running:
        with Admin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("orders", 2, 1)])
            for index in range(3):
                where = TopicPartition("orders", min(index, 1))
                append_batch(admin.cluster, where, build_batch([(1, b"k", b"v", ())]))
        yield running


@pytest.fixture
def admin(broker: Any) -> Iterator[Admin]:
    with Admin(broker.bootstrap_servers) as admin:
        yield admin


def run(broker: Any, *arguments: str) -> Result:
    return CliRunner().invoke(topic, [*arguments, "-b", broker.bootstrap_servers])


def status(answer: Result) -> str:
    assert answer.exit_code == 0, answer.output
    (row,) = json.loads(answer.stdout)
    return str(row["status"])


def grow(admin: Admin, total: int, clock: Clock, settle_ms: int = 600_000, *, dry_run: bool = False) -> str:
    found = result(admin.describe_topics(["orders"])["orders"])
    return OrderedGrowth(admin, found, total, clock.waiting()).run(settle_ms, dry_run=dry_run)


def partitions(admin: Admin) -> int:
    return len(result(admin.describe_topics(["orders"])["orders"]).partitions)


def test_a_topic_grows_in_order(broker: Any, admin: Admin) -> None:
    answer = run(broker, "grow", "orders", "-p", "6", "--ordered", "--settle", "0s", "-o", "json")
    assert status(answer) == "grown from 2 to 6 partitions, in order, and sealed"
    (growth,) = list_growth(admin.cluster, ["orders"])["orders"]
    assert (growth.before, growth.after, growth.fences) == (2, 6, (1, 2))
    assert partitions(admin) == 6
    again = run(broker, "grow", "orders", "-p", "6", "--ordered", "-o", "json")
    assert status(again) == "unchanged: grown in order, and sealed"
    assert grow(admin, 12, Clock()) == "grown from 6 to 12 partitions, in order, and sealed"
    assert [each.before for each in list_growth(admin.cluster, ["orders"])["orders"]] == [2, 6]


def test_without_an_order_it_warns(broker: Any, admin: Admin) -> None:
    answer = run(broker, "grow", "orders", "-p", "3", "-o", "json")
    assert status(answer) == "grown from 2 to 3 partitions"
    assert "a key's old and new records may be in two" in answer.stderr
    refused = run(broker, "grow", "orders", "-p", "2")
    assert refused.exit_code == 1
    assert list_growth(admin.cluster, ["orders"]) == {}


def test_a_dry_run_changes_nothing(broker: Any, admin: Admin) -> None:
    answer = run(broker, "grow", "orders", "-p", "4", "--ordered", "--dry-run", "-o", "json")
    assert status(answer) == "would be grown from 2 to 4 partitions"
    assert partitions(admin) == 2
    assert list_growth(admin.cluster, ["orders"]) == {}


@pytest.mark.parametrize("step", range(6))
def test_killed_after_any_step_the_same_command_goes_on(
    admin: Admin, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """The steps are: the setting, the partitions, the time, the wait, the fences; 5 kills none."""
    clock, left = Clock(), step
    settle_ms = 600_000

    def killing(where: object, name: str) -> None:
        act = getattr(where, name)

        def acted(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            done = act(*arguments, **options)
            left -= 1
            if left < 0:
                left = 1000
                raise Killed
            return done

        monkeypatch.setattr(where, name, acted)

    killing(Admin, "store_growth")
    killing(topic_grow, "grow_plainly")
    killing(topic_grow, "fences_of")
    if step == 5:
        left = 1000
        grow(admin, 6, clock, settle_ms)
    else:
        with pytest.raises(Killed):
            grow(admin, 6, clock, settle_ms)
        before = partitions(admin)
        assert before == 2 or list_growth(admin.cluster, ["orders"]), "no partition exists that nobody holds back"
        grow(admin, 6, clock, settle_ms)
    (growth,) = list_growth(admin.cluster, ["orders"])["orders"]
    assert growth.fences == (1, 2)
    assert growth.since_ms is not None
    assert partitions(admin) == 6
    assert clock.slept_s >= 600 or clock.now_ms >= growth.since_ms + settle_ms


def test_what_has_passed_of_the_wait_counts(admin: Admin) -> None:
    admin.create_partitions({"orders": 4})
    store_growth(admin.cluster, "orders", [Generation(2, 4, since_ms=1_000_000)])
    clock = Clock()
    clock.now_ms += 400_000
    assert grow(admin, 4, clock).endswith("sealed")
    assert clock.slept_s == 200


def test_a_number_that_is_no_multiple_is_one_sentence(broker: Any, admin: Admin) -> None:
    answer = run(broker, "grow", "orders", "-p", "5", "--ordered")
    assert answer.exit_code == 1
    assert isinstance(answer.exception, SystemExit)
    assert "topic orders has 2 partitions, and ordered growth needs a multiple of that, not 5 (use -p 4, 6 or 8" in (
        answer.stderr.replace("\n", " ")
    )
    with pytest.raises(Failure, match="topic orders has 2 partitions already"):
        grow(admin, 2, Clock())


def test_one_growth_is_finished_before_the_next_begins(admin: Admin) -> None:
    store_growth(admin.cluster, "orders", [Generation(2, 6)])
    with pytest.raises(Failure, match="topic orders is still growing in order, from 2 to 6 partitions") as raised:
        grow(admin, 8, Clock())
    assert raised.value.hint == "`barnabas topic grow orders -p 6 --ordered` finishes that first"
    assert grow(admin, 6, Clock(), dry_run=True) == "would be grown from 2 to 6 partitions"


def test_brokers_that_know_no_such_setting_cannot_hold_readers_back(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject(*_: object, **__: object) -> bool:
        raise error_for(ErrorCode.INVALID_CONFIG, "Unknown topic config name: barnabas.ordered.growth")

    monkeypatch.setattr(Admin, "store_growth", reject)
    for dry_run in (True, False):
        with pytest.raises(Failure, match="this cluster's brokers cannot hold readers back") as raised:
            grow(admin, 4, Clock(), dry_run=dry_run)
    assert raised.value.hint == "`barnabas topic grow orders -p 4` grows it without an order of keys"
    assert partitions(admin) == 2


def test_a_broker_that_does_not_show_the_growth_ends_it(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Admin, "store_growth", lambda *_, **__: False)
    with pytest.raises(Failure, match="not every broker shows the growth of topic orders yet"):
        grow(admin, 4, Clock())
    assert partitions(admin) == 2


def test_a_growth_below_whose_fences_nothing_is_left_is_removed(admin: Admin) -> None:
    grow(admin, 4, Clock())
    results(admin.delete_records({TopicPartition("orders", index): -1 for index in range(2)}))
    words = "free: no record below the fences is left, and no group waits"
    assert grow(admin, 4, Clock(), dry_run=True) == f"would be {words}"
    assert grow(admin, 4, Clock()) == words
    assert list_growth(admin.cluster, ["orders"]) == {}
