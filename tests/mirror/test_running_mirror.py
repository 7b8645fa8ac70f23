"""A mirror without an end: what it notices while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

import barnabas.mirror.mirror as module
from barnabas.client.admin import Admin, NewTopic, TopicPartition, results
from barnabas.mirror.mirror import Clients, Mirror, Wanted, transactional_id
from barnabas.mirror.notes import STATE_TOPIC
from barnabas.mirror.opened_partitions import place_at_source
from barnabas.mirror.source_records import SOURCE_SETTINGS
from barnabas.mirror.stopped import MirrorStopped
from barnabas.retries.committed_records import READER_SETTINGS
from barnabas.retries.forwarding import Forwarder
from tests.mirror.two_clusters import TwoClusters, commit_offsets, fill, without_offsets
from tests.retries.records import values, write

pytestmark = pytest.mark.slow


class Done(Exception):
    """The test has seen what it waited for."""


class Running:
    """A mirror whose clock goes a second at each look, and asks a script what to do."""

    def __init__(self, clusters: TwoClusters, wanted: Wanted | None = None) -> None:
        self.clusters = clusters
        self.said: list[str] = []
        self.wanted = wanted or Wanted(lambda name: True)
        self.mirror: Mirror
        self._seconds = 0.0

    def run(self, script: Callable[[Running], Iterator[Callable[[], bool]]]) -> None:
        """Run until the script ends: it yields conditions, and goes on when one holds."""
        source, target = self.clusters.addresses
        conditions = script(self)
        waits_for: list[Callable[[], bool]] = []

        def clock() -> float:
            self._seconds += 1.0
            if self._seconds > 600:
                raise TimeoutError
            if not waits_for or waits_for[-1]():
                try:
                    waits_for.append(next(conditions))
                except StopIteration:
                    raise Done from None
            return self._seconds

        name = self.clusters.source.cluster_id
        reader = {"group.id": "mirror"}
        with (
            Admin(source) as source_admin,
            Admin(target) as target_admin,
            closing(Consumer({"bootstrap.servers": source, **SOURCE_SETTINGS, **reader})) as source_consumer,
            closing(Consumer({"bootstrap.servers": target, **READER_SETTINGS, **reader})) as target_consumer,
        ):
            target_admin.create_if_absent(NewTopic(STATE_TOPIC, 1, configs={"cleanup.policy": "compact"}))
            forwarder = Forwarder(Producer({"bootstrap.servers": target, "transactional.id": transactional_id(name)}))
            clients = Clients(source_admin, source_consumer, target_admin, target_consumer, forwarder)
            self.mirror = Mirror(name, name, clients, self.wanted, self.said.append, clock=clock)
            with pytest.raises(Done):
                self.mirror.run()

    def has_copied(self, topic: str, count: int) -> Callable[[], bool]:
        def holds() -> bool:
            found = self.mirror.partitions.items() if hasattr(self, "mirror") else ()
            return sum(each.copied for (name, _), each in found if name == topic) == count

        return holds


def test_new_records_topics_partitions_and_offsets_follow(orders: TwoClusters) -> None:
    source, target = orders.addresses

    def script(running: Running) -> Iterator[Callable[[], bool]]:
        yield running.has_copied("orders", 20)
        fill(source, "orders", range(20, 24))
        orders.source.create_topic("bills", partitions=1)
        fill(source, "bills", range(3), partitions=1)
        yield running.has_copied("orders", 24)
        yield running.has_copied("bills", 3)
        with Admin(source) as admin, Admin(target) as there:
            results(admin.create_partitions({"orders": 3}))
            write(source, "orders", [("k", "new")], partition=2)
            where = TopicPartition("orders", 2)
            commit_offsets(source, "g", "orders", {2: 1})
            yield lambda: there.list_group_offsets("g") == {where: admin.list_group_offsets("g")[where]}
            # A rewind at the source is followed.
            commit_offsets(source, "g", "orders", {2: 0})
            yield lambda: there.list_group_offsets("g")[where].offset == 0
        assert set(running.mirror.lags().values()) == {0}

    Running(orders).run(script)
    assert without_offsets(orders.copied(partitions=3)) == without_offsets(orders.original(partitions=3))
    assert values(orders.copied("bills", 1)) == ["0", "1", "2"]


def test_a_topic_that_is_deleted_and_created_again_stops_it(orders: TwoClusters) -> None:
    running = Running(orders)

    def script(running: Running) -> Iterator[Callable[[], bool]]:
        yield running.has_copied("orders", 20)
        with Admin(orders.addresses[0]) as admin:
            results(admin.delete_topics(["orders"]))
            yield lambda: running.said == ["topic orders was deleted at the source: its copy stays"]
            orders.source.create_topic("orders", partitions=2)
            fill(orders.addresses[0], "orders", range(20, 50))
            yield lambda: False

    with pytest.raises(MirrorStopped, match="topic orders was deleted and created again at the source"):
        running.run(script)
    assert len(orders.copied()) == 20


@pytest.mark.conform
def test_a_topic_that_is_deleted_and_created_at_once_stops_it(orders: TwoClusters) -> None:
    def script(running: Running) -> Iterator[Callable[[], bool]]:
        yield running.has_copied("orders", 20)
        with Admin(orders.addresses[0]) as admin:
            results(admin.delete_topics(["orders"]))
        orders.source.create_topic("orders", partitions=2)
        fill(orders.addresses[0], "orders", range(20, 50))
        yield lambda: False

    with pytest.raises(MirrorStopped, match="topic orders was deleted"):
        Running(orders).run(script)
    assert len(orders.copied()) == 20


def test_a_foreign_record_stops_it(orders: TwoClusters) -> None:
    def script(running: Running) -> Iterator[Callable[[], bool]]:
        yield running.has_copied("orders", 20)
        write(orders.addresses[1], "orders", [(None, "mine")], partition=1)
        fill(orders.addresses[0], "orders", range(20, 24))
        yield lambda: False

    with pytest.raises(MirrorStopped, match="orders-1 of the target has a record at offset 11 that the mirror did not"):
        Running(orders).run(script)
    assert len(orders.copied()) == 21


def test_a_second_run_of_the_name_fences_the_first(orders: TwoClusters) -> None:
    def script(running: Running) -> Iterator[Callable[[], bool]]:
        yield running.has_copied("orders", 20)
        fill(orders.addresses[0], "orders", range(20, 24))
        assert orders.counts() == {"orders": (4, 0, 0)}
        yield lambda: False

    with pytest.raises(KafkaException) as failure:
        Running(orders).run(script)
    assert failure.value.args[0].code() == KafkaError._FENCED
    assert without_offsets(orders.copied()) == without_offsets(orders.original())


@pytest.mark.conform
@pytest.mark.parametrize("skip_deleted", [False, True])
def test_records_that_are_deleted_while_it_runs(
    clusters: TwoClusters, monkeypatch: pytest.MonkeyPatch, skip_deleted: bool
) -> None:
    source = clusters.addresses[0]
    clusters.source.create_topic("orders", partitions=1)
    fill(source, "orders", range(10), partitions=1)
    assert clusters.counts() == {"orders": (10, 0, 0)}
    fill(source, "orders", range(10, 20), partitions=1)
    checks = []

    def checked(*arguments: object, **named: object) -> list[tuple[str, int]]:
        """Delete records behind the first check."""
        checks.append(arguments)
        if len(checks) == 1:
            with Admin(source) as admin:
                results(admin.delete_records({TopicPartition("orders", 0): 13}))
            return []
        return place_at_source(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "place_at_source", checked)

    def script(running: Running) -> Iterator[Callable[[], bool]]:
        yield running.has_copied("orders", 7)

    running = Running(clusters, Wanted(lambda name: True, skip_deleted=skip_deleted))
    if skip_deleted:
        running.run(script)
        assert running.said == [
            "3 offsets of partition orders-0 (10 to 12) are skipped: deleted at the source before being copied"
        ]
        assert values(clusters.copied(partitions=1)) == [str(each) for each in [*range(10), *range(13, 20)]]
    else:
        with pytest.raises(MirrorStopped, match=r"3 offsets of partition orders-0 \(10 to 12\) were deleted"):
            running.run(script)


@pytest.mark.conform
def test_notes_of_records_that_the_target_has_deleted_are_forgotten(
    clusters: TwoClusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.mirror.source_records.BATCH_RECORDS", 1)
    monkeypatch.setattr("barnabas.mirror.progress.RUNS_PER_NOTE", 2)
    clusters.source.create_topic("orders", partitions=1)
    fill(clusters.addresses[0], "orders", range(6), partitions=1)
    assert clusters.counts() == {"orders": (6, 0, 0)}
    target = clusters.addresses[1]
    with Admin(target) as admin:
        results(admin.delete_records({TopicPartition("orders", 0): 9}))
    before = len(clusters.target_notes())

    def script(running: Running) -> Iterator[Callable[[], bool]]:
        yield lambda: len(clusters.target_notes()) > before

    Running(clusters).run(script)
    gone = [each.key for each in clusters.target_notes()[before:] if each.value is None]
    name = clusters.source.cluster_id
    assert gone == [f'["{name}", "orders", 0, {first}]'.encode() for first in (0, 2)]
    assert clusters.counts() == {"orders": (0, 0, 0)}
