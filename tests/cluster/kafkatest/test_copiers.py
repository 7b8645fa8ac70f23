"""`transactions_test` and `group_mode_transactions_test` of kafkatest: a topic is copied in transactions while brokers or copiers die.

One consumer reads committed records during the copy, and another one after it. In each partition of the copy both find what is in the same
partition of the original: every record, once, in order.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.cluster.cluster import Cluster
from tests.cluster.kafkatest.bounces import bounce, pause, wipe
from tests.cluster.kafkatest.copiers import CommittedReader, Copier
from tests.cluster.kafkatest.reassignments import Moves, Reassignment, anywhere
from tests.cluster.load import QUICK
from tests.cluster.node_process import KINDS
from tests.cluster.records import read_partition
from tests.cluster.replicas import check_bytes_identical
from tests.cluster.scenarios.transactions import partition_for
from tests.cluster.topics import create_topic
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.long, pytest.mark.timeout(1800)]

SOURCE, TARGET = "input-topic", "output-topic"
READ_SECONDS = 240.0
FIFTH = 0.2


@dataclass(frozen=True)
class Shape:
    """What is copied, and by whom.

    Attributes:
        partitions: of both topics.
        records: of the input topic.
        copiers: how many; None for one a partition.
        size: records in a transaction.
        protocol: of the group that reads the copy meanwhile.
    """

    partitions: int
    records: int
    copiers: int | None = None
    has_group_metadata: bool = True
    size: int = 100
    protocol: str = "consumer"


def seed(bootstrap_servers: str, shape: Shape) -> dict[int, list[int]]:
    """Fill the input topic; return the values of each partition, in order."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, **QUICK})
    for number in range(shape.records):
        producer.produce(SOURCE, str(number), partition=number % shape.partitions)
        producer.poll(0)
    assert not producer.flush(120), "the input topic is not filled"
    return {index: list(range(index, shape.records, shape.partitions)) for index in range(shape.partitions)}


class Copying:
    """Copiers at work, and the readers beside them."""

    def __init__(self, cluster: Cluster, folder: Path, shape: Shape) -> None:
        self.cluster, self.folder, self.shape = cluster, folder, shape
        self.seeded: dict[int, list[int]] = {}
        is_group = shape.copiers is not None
        self.copiers = [
            Copier(
                cluster, folder, number, (SOURCE, TARGET), partition=None if is_group else number,
                has_group_metadata=shape.has_group_metadata, size=shape.size,
            )
            for number in range(shape.copiers or shape.partitions)
        ]  # fmt: skip
        self.reader = CommittedReader(cluster, folder, TARGET, shape.protocol)

    def start(self) -> None:
        """Fill the input topic, and begin to copy and to read."""
        nodes = sorted(node.node_id for node in self.cluster.brokers)
        spread = [[nodes[(index + each) % len(nodes)] for each in range(3)] for index in range(self.shape.partitions)]
        for topic in (SOURCE, TARGET):
            create_topic(self.cluster, topic, spread, {"min.insync.replicas": "2"})
        self.seeded = seed(self.cluster.bootstrap_servers, self.shape)
        for program in (*self.copiers, self.reader):
            program.start()
        self.await_copied(10 * self.shape.size)

    @property
    def copied(self) -> int:
        return sum(each.copied for each in self.copiers)

    @property
    def is_done(self) -> bool:
        return all(each.is_done for each in self.copiers)

    def await_copied(self, count: int) -> None:
        """Wait until so many more records are copied than now, or all."""
        goal = min(self.copied + count, self.shape.records)
        wait_for(f"{count} more records are copied", lambda: self.is_done or self.copied >= goal)

    def finish(self) -> None:
        """Wait until all is copied and read."""
        while self.copied < self.shape.records and not self.is_done:
            self.await_copied(self.shape.size)
        for copier in self.copiers:
            copier.await_that("all is copied", lambda copier=copier: copier.is_done)
        records = self.shape.records
        self.reader.await_that(f"all {records} are read", lambda: self.reader.count >= records, READ_SECONDS)
        self.reader.stop()

    def check(self) -> None:
        """Every reader has read what was in the input topic."""
        servers = self.cluster.bootstrap_servers
        for index, values in self.seeded.items():
            copy = [int(value) for _, value in read_partition(servers, TARGET, index, committed_only=True)]
            check_same(f"{TARGET}-{index} afterwards", copy, values)
            check_same(f"{TARGET}-{index} meanwhile", self.reader.values.get(index, []), values)

    def close(self) -> None:
        for program in (*self.copiers, self.reader):
            program.stop(is_clean=False)


def check_same(where: str, found: list[int], wanted: list[int]) -> None:
    lost, more = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
    assert not lost, f"{where}: {len(lost)} of {len(wanted)} records are lost: {lost[:10]}"
    assert not more, f"{where}: {len(more)} records are foreign: {more[:10]}"
    assert len(found) == len(set(found)), f"{where}: {len(found) - len(set(found))} records are there twice"
    assert found == wanted, f"{where}: records are out of order"


def begin(stack: ExitStack, kind: str, folder: Path, shape: Shape, nodes: int = 3) -> Copying:
    cluster = stack.enter_context(Cluster(kind, folder / "nodes", nodes))
    copying = Copying(cluster, folder, shape)
    stack.callback(copying.close)
    copying.start()
    return copying


def bounce_brokers(copying: Copying, *, is_clean: bool) -> int:
    """Bounce one broker after the other; return how many ended while there was something to copy."""
    count = 0
    for node in copying.cluster.brokers:
        count += not copying.is_done
        bounce(copying.cluster, node, is_clean=is_clean)
    return count


def bounce_disks(copying: Copying, *, is_clean: bool) -> int:
    """As `bounce_brokers`, and each loses its disk."""
    count = 0
    for node in copying.cluster.brokers:
        count += not copying.is_done
        wipe(copying.cluster, node, is_clean=is_clean)
    return count


def bounce_copiers(copying: Copying, *, is_clean: bool) -> int:
    """Bounce each copier three times, each time when it has done a fifth of its work; return how many had something to copy."""
    count = 0
    for _ in range(3):
        for copier in copying.copiers:
            copier.await_that("a fifth is copied", lambda copier=copier: copier.is_done or copier.progress >= FIFTH)
            count += not copier.is_done
            copier.bounce(is_clean=is_clean)
    return count


FAULTS: dict[str, Callable[..., int]] = {"brokers": bounce_brokers, "disks": bounce_disks, "copiers": bounce_copiers}
SHORT = Shape(1, 2000, size=50)
SHAPES = {
    "in order": Shape(1, 20_000, protocol="classic"),
    "by offsets alone": Shape(2, 40_000, has_group_metadata=False),
    "group": Shape(9, 40_000, copiers=3),
}


def test_a_copy_has_every_record_once_though_its_coordinator_dies(stack: ExitStack, tmp_path: Path) -> None:
    """The shortest of these tests: half of a partition is copied when the transaction coordinator is killed."""
    copying = begin(stack, "barnabas", tmp_path, SHORT)
    cluster = copying.cluster
    coordinator = partition_for("copier-0", len(cluster.partitions("__transaction_state")))
    bounce(cluster, cluster.leader_of("__transaction_state", coordinator), is_clean=False)
    copying.finish()
    copying.check()
    check_bytes_identical(cluster, TARGET)


@pytest.mark.parametrize("is_clean", [False, True], ids=["hard", "clean"])
@pytest.mark.parametrize("target", list(FAULTS))
@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_copy_has_every_record_once(
    stack: ExitStack, tmp_path: Path, kind: str, shape: str, target: str, is_clean: bool
) -> None:
    copying = begin(stack, kind, tmp_path, SHAPES[shape])
    bounced = FAULTS[target](copying, is_clean=is_clean)
    copying.finish()
    copying.check()
    check_bytes_identical(copying.cluster, TARGET)
    assert bounced >= 2, "the copiers were done too early for this to say anything"


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_copy_has_every_record_once_though_brokers_stand_still(stack: ExitStack, tmp_path: Path, kind: str) -> None:
    """Not in kafkatest: each broker is paused until the others have fenced it."""
    copying = begin(stack, kind, tmp_path, SHAPES["group"])
    for node in copying.cluster.brokers:
        pause(copying.cluster, node)
    copying.finish()
    copying.check()
    check_bytes_identical(copying.cluster, TARGET)


@pytest.mark.parametrize("is_clean", [False, True], ids=["hard", "clean"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_a_copy_has_every_record_once_though_everything_moves(
    stack: ExitStack, tmp_path: Path, tools: ToolProcess, kind: str, is_clean: bool
) -> None:
    """Not in kafkatest: input, output, offsets and transactions move among four brokers, which bounce, while a group copies."""
    copying = begin(stack, kind, tmp_path, SHAPES["group"], nodes=4)
    cluster, rng = copying.cluster, random.Random(3)
    bounced = 0
    while not copying.is_done:
        moves: Moves = {}
        for topic in (SOURCE, TARGET, "__consumer_offsets", "__transaction_state"):
            moves |= anywhere(cluster, rng, topic)
        reassignment = Reassignment(cluster, tools, tmp_path, moves)
        reassignment.execute()
        node = rng.choice(cluster.brokers)
        bounce(cluster, node, is_clean=is_clean)
        reassignment.await_done()
        bounced += 1
    copying.finish()
    copying.check()
    cluster.await_in_sync([TARGET])
    check_bytes_identical(cluster, TARGET)
    assert bounced >= 2, "the copiers were done too early for this to say anything"
