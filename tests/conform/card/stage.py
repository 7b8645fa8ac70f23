"""What a scenario stands on: one broker, one client's drivers, names of its own, and a transcript.

A scenario is written once against the driver commands and serves every client library. Whatever it appends to `transcript` must be
equal on both brokers, so nothing with an address or a time goes there. Topics, groups and transactional ids carry the client's and
the scenario's name: scenarios share a broker and do not meet.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.cluster import Cluster
from barnabas.protocol import messages
from tests.conform.brokers import BrokerUnderTest, await_leaders
from tests.conform.driver import Driver, DriverError

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
STEP_SECONDS = 240
SESSION_MS = 10_000
HEARTBEAT_MS = 500
GROUP_RESOURCE = 32  # a group among the resources that have settings
Row = list[Any]  # topic, partition, offset, key, value, headers


class Stage:
    """One scenario of one client on one broker.

    `traits` are what the client's library cannot express inside a scenario, from the table of clients: for example "null headers".
    `before_command` is called before each command to a driver.
    """

    def __init__(
        self,
        broker: BrokerUnderTest,
        command: Callable[[str], list[str]],
        prefix: str,
        folder: Path,
        codecs: Iterable[str] = CODECS,
        traits: Iterable[str] = (),
        before_command: Callable[[], None] = lambda: None,
    ) -> None:
        self.broker = broker
        self.command = command
        self.prefix = prefix
        self.folder = folder
        self.codecs = tuple(codecs)
        self.traits = frozenset(traits)
        self.before_command = before_command
        self.transcript: list[Any] = []
        self.open: list[Driver] = []
        self.backlog: list[Row] = []

    def name(self, what: str) -> str:
        return f"{self.prefix}-{what}"

    def driver(self) -> Driver:
        driver = Driver(self.command(self.broker.bootstrap_servers), self.folder / "drivers.log", self.before_command)
        self.open.append(driver)
        return driver

    def end(self) -> None:
        for driver in self.open:
            driver.kill()

    def topic(self, what: str, partitions: int = 1, **config: str) -> str:
        """Create a topic of the scenario's own, with dots for the underscores in `config`, and return its name."""
        name = self.name(what)
        self.broker_admin().create_topic(name, partitions, {k.replace("_", "."): v for k, v in config.items()})
        return name

    def broker_admin(self) -> Administration:
        return Administration(self.broker.bootstrap_servers)

    # --- what scenarios share ------------------------------------------------------------------------------------

    def subscribe(self, member: Driver, group: str, topics: list[str], **how: Any) -> None:
        settings = {"protocol": "classic", "strategy": "range", "session_ms": SESSION_MS, "heartbeat_ms": HEARTBEAT_MS,
                    "instance": None, "isolation": "read_committed", **how}  # fmt: skip
        member("subscribe", group=group, topics=topics, **settings)

    def reader(self, *topics: str, partitions: int = 1, isolation: str = "read_committed") -> Driver:
        """A consumer without a group at the start of these topics."""
        driver = self.driver()
        driver(
            "assign", group=None, isolation=isolation, partitions=[[t, p] for t in topics for p in range(partitions)]
        )
        return driver

    def wait_for_assignment(self, members: list[Driver], partitions: int) -> list[int]:
        """Poll the members until together they own each partition once and share evenly, as all assignors of the scenarios end.

        Uneven shares are passed on the way, when one member has given up a partition and another not yet. What comes meanwhile is kept
        for read_all.
        """
        deadline = time.monotonic() + STEP_SECONDS
        while True:
            self.backlog += poll_together(members)
            assigned = [member("assignment") for member in members]
            owned = [tuple(tp) for one in assigned for tp in one]
            shares = sorted(len(one) for one in assigned)
            if len(owned) == len(set(owned)) == partitions and shares[-1] - shares[0] <= 1:
                return shares
            assert time.monotonic() < deadline, f"no balanced assignment: {owned}"

    def read_all(self, members: list[Driver], count: int) -> list[Row]:
        """Poll the members until `count` different offsets were seen."""
        deadline = time.monotonic() + STEP_SECONDS
        found = {(row[0], row[1], row[2]): row for row in self.backlog}
        self.backlog = []
        while len(found) < count:
            found |= {(row[0], row[1], row[2]): row for row in poll_together(members)}
            assert time.monotonic() < deadline, f"{len(found)} of {count} records"
        return list(found.values())

    def commit_all(self, members: list[Driver], rows: list[Row]) -> None:
        """Each member commits what was read of the partitions it owns."""
        ends = ends_of(rows)
        for member in members:
            mine = [[t, p, ends[t, p], ""] for t, p in map(tuple, member("assignment")) if (t, p) in ends]
            if mine:
                member("commit", offsets=mine)

    def refused(self, driver: Driver, do: str, **fields: Any) -> None:
        """The command must fail, and with the same error on both brokers."""
        with pytest.raises(DriverError) as refusal:
            driver(do, **fields)
        assert driver.process.poll() is None, refusal.value
        self.transcript.append([do, "refused", refusal.value.code])


class Administration:
    """What a scenario needs from a broker beside its own client: topics, quotas and group settings, through our own client."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def ask(self, request: Any) -> Any:
        with Cluster(self.bootstrap) as cluster:
            return cluster.any_connection().request(request)

    def create_topic(self, name: str, partitions: int, config: dict[str, str]) -> None:
        topic = messages.CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=-1,
            configs=[messages.CreateTopicsRequest.CreatableTopicConfig(name=k, value=v) for k, v in config.items()],
        )
        with Cluster(self.bootstrap, timeout_ms=STEP_SECONDS * 1000) as cluster:
            response = cluster.any_connection().request(messages.CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
            assert [one.error_code for one in response.topics] == [0], response
        await_leaders(self.bootstrap, {name: partitions}, STEP_SECONDS)

    def set_group_config(self, group: str, **config: str) -> None:
        changes = [
            messages.IncrementalAlterConfigsRequest.AlterableConfig(
                name=k.replace("_", "."), config_operation=0, value=v
            )
            for k, v in config.items()
        ]
        resource = messages.IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=group, configs=changes
        )
        response = self.ask(messages.IncrementalAlterConfigsRequest(resources=[resource]))
        assert [one.error_code for one in response.responses] == [0], response

    def set_client_quota(self, client_id: str, **bytes_per_second: float) -> None:
        entry = messages.AlterClientQuotasRequest.EntryData(
            entity=[messages.AlterClientQuotasRequest.EntityData(entity_type="client-id", entity_name=client_id)],
            ops=[messages.AlterClientQuotasRequest.OpData(key=k, value=v) for k, v in bytes_per_second.items()],
        )
        response = self.ask(messages.AlterClientQuotasRequest(entries=[entry]))
        assert [one.error_code for one in response.entries] == [0], response


def poll_together(members: list[Driver]) -> list[Row]:
    """One poll of every member at the same time: a rebalance needs them all."""
    for member in members:
        member.ask("poll", max=500, timeout_ms=300)
    return [row for member in members for row in member.answer()]


def record(key: str | None, value: str | None, **more: Any) -> dict[str, Any]:
    return {"key": key, "value": value, "headers": [], **more}


def numbered(word: str, partition: int, count: int) -> list[dict[str, Any]]:
    return [record(str(i), f"{word} {partition} {i}") for i in range(count)]


def send(driver: Driver, topic: str, partition: int, records: list[dict[str, Any]], **how: Any) -> list[int]:
    """Send through a producer of its own and return the offsets."""
    settings = {"compression": "none", "acks": "all", "idempotent": False, "batch_bytes": 16384,
                "max_request_bytes": 1_000_000, **how}  # fmt: skip
    offsets: list[int] = driver("produce", topic=topic, partition=partition, records=records, **settings)
    return offsets


def read(driver: Driver, count: int) -> list[Row]:
    """Poll until at least `count` records came; more is the caller's business to notice."""
    deadline = time.monotonic() + STEP_SECONDS
    found: list[Row] = []
    while len(found) < count:
        found += driver("poll", max=count - len(found), timeout_ms=500)
        assert time.monotonic() < deadline, f"{len(found)} of {count} records"
    return found


def ends_of(rows: list[Row]) -> dict[tuple[str, int], int]:
    """The offset after the last record read of each partition."""
    ends: dict[tuple[str, int], int] = {}
    for topic, partition, offset, *_ in rows:
        ends[topic, partition] = max(offset + 1, ends.get((topic, partition), 0))
    return ends


def digest(values: list[str]) -> str:
    return hashlib.sha256("\n".join(values).encode()).hexdigest()
