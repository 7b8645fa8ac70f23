"""The metadata log on a disk: restarts, power cuts at every call, trimming; and Apache Kafka reads it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_kafka
import pytest

from barnabas.config.config import BrokerConfig
from barnabas.directory.storage import format_directory
from barnabas.log.disk import Disk, OsDisk
from barnabas.log.errors import KafkaStorageError
from barnabas.log.log_config import LogConfig
from barnabas.log.meta_properties import MetaProperties
from barnabas.metadata.controller_view import ControllerSettings
from barnabas.metadata.metadata_batch_loader import load_snapshot
from barnabas.metadata.snapshots import SnapshotPolicy
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.quorum.metadata_log import MetadataLog, QuorumStateFile, checkpoint_name
from barnabas.quorum.metadata_quorum import open_quorum
from barnabas.raft.election_state import ElectionState
from barnabas.raft.seams import SnapshotId
from barnabas.raft.voter_set_history import VotersFrom
from barnabas.raft.voters import VoterSet
from barnabas.simulation.disk import SimDisk
from tests.metadata.controller_harness import CLUSTER_ID, ControllerHarness

LISTENERS = {"listeners": "PLAINTEXT://localhost:9092"}
LOG = "__cluster_metadata-0"
TRIMMED = {"internal.metadata.log.segment.bytes": "400", "metadata.max.retention.bytes": "3000"}


def _raise(error: BaseException) -> None:
    raise error


class DiskHarness(ControllerHarness):
    """A controller over a metadata log on a disk; `start` opens whatever is there."""

    run_blocking: Any = None

    def __init__(
        self,
        disk: Disk,
        root: str,
        meta: MetaProperties,
        *,
        snapshot_bytes: int = 1 << 30,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.disk, self.root, self.meta = disk, root, meta
        self.config = BrokerConfig.from_properties({**LISTENERS, **(settings or {})})
        self.settings = ControllerSettings(node_id=meta.node_id, cluster_id=CLUSTER_ID)
        self.static = dict(self.config.properties)
        self.snapshots = SnapshotPolicy(snapshot_bytes)
        self.loop = None
        self.commits = []
        self.now_ms, self.wall_jump_ms = 1_000_000, 0
        self.start()

    def start(self) -> None:
        self.driver = open_quorum(
            self.disk, self.root, self.meta, self.config, clock=self.clock, run_blocking=self.run_blocking
        )
        self.attach(self.driver, _raise)
        self.driver.start()

    @property
    def metadata_log(self) -> MetadataLog:
        assert isinstance(self.driver.log, MetadataLog)
        return self.driver.log

    def topics(self) -> list[str]:
        return sorted(self.controller.image.topics.by_name)


def harness(disk: Disk, root: str = "/data", **options: object) -> DiskHarness:
    config = BrokerConfig.from_properties(LISTENERS)
    meta = format_directory(disk, root, CLUSTER_ID, 1, config, random.Random(1))
    return DiskHarness(disk, root, meta, **options)  # type: ignore[arg-type]


def test_everything_is_there_after_a_restart() -> None:
    disk = SimDisk()
    first = harness(disk)
    first.register()
    first.create("a", partitions=2, configs={"retention.ms": "5"})
    before = first.controller.image
    first.metadata_log.close()
    second = DiskHarness(disk, "/data", first.meta)
    assert second.controller.image.topics == before.topics
    assert second.controller.image.configs == before.configs
    assert second.driver.node.epoch == 2
    second.create("b")
    assert second.topics() == ["a", "b"]


def test_quorum_state_is_written_before_the_epochs_first_record() -> None:
    disk = SimDisk()
    order: list[str] = []
    first = harness(disk)
    first.metadata_log.close()

    def note(call: str, path: str) -> None:
        if call in ("pwrite", "rename", "write") and ("quorum-state" in path or path.endswith(".log")):
            order.append("quorum-state" if "quorum-state" in path else "log")

    disk.on_call = note
    DiskHarness(disk, "/data", first.meta)
    assert order[0] == "quorum-state"
    assert "log" in order
    assert QuorumStateFile(disk, f"/data/{LOG}").read() == ElectionState(epoch=2, leader_id=1)


def test_the_first_epoch_puts_the_voters_into_the_log_and_later_ones_do_not() -> None:
    disk = SimDisk()
    first = harness(disk)
    found = first.metadata_log.voters(VoterSet(()))
    assert found.last == VotersFrom(2, first.driver.node.voters)
    assert (found.at(1), found.at(2)) == (VotersFrom(-1, first.driver.node.voters), found.last)
    end = first.metadata_log.end_offset
    first.metadata_log.close()
    second = DiskHarness(disk, "/data", first.meta)
    assert second.metadata_log.end_offset == end + 1


def story(disk: SimDisk, acknowledged: list[str]) -> None:
    """Format, start, create topics with snapshots between; `acknowledged` holds what was answered."""
    node = harness(disk, snapshot_bytes=500)
    node.register()
    for number in range(4):
        node.create(f"t{number}")
        acknowledged.append(f"t{number}")


def calls_of_the_story() -> int:
    disk = SimDisk()
    story(disk, [])
    return disk.calls


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["power", "process"])
def test_a_cut_at_any_call_loses_nothing_that_was_answered(ending: str) -> None:
    class Cut(BaseException):
        pass

    for number in range(1, calls_of_the_story(), 3 if ending == "power" else 7):
        disk = SimDisk(number)
        reached = 0

        def cut(call: str, path: str, limit: int = number) -> None:
            nonlocal reached
            reached += 1
            if reached == limit:
                raise Cut

        disk.on_call = cut
        acknowledged: list[str] = []
        with pytest.raises(Cut):
            story(disk, acknowledged)
        disk.on_call = None
        if ending == "power":
            disk.crash()
        else:
            # Every write before the cut was whole; the cut of a write itself is the power's matter.
            disk.last_write = None
            disk.kill()
        if not disk.exists("/data/meta.properties"):
            assert not acknowledged
            continue
        meta = MetaProperties.decode(disk.read_file("/data/meta.properties"))
        again = DiskHarness(disk, "/data", meta)
        found = again.topics()
        assert found[: len(acknowledged)] == acknowledged
        assert len(found) <= len(acknowledged) + 1
        again.register(incarnation_id=b"n" * 16)
        again.create("after")
        assert "after" in again.topics()


def test_a_full_disk_refuses_a_change_and_takes_the_next_one_when_there_is_room() -> None:
    disk = SimDisk()
    node = harness(disk)
    node.register()
    node.create("a")
    disk.capacity = disk.used
    request = messages.CreateTopicsRequest(
        topics=[messages.CreateTopicsRequest.CreatableTopic(name="b", num_partitions=1, replication_factor=1)]
    )
    error = node.later(ApiKey.CREATE_TOPICS, request).exception()
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert node.topics() == ["a"]
    disk.capacity = None
    node.create("b")
    assert node.topics() == ["a", "b"]
    node.metadata_log.close()
    assert DiskHarness(disk, "/data", node.meta).topics() == ["a", "b"]


def test_a_snapshot_that_fails_stops_nothing() -> None:
    disk = SimDisk()
    node = harness(disk, snapshot_bytes=50)

    def refuse(call: str, path: str) -> OSError | None:
        return OSError(5, "no") if ".checkpoint" in path and call in ("write", "create", "rename") else None

    before = node.metadata_log.latest_snapshot()
    disk.on_call = refuse
    node.register()
    node.create("a")
    assert node.topics() == ["a"]
    assert node.metadata_log.latest_snapshot() == before
    disk.on_call = None
    node.create("b")
    assert node.metadata_log.latest_snapshot() != before


def test_old_snapshots_and_the_log_before_them_are_trimmed() -> None:
    disk = SimDisk()
    node = harness(
        disk,
        snapshot_bytes=2000,
        settings={"internal.metadata.log.segment.bytes": "4000", "metadata.max.retention.bytes": "6000"},
    )
    node.register()
    for number in range(60):
        node.create(f"t{number:02d}")
        node.send(
            ApiKey.DELETE_TOPICS,
            messages.DeleteTopicsRequest(topics=[messages.DeleteTopicsRequest.DeleteTopicState(name=f"t{number:02d}")]),
        )
    log = node.metadata_log
    snapshots = [name for name in disk.listdir(f"/data/{LOG}") if name.endswith(".checkpoint")]
    assert log.start_offset > 0
    assert checkpoint_name(SnapshotId(0, 0)) not in snapshots
    assert sum(disk.file_size(f"/data/{LOG}/{name}") for name in snapshots) < 6_000
    node.create("last")
    log.close()
    again = DiskHarness(disk, "/data", node.meta)
    assert again.topics() == ["last"]
    assert again.driver.node.voters == node.driver.node.voters


def test_a_log_that_ends_before_its_snapshot_is_begun_anew_behind_it() -> None:
    disk = SimDisk()
    node = harness(disk)
    node.register()
    node.create("a")
    snapshot = node.write_snapshot()
    node.metadata_log.close()
    for name in disk.listdir(f"/data/{LOG}"):
        if name.startswith("0" * 20) and not name.endswith(".checkpoint"):
            disk.remove(f"/data/{LOG}/{name}")
    again = DiskHarness(disk, "/data", node.meta)
    assert again.topics() == ["a"]
    assert again.metadata_log.start_offset == snapshot.end_offset
    again.create("b")


class Elsewhere:
    """A `run_blocking` whose work ends when told to."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def __call__(self, work: Callable[[], None]) -> Elsewhere.Future:
        future = Elsewhere.Future()

        def finish() -> None:
            work()
            for callback in future.callbacks:
                callback(future)

        self.waiting.append(finish)
        return future

    class Future:
        def __init__(self) -> None:
            self.callbacks: list[Callable[[Elsewhere.Future], object]] = []

        def add_done_callback(self, callback: Callable[[Elsewhere.Future], object]) -> None:
            self.callbacks.append(callback)

        def cancelled(self) -> bool:
            return False

        def exception(self) -> BaseException | None:
            return None


def test_a_flush_elsewhere_delays_the_commit_and_nothing_else() -> None:
    disk, elsewhere = SimDisk(), Elsewhere()

    class Apart(DiskHarness):
        run_blocking = elsewhere

    config = BrokerConfig.from_properties(LISTENERS)
    meta = format_directory(disk, "/data", CLUSTER_ID, 1, config, random.Random(1))
    node = Apart(disk, "/data", meta)
    assert node.metadata_log.end_offset == 3
    assert not node.controller.is_active
    elsewhere.waiting.pop()()
    assert node.controller.is_active
    assert node.controller.image.features.metadata_version is None
    elsewhere.waiting.pop()()
    assert node.controller.image.features.metadata_version == 33
    assert not elsewhere.waiting


def dump(path: Path) -> str:
    result = apache_kafka.run_tool("dump-log", "--cluster-metadata-decoder", "--files", str(path))
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.conform
def test_kafkas_dump_log_reads_log_snapshot_and_checkpoints(tmp_path: Path) -> None:
    node = harness(OsDisk(), str(tmp_path))
    node.register()
    node.create("orders", partitions=3, configs={"retention.ms": "5"})
    snapshot = node.write_snapshot()
    node.create("later")
    node.metadata_log.close()
    log = dump(tmp_path / LOG / "00000000000000000000.log")
    for expected in (
        "LeaderChange: {",
        "KRaftVoters {",
        '{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":33}}',
        '"type":"REGISTER_BROKER_RECORD","version":4',
        '"type":"TOPIC_RECORD","version":0,"data":{"name":"orders"',
        '"type":"CONFIG_RECORD","version":0,"data":{"resourceType":2,"resourceName":"orders","name":"retention.ms"',
        '"type":"PARTITION_RECORD","version":2,"data":{"partitionId":2',
    ):
        assert expected in log, expected
    assert "isvalid: false" not in log
    written = dump(tmp_path / LOG / checkpoint_name(snapshot))
    assert "SnapshotHeader" in written
    assert "SnapshotFooter" in written
    assert '"name":"orders"' in written
    assert '"name":"later"' not in written
    assert "FEATURE_LEVEL_RECORD" in dump(tmp_path / "bootstrap.checkpoint")
    assert "KRaftVoters" in dump(tmp_path / LOG / checkpoint_name(SnapshotId(0, 0)))


@pytest.mark.conform
def test_a_metadata_log_that_apache_kafka_wrote_is_replayed(tmp_path: Path) -> None:
    with apache_kafka.ApacheKafka(
        tmp_path, settings={"metadata.log.max.record.bytes.between.snapshots": "3000"}
    ) as kafka:
        for name in ("one", "two.three"):
            created = apache_kafka.run_tool(
                *("topics", "--bootstrap-server", kafka.bootstrap_servers, "--create", "--topic", name),
                *("--partitions", "3", "--config", "retention.ms=77"),
            )
            assert created.returncode == 0, created.stderr
        # A snapshot is due by size; Kafka writes it a moment after the commit.
        deadline = time.monotonic() + 60
        while len(list((kafka.data_dir / LOG).glob("*.checkpoint"))) == 0 and time.monotonic() < deadline:
            time.sleep(0.1)
    meta = MetaProperties.decode((kafka.data_dir / "meta.properties").read_bytes())
    node = DiskHarness(OsDisk(), str(kafka.data_dir), meta)
    assert node.topics() == ["one", "two.three"]
    assert node.controller.image.configs.for_resource(2, "one") == {"retention.ms": "77"}
    partitions = node.controller.image.topics.by_name["two.three"].partitions
    assert [partition.replicas for partition in partitions.values()] == [(meta.node_id,)] * 3
    assert node.controller.image.features.level("transaction.version") == 2
    for path in sorted((kafka.data_dir / LOG).glob("*.checkpoint")):
        assert list(load_snapshot(path.read_bytes())) or path.name == checkpoint_name(SnapshotId(0, 0))
    node.metadata_log.close()


def test_a_log_without_the_snapshot_that_it_begins_at_is_not_opened() -> None:
    """The records before it are nowhere, so what follows means nothing; and nothing of it is cut off."""
    disk = SimDisk()
    node = harness(disk, snapshot_bytes=500, settings=TRIMMED)
    node.register()
    for number in range(20):
        node.create(f"t{number}")
    log = node.metadata_log
    start_offset, end_offset = log.start_offset, log.end_offset
    assert start_offset > 0
    log.close()
    kept = {name: disk.contents(f"/data/{LOG}/{name}") for name in disk.listdir(f"/data/{LOG}")}
    for name in kept:
        if name.endswith(".checkpoint"):
            disk.remove(f"/data/{LOG}/{name}")
    with pytest.raises(KafkaStorageError, match="no snapshot has what was before"):
        DiskHarness(disk, "/data", node.meta)
    for name, data in kept.items():
        if name.endswith(".checkpoint"):
            disk.put(f"/data/{LOG}/{name}", data)
    assert DiskHarness(disk, "/data", node.meta).metadata_log.end_offset == end_offset + 1


@pytest.mark.parametrize("seed", range(10))
def test_the_directory_of_a_new_log_survives_the_loss_of_power(seed: int) -> None:
    """A voter that forgets its vote and its log together with the directory could elect a leader without committed records."""
    disk = SimDisk(seed)
    disk.mkdir("/data")
    disk.sync_dir("/")
    MetadataLog(disk, "/data", LogConfig(), now_ms=lambda: 7)
    disk.crash()
    assert disk.is_dir(f"/data/{LOG}")
