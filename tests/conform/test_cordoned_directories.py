"""Cordoned directories (KIP-1066): Apache Kafka and barnabas answer the same requests alike, and place replicas alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.client.admin import Admin
from barnabas.client.cluster import Cluster
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AlterReplicaLogDirsRequest,
    CreateTopicsRequest,
    DescribeLogDirsRequest,
    IncrementalAlterConfigsRequest,
)
from tests.conform.brokers import await_leaders
from tests.conform.same_directory.nodes import Barnabas
from tests.conform.test_directory_moves import NAMES, KafkaOnDisks

pytestmark = [pytest.mark.conform, pytest.mark.timeout(300)]

SET, DELETE, APPEND, SUBTRACT = range(4)


class Asked:
    """One broker with three directories, and what it is asked."""

    def __init__(self, cluster: Cluster, servers: str, folder: Path) -> None:
        self.cluster, self.servers, self.folder = cluster, servers, folder

    def alter(self, value: str | None, operation: int = SET) -> tuple[str, str | None]:
        """Change the setting; return the code and the message, with D for the folder of the directories."""
        request = IncrementalAlterConfigsRequest
        config = request.AlterableConfig(name="cordoned.log.dirs", config_operation=operation, value=value)
        resource = request.AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])
        (answer,) = self.cluster.any_connection().request(request(resources=[resource])).responses
        message = (answer.error_message or "").replace(str(self.folder), "D") or None
        return ErrorCode(answer.error_code).name, message

    def create(self, topic: str, **assigned: list[int]) -> tuple[str, str | None]:
        request = CreateTopicsRequest
        made = request.CreatableTopic(name=topic, num_partitions=3, replication_factor=1)
        if assigned:
            made.num_partitions = made.replication_factor = -1
            made.assignments = [
                request.CreatableReplicaAssignment(partition_index=number, broker_ids=[1])
                for number in assigned["partitions"]
            ]
        (answer,) = self.cluster.any_connection().request(request(topics=[made], timeout_ms=30_000)).topics
        return ErrorCode(answer.error_code).name, answer.error_message

    def move(self, topic: str, target: str) -> str:
        request = AlterReplicaLogDirsRequest
        of_topic = request.AlterReplicaLogDirTopic(name=topic, partitions=[0])
        directory = request.AlterReplicaLogDir(path=str(self.folder / target), topics=[of_topic])
        (answer,) = self.cluster.any_connection().request(request(dirs=[directory])).results
        return ErrorCode(answer.partitions[0].error_code).name

    def described(self) -> dict[str, bool]:
        answer = self.cluster.any_connection().request(DescribeLogDirsRequest(topics=[]))
        return {Path(each.log_dir).name: each.is_cordoned for each in answer.results}

    def cordoned(self) -> list[str]:
        return [name for name, is_cordoned in sorted(self.described().items()) if is_cordoned]

    def homes(self, topic: str) -> list[str]:
        """Return the directories with partitions of a topic, sorted."""
        with Admin(self.servers) as admin:
            (found,) = admin.describe_log_dirs().values()
        assert isinstance(found, list), found
        return sorted(Path(each.path).name for each in found for one in each.replicas if one.partition.topic == topic)


def until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def scenario(asked: Asked) -> list[object]:
    a, b, c = (str(asked.folder / name) for name in NAMES)
    seen: list[object] = [asked.alter(a), until(lambda: asked.cordoned() == [NAMES[0]]), asked.create("t")]
    await_leaders(asked.servers, {"t": 3})
    seen += [sorted(set(asked.homes("t"))), asked.move("t", NAMES[0]), asked.move("nowhere", NAMES[0])]
    seen += [asked.alter("/nowhere"), asked.alter(f"*,{b}"), asked.alter(f"{a},/nowhere,x"), asked.alter("/x", APPEND)]
    seen += [asked.alter(b, APPEND), until(lambda: asked.cordoned() == [NAMES[0], NAMES[1]])]
    seen += [asked.alter(a, SUBTRACT), until(lambda: asked.cordoned() == [NAMES[1]])]
    seen += [asked.alter("*"), until(lambda: asked.cordoned() == sorted(NAMES))]
    # The controller learns of it by the next heartbeat.
    seen += [
        until(lambda: asked.create(f"u{time.monotonic_ns()}")[0] == "INVALID_REPLICATION_FACTOR"),
        asked.create("v"),
    ]
    seen += [asked.create("named", partitions=[0, 1]), asked.alter(f"{a},{b},{c}"), asked.alter(None, DELETE)]
    await_leaders(asked.servers, {"named": 2})
    seen += [sorted(set(asked.homes("named"))), until(lambda: asked.cordoned() == [])]
    return [*seen, until(lambda: asked.create(f"w{time.monotonic_ns()}")[0] == "NONE")]


def seen_on(servers: str, folder: Path) -> list[object]:
    with Cluster(servers) as cluster:
        return scenario(Asked(cluster, servers, folder))


class KafkaWithMetadataApart(KafkaOnDisks):
    """Apache Kafka with three directories, and one more for the metadata log."""

    def properties(self) -> dict[str, str]:
        return {**super().properties(), "metadata.log.dir": str(self.folder / "metadata")}


def test_both_answer_and_place_alike(tmp_path: Path) -> None:
    """The metadata log is in a directory of its own. Apache Kafka formats it, barnabas takes it over, and Apache Kafka goes on."""
    kafka = KafkaWithMetadataApart(tmp_path, heap="512m")
    barnabas = Barnabas(tmp_path, port=kafka.port)
    servers = kafka.bootstrap_servers
    try:
        kafka.start()
        of_kafka = seen_on(servers, tmp_path)
        kafka.stop()
        barnabas.start()
        with Admin(servers) as admin:
            admin.delete_topics([each.name for each in admin.list_topics()])
        assert seen_on(servers, tmp_path) == of_kafka
        assert of_kafka[:4] == [("NONE", None), True, ("NONE", None), [NAMES[1], NAMES[2]]]
        barnabas.stop()
        kafka.start()
        await_leaders(servers, {"t": 3, "named": 2})
        kafka.stop()
        homes = sorted(path.parent.name for path in tmp_path.glob("*/*-0") if not path.name.startswith("u"))
        assert homes.count("metadata") == 1
    finally:
        barnabas.kill()
        kafka.kill()
