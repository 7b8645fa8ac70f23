"""The assembly: what survives a restart, what a fault does, what a reset leaves."""

from __future__ import annotations

import asyncio
import errno
import os
import random
from contextlib import closing
from pathlib import Path

import pytest

from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.directory.storage import format_directory
from barnabas.log.disk import OsDisk, OsDiskFile, OsLock
from barnabas.log.running_file import RUNNING_FILE
from barnabas.metadata.controller_view import ControllerResult
from barnabas.metadata.partition_registration import LEADER_RECOVERED, LEADER_RECOVERING
from barnabas.metadata.quorum_controller import _change
from barnabas.node.node import Node
from barnabas.protocol.messages import (
    InitProducerIdRequest,
    PartitionChangeRecord,
)
from barnabas.simulation.disk import SimDisk
from tests.api.served_node import Serving
from tests.node.asking import commit, committed, fetched, produce, topics


def test_a_restart_finds_topics_records_groups_and_producer_ids(tmp_path: Path) -> None:
    node = Serving(tmp_path)
    node.create_topic("t", 3, retention_ms="-1")
    assert [produce(node, "t", b"%d" % number) for number in range(3)] == [0, 1, 2]
    assert commit(node, "g", 2) == 0
    first_id = node.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)).producer_id
    before, records = topics(node)["t"], fetched(node, "t")
    node.close()

    with closing(Serving(tmp_path)) as again:
        after = topics(again)["t"]
        assert (after.topic_id, len(after.partitions)) == (before.topic_id, 3)
        assert after.partitions[0].leader_epoch > before.partitions[0].leader_epoch
        assert fetched(again, "t") == records
        assert committed(again, "g") == 2
        assert produce(again, "t", b"more") == 3
        assert again.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)).producer_id > first_id


def partition_states(node: Serving) -> set[tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...], int]]:
    by_name = node.server.controller.image.topics.by_name
    return {
        (p.leader, p.isr, p.elr, p.last_known_elr, p.leader_recovery_state)
        for topic in by_name.values()
        for p in topic.partitions.values()
    }


def test_a_broker_that_stops_in_order_hands_its_partitions_over_and_gets_them_back(tmp_path: Path) -> None:
    node = Serving(tmp_path)
    node.create_topic("t", 3)
    produce(node, "t", b"one")
    epoch = node.server.lifecycle.epoch
    node.close()
    assert partition_states(node) == {(-1, (), (1,), (1,), LEADER_RECOVERED)}
    marker = (tmp_path / "data" / ".kafka_cleanshutdown").read_text()
    assert marker == f'{{"version":0,"brokerEpoch":{epoch}}}'
    with closing(Serving(tmp_path)) as again:
        # Nobody was in doubt: no election was unclean.
        assert partition_states(again) == {(1, (1,), (), (), LEADER_RECOVERED)}
        assert again.server.lifecycle.epoch > epoch
        assert produce(again, "t", b"two") == 1


@pytest.mark.parametrize(("end", "state"), [("kill", LEADER_RECOVERED), ("power", LEADER_RECOVERING)])
def test_after_a_loss_of_power_a_replica_leads_because_it_was_the_last_to_lead(
    end: str, state: int, tmp_path: Path
) -> None:
    """After a kill it leads because it is in sync."""
    node = Serving(tmp_path)
    node.create_topic("t")
    produce(node, "t", b"one")
    node.node.fail(RuntimeError("the end"))
    node.close()
    if end == "power":
        (tmp_path / "data" / RUNNING_FILE).write_text("of another start of the machine")
    with closing(Serving(tmp_path)) as again:
        assert partition_states(again) == {(1, (1,), (), (), state)}
        assert b"one" in fetched(again, "t")


def test_a_partition_that_stays_without_a_leader_is_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    node = Serving(tmp_path)
    node.create_topic("t", 2)
    topic_id = node.server.controller.image.topics.by_name["t"].topic_id
    # As in a directory that comes from a cluster with another broker.
    change = PartitionChangeRecord(
        partition_id=1, topic_id=topic_id, replicas=[7], isr=[], leader=-1, eligible_leader_replicas=[7]
    )
    controller = node.server.controller.active
    assert controller is not None
    controller._append(_change(controller._view(), ControllerResult(None, [change])), None)
    node.close()
    line = "A partition has no leader: t-1 (eligible leader replica 7 is offline; start broker 7)"
    caplog.clear()
    with closing(Serving(tmp_path)) as again:
        assert [record.message for record in caplog.records if "no leader" in record.message] == [line]
        again.node._tick()
        assert len([record for record in caplog.records if "leader" in record.message]) == 1


def test_a_fault_ends_the_node_and_leaves_the_directory_as_a_crash_would(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    node = Serving(tmp_path)
    node.create_topic("t")
    produce(node, "t", b"one")
    waiting = node.loop.create_task(node.node.wait_failed())
    node.node.fail(RuntimeError("a record that cannot be replayed"))
    node.loop.run_until_complete(waiting)
    node.close()
    assert "cannot be replayed" in caplog.text
    assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    with closing(Serving(tmp_path)) as again:
        assert b"one" in fetched(again, "t")


def test_a_start_that_fails_gives_lock_and_port_back(tmp_path: Path) -> None:
    Serving(tmp_path).close()
    with pytest.raises(CannotStart, match="belongs to cluster"):
        Serving(tmp_path, cluster_id="AAAAAAAAAAAAAAAAAAAAAw")
    quorum_state = tmp_path / "data" / "__cluster_metadata-0" / "quorum-state"
    whole = quorum_state.read_bytes()
    quorum_state.write_bytes(b"{broken")
    with pytest.raises(CannotStart, match="quorum-state is not valid"):
        Serving(tmp_path)
    quorum_state.write_bytes(whole)
    node = Serving(tmp_path)
    assert node.node.cluster_id
    node.close()


class FailingDisk(OsDisk):
    """A disk that fails one call, by its name and the end of its path."""

    def __init__(self, call: str, end: str, number: int) -> None:
        self.failing = (call, end)
        self.number = number

    def _check(self, call: str, path: str) -> None:
        if call == self.failing[0] and path.endswith(self.failing[1]):
            raise OSError(self.number, os.strerror(self.number), path)

    def mkdir(self, path: str) -> None:
        self._check("mkdir", path)
        super().mkdir(path)

    def lock(self, path: str) -> OsLock:
        self._check("lock", path)
        return super().lock(path)

    def write_file_atomic(self, path: str, data: bytes, *, sync: bool = True) -> None:
        self._check("write", path)
        super().write_file_atomic(path, data, sync=sync)

    def open(self, path: str, *, create: bool = False) -> OsDiskFile:
        self._check("open", path)
        return super().open(path, create=create)


@pytest.mark.parametrize(
    ("call", "end", "number", "words"),
    [
        ("mkdir", "/data", errno.EACCES, r"cannot use the data directory \S+/data: Permission denied \(pass another"),
        ("lock", "/.lock", errno.EROFS, r"/data: \S+/\.lock: Read-only file system \(pass another"),
        ("write", "/meta.properties", errno.ENOSPC, r"/data: \S+/meta\.properties: No space left on device \(pass"),
        ("write", "/quorum-state", errno.ENOSPC, r"cannot open the metadata log in \S+: No space left on device"),
        ("open", ".log", errno.ENOSPC, r"cannot open the metadata log in \S+: cannot open the log \S+: No space left"),
    ],
)
def test_a_start_on_a_failing_disk_leaves_nothing_behind(
    tmp_path: Path, call: str, end: str, number: int, words: str
) -> None:
    with pytest.raises(CannotStart, match=words) as refused:
        Serving(tmp_path, disk=FailingDisk(call, end, number))
    assert "Errno" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_directory_is_empty_again_after_a_start_that_failed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(CannotStart, match="No space left"):
        Serving(tmp_path, disk=FailingDisk("write", "/quorum-state", errno.ENOSPC))
    assert list((tmp_path / "data").iterdir()) == []


def test_a_start_that_is_cancelled_in_its_recovery_gives_everything_back(tmp_path: Path) -> None:
    """As by a signal: the next start recovers, because the directory is as a crash left it."""
    node = Serving(tmp_path)
    node.create_topic("t", 3)
    produce(node, "t", b"one")
    node.node.fail(RuntimeError("a crash"))
    node.close()
    late = Serving(tmp_path, is_started=False)
    start = late.loop.create_task(late.node.start())
    late.loop.run_until_complete(asyncio.sleep(0))
    while not late.node.log_manager.logs:
        late.loop.run_until_complete(asyncio.sleep(0))
    assert len(late.node.log_manager.logs) == 1
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        late.loop.run_until_complete(start)
    late.loop.close()
    assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    with closing(Serving(tmp_path)) as again:
        assert b"one" in fetched(again, "t")


@pytest.mark.parametrize(
    "name", ["bootstrap.checkpoint", "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"]
)
def test_a_damaged_file_of_the_metadata_is_one_line(tmp_path: Path, name: str) -> None:
    config = BrokerConfig.from_properties({"log.dirs": f"{tmp_path}/data"})
    format_directory(OsDisk(), f"{tmp_path}/data", None, 1, config, random.Random(1))
    (tmp_path / "data" / name).write_bytes(b"x" * 100)
    with pytest.raises(
        CannotStart, match=r"cannot read the metadata in \S+/data: .* \(a file is damaged: restore it from"
    ):
        Serving(tmp_path)


def test_the_standstill_of_a_node_prolongs_the_sessions_of_brokers(tmp_path: Path) -> None:
    """A process that was stopped looks after its sessions before it reads the heartbeats that wait in its sockets."""
    serving = Serving(tmp_path)
    node = serving.node
    node._tick()
    assert node.quorum.local_controller is not None
    assert node.quorum.local_controller.active is not None
    sessions = node.quorum.local_controller.active.sessions
    before = dict(sessions.last_contact_ms)
    assert node._ticked_ms is not None
    node._ticked_ms -= 60_000
    node._tick()
    assert all(sessions.last_contact_ms[broker] > last + 50_000 for broker, last in before.items())
    assert before
    serving.close()


@pytest.mark.timeout(60)
def test_the_controller_of_a_node_that_stops_goes_on_until_its_broker_may_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of three nodes stop while the third stands still: they wait until one of their controllers fences it."""
    serving = Serving(tmp_path, broker_heartbeat_interval_ms="20")
    node, stop_broker = serving.node, serving.node.broker.stop

    async def hand_over_slowly(*, is_in_order: bool) -> None:
        before = node._ticked_ms
        while node._ticked_ms == before:
            await asyncio.sleep(0)
        await stop_broker(is_in_order=is_in_order)

    monkeypatch.setattr(node.broker, "stop", hand_over_slowly)
    serving.close()
    assert repr(node._timers) == "<Timers >", "nothing ticks in a node that has stopped"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"log.dirs": "/data,/other"},
            r"^/data is not formatted: mount its disk if it has one; else `barnabas storage format -t CLUSTER-ID",
        ),
        (
            {"metadata.log.dir": "meta"},
            r"^meta is not formatted: mount its disk if it has one; else `barnabas storage format -t CLUSTER-ID",
        ),
    ],
)
def test_directories_that_a_node_does_not_format(settings: dict[str, str], words: str) -> None:
    config = BrokerConfig.from_properties({"log.dirs": "/data", **settings})
    with closing(asyncio.new_event_loop()) as loop:
        node = Node(config, loop=loop, disk=SimDisk(), now_ms=lambda: 0, random=random.Random(1))
        with pytest.raises(CannotStart, match=words):
            node.check()
