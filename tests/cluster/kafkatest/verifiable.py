"""Kafka's `VerifiableProducer` and `VerifiableConsumer`, and what kafkatest concludes from their output."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.cluster.cluster import Cluster
from tests.cluster.kafkatest.java_program import JavaProgram
from tests.cluster.program import Event
from tests.cluster.waiting import PATIENCE_SECONDS

PRODUCER = {
    # The program sets retries to 0 for itself.
    "retries": "2147483647", "enable.idempotence": "true", "delivery.timeout.ms": "600000", "request.timeout.ms": "10000",
    "metadata.max.age.ms": "2000",
}  # fmt: skip

CONSUMER = {"metadata.max.age.ms": "2000"}


def write_properties(path: Path, settings: dict[str, str]) -> str:
    """Write a client's properties; return the path of the file."""
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return str(path)


class Acked(NamedTuple):
    """What the producer was told of one record."""

    partition: int
    offset: int
    value: int


class VerifiableProducer(JavaProgram):
    """Sends the numbers from 0 on with acks=all, idempotently.

    Args:
        count: of records; -1 for as many as there is time for.
        per_second: -1 for as many as it can.
        keys: how many different keys; None for records without.
        created_ms: the time of the first record; None for the present.

    Attributes:
        acked: in the order in which the producer was told.
        errors: of records that were given up; none are expected.
    """

    heap = "512m"

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        topic: str,
        *,
        count: int = -1,
        per_second: int = -1,
        keys: int | None = None,
        created_ms: int | None = None,
        name: str = "producer",
    ) -> None:
        more = [] if keys is None else ["--repeating-keys", str(keys)]
        if created_ms is not None:
            more += ["--message-create-time", str(created_ms)]
        super().__init__(
            name, "org.apache.kafka.tools.VerifiableProducer", folder, "--bootstrap-server", cluster.bootstrap_servers,
            "--topic", topic, "--max-messages", str(count), "--throughput", str(per_second), "--acks", "-1",
            "--command-config", write_properties(folder / f"{name}.properties", PRODUCER), *more,
        )  # fmt: skip
        self.topic = topic
        self.acked: list[Acked] = []
        self.errors: list[Event] = []

    def event(self, event: Event) -> None:
        name = event.get("name")
        if name == "producer_send_success":
            self.acked.append(Acked(event["partition"], event["offset"], int(event["value"])))
        elif name == "producer_send_error":
            self.errors.append(event)

    def await_more(self, count: int, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until so many more records are acknowledged than now."""
        goal = len(self.acked) + count
        self.await_that(f"{count} more records are acknowledged", lambda: len(self.acked) >= goal, seconds)
        assert not self.errors, f"{self} gave up: {self.errors[:3]}"


def check_acked_are_there(producer: VerifiableProducer, there: dict[int, list[tuple[int, int]]]) -> None:
    """Compare what a producer was told with all that a topic has.

    Args:
        there: (offset, value) of each partition, in order.

    Raises:
        AssertionError: an acknowledged record is lost, or at another offset, or a record is there twice or out of order.
    """
    assert not producer.errors, f"{producer} gave up: {producer.errors[:3]}"
    for partition, records in there.items():
        where = f"{producer.topic}-{partition}"
        values = [value for _, value in records]
        found = {value: offset for offset, value in records}
        told = [each for each in producer.acked if each.partition == partition]
        lost = [each for each in told if each.value not in found]
        assert not lost, f"{where} has lost {len(lost)} of {len(told)} acknowledged records: {lost[:5]}"
        assert values == sorted(set(values)), f"{where} has records twice or out of order: {_first_wrong(values)}"
        # A duplicate's answer need not have the offset.
        moved = [each for each in told if each.offset not in (found[each.value], -1)]
        assert not moved, f"{where} has {len(moved)} records at other offsets than the producer was told: {moved[:5]}"


def _first_wrong(values: Iterable[int]) -> tuple[int, int] | None:
    before = -1
    for each in values:
        if each <= before:
            return before, each
        before = each
    return None


class VerifiableConsumer(JavaProgram):
    """A member of a group, which commits after each poll.

    Args:
        instance_id: of a static member; None for another.
        is_verbose: it says the value of each record.
        session_ms: the classic protocol's session timeout.
        extra: more settings of the consumer.

    Attributes:
        values: of the records that it read, in order; only if it is verbose.
        assignment: its partitions.
        position: the next offset of each partition, since it was assigned.
        committed: the last offset of each partition that was committed.
        consumed: records, in all its runs.
        assigned_count, revoked_count: how often partitions were.
        problems: what no member may see: a commit or a position that goes back, or records of partitions that are not assigned to it.
    """

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        topic: str,
        group: str,
        protocol: str,
        *,
        name: str = "consumer",
        instance_id: str | None = None,
        is_verbose: bool = False,
        session_ms: int = 30_000,
        extra: dict[str, str] | None = None,
    ) -> None:
        name = f"{group}-{name}"
        more = ["--verbose"] if is_verbose else []
        if protocol == "classic":
            more += ["--session-timeout", str(session_ms)]
        if instance_id is not None:
            more += ["--group-instance-id", instance_id]
        super().__init__(
            name, "org.apache.kafka.tools.VerifiableConsumer", folder, "--bootstrap-server", cluster.bootstrap_servers,
            "--topic", topic, "--group-id", group, "--group-protocol", protocol, "--reset-policy", "earliest",
            "--command-config", write_properties(folder / f"{name}.properties", CONSUMER | (extra or {})), *more,
        )  # fmt: skip
        self.protocol = protocol
        self.values: list[int] = []
        self.assignment: set[int] = set()
        self.position: dict[int, int] = {}
        self.committed: dict[int, int] = {}
        self.consumed = self.assigned_count = self.revoked_count = 0
        self.is_joined = False
        self.problems: list[str] = []

    def event(self, event: Event) -> None:
        handler = {
            "shutdown_complete": self._ended,
            "partitions_assigned": self._assigned,
            "partitions_revoked": self._revoked,
            "records_consumed": self._consumed,
            "offsets_committed": self._committed,
        }.get(event["name"])
        if handler is not None:
            handler(event)
        elif event["name"] == "record_data":
            self.values.append(int(event["value"]))

    def start(self) -> None:
        self._ended({})
        super().start()

    def _ended(self, _: Event) -> None:
        self.is_joined = False
        self.assignment.clear()
        self.position.clear()

    def _assigned(self, event: Event) -> None:
        self.assigned_count += 1
        self.is_joined = True
        self.assignment |= {each["partition"] for each in event["partitions"]}

    def _revoked(self, event: Event) -> None:
        self.revoked_count += 1
        self.assignment -= {each["partition"] for each in event["partitions"]}
        self.position.clear()

    def _consumed(self, event: Event) -> None:
        for each in event["partitions"]:
            index, first, last = each["partition"], each["minOffset"], each["maxOffset"]
            if index not in self.assignment:
                self.problems.append(f"records of partition {index}, which it does not have: {event}")
            if self.position.get(index, first) != first:
                self.problems.append(f"partition {index}: the position was {self.position[index]}: {event}")
            self.position[index] = last + 1
        self.consumed += event["count"]

    def _committed(self, event: Event) -> None:
        for each in event["offsets"] if event["success"] else []:
            index, offset = each["partition"], each["offset"]
            if offset > self.position.get(index, offset):
                self.problems.append(f"partition {index}: committed beyond {self.position[index]}: {event}")
            if offset < self.committed.get(index, 0):
                self.problems.append(f"partition {index}: committed {self.committed[index]} before: {event}")
            self.committed[index] = offset

    def check_offsets(self) -> None:
        """Raise an AssertionError if a position or a committed offset has gone back or jumped."""
        assert not self.problems, f"{self}: {len(self.problems)} problems: {self.problems[:5]}"

    def await_more(self, count: int, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until it has read so many more records."""
        goal = self.consumed + count
        self.await_that(f"{count} more records are read", lambda: self.consumed >= goal, seconds)
