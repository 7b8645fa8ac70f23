"""Other people's clients while each node of three dies and returns: kafka-python, aiokafka and Apache Kafka's own programs.

One node after the other is killed, so the leader of every partition and every coordinator dies once. Idempotent producers must lose,
repeat and disorder nothing; members of groups of each protocol must go on and miss nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import apache_kafka
import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.kafkatest.verifiable import PRODUCER, write_properties
from tests.cluster.load import Load
from tests.cluster.program import END_SECONDS, Event, Program
from tests.cluster.records import read_partition
from tests.cluster.topics import create_safe_topic
from tests.cluster.waiting import PATIENCE_SECONDS, wait_for

pytestmark = [pytest.mark.conform, pytest.mark.long, pytest.mark.timeout(1800)]

PARTITIONS = 3
MORE = 50
PRODUCERS = ("kafka-python", "aiokafka", "verifiable-producer")
CONSUMERS = (
    "kafka-python",
    "aiokafka",
    "classic verifiable-consumer",
    "consumer verifiable-consumer",
    "share console-share-consumer",
)


class Client(Program):
    """A client that goes on until it is asked to end.

    Attributes:
        values: the values that it acknowledged or read, in order, with their partitions.
        errors: of records that it gave up.
    """

    def __init__(self, name: str, command: list[str], folder: Path) -> None:
        super().__init__(name, command, folder)
        self.values: list[tuple[str, int]] = []
        self.errors: list[Event] = []

    def line(self, text: str) -> None:
        if text.isdigit():  # console-share-consumer prints values alone
            self.values.append((text, -1))
        else:
            super().line(text)

    def event(self, event: Event) -> None:
        name = event.get("name")
        if name in ("producer_send_success", "record_data"):
            self.values.append((event["value"], event.get("partition", -1)))
        elif name == "producer_send_error":
            self.errors.append(event)

    def more(self) -> Callable[[], bool]:
        """Return what is true when it has got further, and still runs."""
        goal = len(self.values) + MORE
        return lambda: self.is_up and len(self.values) >= goal


class Programs:
    """Starts programs, and ends those that are left."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.running: list[Client] = []

    def start(self, name: str, *command: str) -> Client:
        made = Client(name.replace(" ", "-"), list(command), self.folder)
        self.running.append(made)
        made.start()
        return made

    def python(self, library: str, role: str, topic: str) -> Client:
        return self.start(
            f"{library} {role}", sys.executable, "-m", "tests.cluster.programs", library, role,
            self.cluster.bootstrap_servers, topic, str(PARTITIONS), f"{topic}-{library}",
        )  # fmt: skip

    def produce(self, name: str, topic: str) -> Client:
        if name != "verifiable-producer":
            return self.python(name, "produce", topic)
        config = write_properties(self.folder / "producer.properties", PRODUCER)
        return self.start(name, *apache_kafka.tool_command(
            name, "--bootstrap-server", self.cluster.bootstrap_servers, "--topic", topic, "--throughput", "100",
            "--acks", "-1", "--command-config", config,
        ))  # fmt: skip

    def consume(self, name: str, topic: str) -> Client:
        if " " not in name:
            return self.python(name, "consume", topic)
        protocol, tool = name.split()
        common = ("--bootstrap-server", self.cluster.bootstrap_servers, "--topic", topic)
        if protocol == "share":
            group = f"{topic}-share"
            done = apache_kafka.run_tool(
                "configs", *common[:2], "--alter", "--entity-type", "groups", "--entity-name", group,
                "--add-config", "share.auto.offset.reset=earliest",
            )  # fmt: skip
            assert not done.returncode, done.stdout + done.stderr
            return self.start(name, *apache_kafka.tool_command(tool, *common, "--group", group))
        more = (
            "--group-id",
            f"{topic}-{protocol}",
            "--group-protocol",
            protocol,
            "--verbose",
            "--reset-policy",
            "earliest",
        )
        return self.start(name, *apache_kafka.tool_command(tool, *common, *more))

    def go_on(self, what: str) -> None:
        """Wait until each has got further."""
        for each, is_further in [(each, each.more()) for each in self.running]:
            each.await_that(f"it goes on {what}", is_further, PATIENCE_SECONDS)


@pytest.fixture
def programs(kind: str, tmp_path: Path) -> Iterator[Programs]:
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(kind, tmp_path / "nodes"))
        made = Programs(cluster, tmp_path)
        stack.callback(lambda: [each.stop(is_clean=False) for each in made.running])
        yield made


def kill_each_node(programs: Programs) -> None:
    cluster = programs.cluster
    programs.go_on("in peace")
    for node in cluster.nodes.values():
        node.kill()
        programs.go_on(f"without node {node.node_id}")
        cluster.start_again(node)
        cluster.await_in_sync(sorted(cluster.all_topics()))
        programs.go_on(f"with node {node.node_id} again")


def values_of(cluster: Cluster, topic: str, **how: Any) -> list[list[int]]:
    """Return the values of each partition, in order."""
    servers = cluster.bootstrap_servers
    return [[int(value) for _, value in read_partition(servers, topic, index, **how)] for index in range(PARTITIONS)]


@pytest.mark.parametrize("kind", ["barnabas"])
def test_producers_lose_repeat_and_disorder_nothing(programs: Programs) -> None:
    for name in PRODUCERS:
        create_safe_topic(programs.cluster, f"by-{name}")
        programs.produce(name, f"by-{name}")
    kill_each_node(programs)
    for program, name in zip(programs.running, PRODUCERS, strict=True):
        program.stop()
        assert not program.errors, f"{name} gave up: {program.errors[:3]}"
        found = values_of(programs.cluster, f"by-{name}")
        for index, values in enumerate(found):
            assert values == sorted(set(values)), f"{name}: partition {index} has records twice or out of order"
        told = {int(value) for value, _ in program.values}
        lost = told - {value for values in found for value in values}
        assert not lost, f"{name}: {len(lost)} acknowledged records are lost: {sorted(lost)[:10]}"


@pytest.mark.parametrize("kind", ["barnabas"])
def test_groups_of_every_protocol_go_on_and_miss_nothing(programs: Programs) -> None:
    topic = "read"
    create_safe_topic(programs.cluster, topic)
    with Load(programs.cluster.bootstrap_servers, topic, PARTITIONS, per_second=200) as load:
        for name in CONSUMERS:
            programs.consume(name, topic)
        kill_each_node(programs)
    for program in programs.running:
        wait_for(
            f"{program} has read all {load.sent}",
            lambda program=program: len({value for value, _ in program.values}) == load.sent,  # type: ignore[misc]
            END_SECONDS,
        )
