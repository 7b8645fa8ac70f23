"""A data directory fails, of several: the node goes on with the others, and says which replicas are lost."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.config.cannot_start import CannotStart
from barnabas.log.errors import KafkaStorageError
from barnabas.metrics.replica_families import families
from barnabas.metrics.source import partition_rows
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AlterReplicaLogDirsRequest,
    FetchRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
)
from barnabas.records.builder import build_batch
from barnabas.simulation.disk import SimDisk
from tests.node.asking import fetched, produce
from tests.node.several_directories import Several, break_directory

ROOT = Path("/disks")
OK, STORAGE_ERROR = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def node() -> Iterator[Several]:
    made = with_topics(SimDisk())
    yield made
    made.close()


def with_topics(disk: SimDisk) -> Several:
    """Return a node with one replica in each directory: t0 in a, t1 in b, t2 in c."""
    made = Several(ROOT, disk)
    for index, name in enumerate("abc"):
        made.create_topic(f"t{index}")
        assert made.assigned(f"t{index}") == name
        produce(made, f"t{index}", b"first")
    return made


def produced(node: Several, topic: str) -> int:
    partition = ProduceRequest.PartitionProduceData(
        index=0, records=bytes(build_batch([(node.now_ms, None, b"x", [])]))
    )
    data = ProduceRequest.TopicProduceData(name=topic, partition_data=[partition])
    answer = node.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 9)
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


def fetch_error(node: Several, topic: str) -> int:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    wanted = FetchRequest.FetchTopic(topic=topic, partitions=[partition])
    answer = node.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[wanted]), 12)
    code: int = answer.responses[0].partitions[0].error_code
    return code


def until(node: Several, is_so: Callable[[], object]) -> None:
    for _ in range(5_000):
        if is_so():
            return
        node.loop.run_until_complete(asyncio.sleep(0.001))
    raise AssertionError("it has not happened")


def metadata_of(node: Several, topic: str) -> Any:
    found = {each.name: each for each in node.ask(MetadataRequest(topics=None)).topics}
    return found[topic].partitions[0]


def test_a_write_that_fails_takes_the_directory_and_not_the_node(
    node: Several, caplog: pytest.LogCaptureFixture
) -> None:
    disk = node.disk
    assert isinstance(disk, SimDisk)
    break_directory(disk, ROOT / "c")
    assert produced(node, "t2") == STORAGE_ERROR
    until(node, lambda: node.server.image.topics.by_name["t2"].partitions[0].leader == -1)
    assert [produced(node, topic) for topic in ("t0", "t1", "t2")] == [OK, OK, STORAGE_ERROR]
    assert [fetch_error(node, topic) for topic in ("t0", "t1", "t2")] == [OK, OK, STORAGE_ERROR]
    assert metadata_of(node, "t2").offline_replicas == [node.server.config.node_id]
    assert metadata_of(node, "t0").offline_replicas == []
    assert node.errors() == {"a": OK, "b": OK, "c": STORAGE_ERROR}
    assert node.described() == {"a": ["t0"], "b": ["t1"], "c": []}
    lines = [each.getMessage() for each in caplog.records if "offline until the next start" in each.getMessage()]
    assert lines == [
        "The data directory /disks/c is offline until the next start, and its 1 replicas with it: "
        "cannot write to /disks/c/t2-0/00000000000000000000.log: broken"
    ]
    metrics = "".join(families(node.server.replica_manager, list(partition_rows(node.server.services))))
    assert "kafka_log_logmanager_offlinelogdirectorycount 1\n" in metrics
    assert node.node.failure is None
    # New replicas go into the others, also one whose topic had its replica there.
    node.create_topic("t3")
    assert node.assigned("t3") in ("a", "b")
    assert "offline=['/disks/c']" in repr(node.server.directory_failures)


def test_a_replica_does_not_move_into_a_directory_that_is_offline(node: Several) -> None:
    lose(node, "c")
    Directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    topics = [AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name="t0", partitions=[0])]
    answer = node.ask(AlterReplicaLogDirsRequest(dirs=[Directory(path="/disks/c", topics=topics)]))
    assert answer.results[0].partitions[0].error_code == STORAGE_ERROR


def test_a_lost_replica_answers_no_offsets(node: Several) -> None:
    lose(node, "c")
    Partition, Topic = ListOffsetsRequest.ListOffsetsPartition, ListOffsetsRequest.ListOffsetsTopic
    asked = Topic(name="t2", partitions=[Partition(partition_index=0, timestamp=-1)])
    answer = node.ask(ListOffsetsRequest(replica_id=-1, topics=[asked]))
    assert answer.topics[0].partitions[0].error_code == STORAGE_ERROR


def lose(node: Several, name: str) -> None:
    """Let the next sync of a directory's log fail."""
    assert isinstance(node.disk, SimDisk)
    break_directory(node.disk, ROOT / name)
    topic = f"t{'abc'.index(name)}"
    log = node.server.replica_manager.topics[topic].partitions[0].log
    log.flush_elsewhere()
    until(node, lambda: log is not node.server.replica_manager.topics[topic].partitions[0].open_log or failed(node))


def said(node: Several) -> str:
    assert isinstance(node.node.failure, KafkaStorageError)
    return node.node.failure.message


def failed(node: Several) -> bool:
    return node.node.failure is not None


def test_a_deleted_topic_leaves_its_lost_replica_behind(node: Several) -> None:
    lose(node, "c")
    replicas = node.server.replica_manager
    replicas.log_manager.delete("t2", 0)
    assert ("t2", 0) not in replicas.log_manager.directories[2].names()


def test_a_full_disk_is_not_a_broken_one(node: Several) -> None:
    assert isinstance(node.disk, SimDisk)
    break_directory(node.disk, ROOT / "c", errno.ENOSPC)
    assert produced(node, "t2") == STORAGE_ERROR
    assert fetched(node, "t2")
    assert node.errors()["c"] == OK
    node.disk.on_call = None
    assert produced(node, "t2") == OK


def test_the_directory_of_the_metadata_stops_the_node() -> None:
    node = with_topics(SimDisk())
    lose(node, "b")
    assert said(node).startswith("/disks/b, without which this node cannot go on, has failed: a sync of /disks/b/t1-0")
    node.close()


def test_the_broker_stops_if_the_controller_does_not_learn_of_it() -> None:
    node = Several(ROOT, SimDisk(), **{"log.dir.failure.timeout.ms": "1", "broker.heartbeat.interval.ms": "60000"})
    for index in range(3):
        node.create_topic(f"t{index}")
        produce(node, f"t{index}", b"first")
    node.server.lifecycle.close()
    lose(node, "c")
    until(node, lambda: failed(node))
    assert said(node).startswith("the controller does not know after 1 ms that /disks/c has failed: a sync")
    node.close()


def test_the_next_start_finds_what_the_lost_directory_had() -> None:
    disk = SimDisk()
    node = with_topics(disk)
    lose(node, "c")
    assert produced(node, "t0") == OK
    node.close()
    assert sorted(path for path in disk.paths() if path.endswith(".kafka_cleanshutdown")) == [
        "/disks/a/.kafka_cleanshutdown",
        "/disks/b/.kafka_cleanshutdown",
    ]
    disk.on_call = None
    again = Several(ROOT, disk, seed=3)
    assert again.errors() == {"a": OK, "b": OK, "c": OK}
    until(again, lambda: again.server.image.topics.by_name["t2"].partitions[0].leader >= 0)
    assert b"first" in fetched(again, "t2")
    assert node.node.log_manager.broker_epoch == -1
    again.close()


def test_a_start_without_a_directory_that_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    disk = SimDisk()
    with_topics(disk).close()
    break_directory(disk, ROOT / "c", reads_too=True)
    node = Several(ROOT, disk, seed=2)
    assert any("The data directory /disks/c is offline until the next start" in each.message for each in caplog.records)
    assert node.errors() == {"a": OK, "b": OK, "c": STORAGE_ERROR}
    assert node.described() == {"a": ["t0"], "b": ["t1"], "c": []}
    # The replica of t2 is in the directory that cannot be read: no empty log takes its place.
    assert [produced(node, topic) for topic in ("t0", "t1", "t2")] == [OK, OK, STORAGE_ERROR]
    assert metadata_of(node, "t2").offline_replicas == [node.server.config.node_id]
    node.create_topic("t3")
    assert produced(node, "t3") == OK
    assert sorted(topic for topics in node.described().values() for topic in topics) == ["t0", "t1", "t3"]
    node.close()
    disk.on_call = None
    again = Several(ROOT, disk, seed=3)
    until(again, lambda: again.server.image.topics.by_name["t2"].partitions[0].leader >= 0)
    assert b"first" in fetched(again, "t2")
    again.close()


def test_no_start_without_the_metadata() -> None:
    disk = SimDisk()
    with_topics(disk).close()
    break_directory(disk, ROOT / "b", reads_too=True)
    with pytest.raises(CannotStart, match="cannot use the data directory /disks/b"):
        Several(ROOT, disk)


def break_reads(node: Several, name: str, *calls: str) -> None:
    """Let a directory's files take writes, and give nothing."""
    assert isinstance(node.disk, SimDisk)

    def failed(call: str, path: str) -> OSError | None:
        return OSError(errno.EIO, "broken", path) if call in calls and path.startswith(f"{ROOT / name}/") else None

    node.disk.on_call = failed


def test_of_a_fetch_only_the_log_that_cannot_be_read_gets_the_error(node: Several) -> None:
    break_reads(node, "c", "pread")
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=[partition]) for topic in ("t0", "t2", "t1")]
    answer = node.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), 12)
    found = {each.topic: each.partitions[0] for each in answer.responses}
    assert {name: each.error_code for name, each in found.items()} == {"t0": OK, "t1": OK, "t2": STORAGE_ERROR}
    assert [b"first" in bytes(found[name].records) for name in ("t0", "t1", "t2")] == [True, True, False]
    assert isinstance(node.disk, SimDisk)
    node.disk.on_call = None
    assert b"first" in fetched(node, "t2")


@pytest.mark.parametrize("timestamp", [0, -3])
def test_of_offsets_by_time_only_the_log_that_cannot_be_read_gets_the_error(node: Several, timestamp: int) -> None:
    break_reads(node, "c", "pread", "read", "open")
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topics = [ListOffsetsRequest.ListOffsetsTopic(name=f"t{index}", partitions=[partition]) for index in range(3)]
    answer = node.ask(ListOffsetsRequest(replica_id=-1, topics=topics))
    assert [topic.partitions[0].error_code for topic in answer.topics] == [OK, OK, STORAGE_ERROR]
