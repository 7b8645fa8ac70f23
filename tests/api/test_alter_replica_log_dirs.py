"""AlterReplicaLogDirs (34) on a broker with one directory, with the responses of Kafka with one directory."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.api import alter_replica_log_dirs
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from tests.replication.hosting import Hosting


def ask(hosting: Hosting, *wanted: tuple[str, str, list[int]], version: int = 2) -> list[tuple[str, int, ErrorCode]]:
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDirsRequest.AlterReplicaLogDir(
                path=path,
                topics=[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name=topic, partitions=indexes)],
            )
            for path, topic, indexes in wanted
        ]
    )
    request = AlterReplicaLogDirsRequest.decode(request.encode(version), version)
    response = asyncio.run(alter_replica_log_dirs.handle(hosting.context(34, version), request))
    response = AlterReplicaLogDirsResponse.decode(response.encode(version), version)
    return [(t.topic_name, p.partition_index, ErrorCode(p.error_code)) for t in response.results for p in t.partitions]


@pytest.mark.parametrize("version", [1, 2])
def test_a_replica_cannot_move_to_another_directory(hosting: Hosting, version: int) -> None:
    hosting.create_topic("t", 2)
    root = hosting.logs.root_dir
    assert ask(hosting, (root, "t", [0]), ("/elsewhere", "t", [1]), (root, "u", [0]), version=version) == [
        ("t", 0, ErrorCode.NONE),
        ("t", 1, ErrorCode.LOG_DIR_NOT_FOUND),
        ("u", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_checks_have_kafkas_order(hosting: Hosting) -> None:
    hosting.create_topic("far", replicas=(7,), leader=7)
    root = hosting.logs.root_dir
    longest, longer = "x" * (255 - 42), "x" * (255 - 41)
    assert ask(
        hosting, (root, "far", [0]), ("nowhere", "gone", [0]), ("nowhere", longer, [0]), (root, longest, [0])
    ) == [
        ("far", 0, ErrorCode.REPLICA_NOT_AVAILABLE),
        ("gone", 0, ErrorCode.LOG_DIR_NOT_FOUND),
        (longer, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (longest, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_the_last_directory_counts(hosting: Hosting) -> None:
    hosting.create_topic("t")
    root = hosting.logs.root_dir
    assert ask(hosting, ("nowhere", "t", [0]), (root, "t", [0])) == [("t", 0, ErrorCode.NONE)]
    assert ask(hosting) == []
