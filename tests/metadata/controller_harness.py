"""A metadata log in memory, and a controller over it: what tests of the controller run on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.clock import Clock
from barnabas.config.config_table import config_schema
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.controller_view import ControllerSettings, ControllerView
from barnabas.metadata.local_controller import LocalController
from barnabas.metadata.metadata_loader import MetadataLoader
from barnabas.metadata.quorum_controller import QuorumController
from barnabas.metadata.snapshot_generator import SnapshotGenerator
from barnabas.metadata.snapshots import SnapshotPolicy
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.raft.election_state import ElectionState
from barnabas.raft.raft_driver import RaftDriver
from barnabas.raft.raft_node import RaftNode
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.seams import SnapshotId
from barnabas.raft.voter_set_history import VoterSetHistory, VotersFrom
from barnabas.raft.voters import Voter, VoterSet
from barnabas.records.record_batch import read_header

DIRECTORY = b"d" * 16
INCARNATION = b"i" * 16
CLUSTER_ID = "test-cluster"


def directory_of(broker_id: int) -> bytes:
    """The directory of a broker; broker 1 is on the node of the sole voter."""
    return DIRECTORY if broker_id == 1 else DIRECTORY[1:] + bytes([broker_id])


class Settled:
    """A future that is set and read in one thread, without a loop."""

    def __init__(self) -> None:
        self._result: Any = None
        self._error: BaseException | None = None
        self._done = False

    def done(self) -> bool:
        return self._done

    def cancel(self) -> None:
        self._error, self._done = asyncio.CancelledError(), True

    def set_result(self, result: Any) -> None:
        assert not self._done
        self._result, self._done = result, True

    def set_exception(self, error: BaseException) -> None:
        assert not self._done
        self._error, self._done = error, True

    def exception(self) -> BaseException | None:
        return self._error

    def result(self) -> Any:
        assert self._done, "not answered yet"
        if self._error is not None:
            raise self._error
        return self._result


class ControllerLog:
    """Batches in a list. With `hold` set, flushes wait for `release`; with `error` set, appends raise it."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.snapshots: dict[SnapshotId, bytes] = {}
        self.high_watermark = -1
        self.start_offset = 0
        self.hold = False
        self.error: Exception | None = None
        self.waiting: list[Callable[[], None]] = []

    @property
    def end_offset(self) -> int:
        return read_header(self.batches[-1]).next_offset if self.batches else self.start_offset

    @property
    def last_epoch(self) -> int:
        return read_header(self.batches[-1]).partition_leader_epoch if self.batches else 0

    def append(self, batch: bytearray, leader_epoch: int) -> None:
        if self.error is not None:
            raise self.error
        header = read_header(batch)
        assert header.base_offset == self.end_offset
        assert header.partition_leader_epoch == leader_epoch
        self.batches.append(bytes(batch))

    def flush(self, done: Callable[[], None]) -> None:
        if self.hold:
            self.waiting.append(done)
        else:
            done()

    def release(self) -> None:
        waiting, self.waiting = self.waiting, []
        for done in waiting:
            done()

    def read(self, from_offset: int, to_offset: int) -> Iterator[memoryview]:
        for batch in self.batches:
            header = read_header(batch)
            if header.next_offset > from_offset and header.base_offset < to_offset:
                yield memoryview(batch)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        raise NotImplementedError

    def epoch_at(self, end_offset: int) -> int:
        raise NotImplementedError

    def earliest_snapshot(self) -> SnapshotId | None:
        raise NotImplementedError

    def truncate_to(self, offset: int) -> None:
        self.batches = [batch for batch in self.batches if read_header(batch).next_offset <= offset]

    def set_high_watermark(self, offset: int) -> None:
        assert self.high_watermark <= offset <= self.end_offset
        self.high_watermark = offset

    def latest_snapshot(self) -> SnapshotId | None:
        return max(self.snapshots, default=None)

    def read_snapshot(self, snapshot: SnapshotId) -> bytes:
        return self.snapshots[snapshot]

    async def write_snapshot(self, snapshot: SnapshotId, data: bytes) -> None:
        self.snapshots[snapshot] = data

    def trim(self) -> None:
        newest = max(self.snapshots)
        while self.batches and read_header(self.batches[0]).next_offset <= newest.end_offset:
            self.batches.pop(0)
        self.start_offset = newest.end_offset


class MemoryElections:
    def __init__(self) -> None:
        self.state: ElectionState | None = None

    def read(self) -> ElectionState | None:
        return self.state

    def write(self, state: ElectionState) -> None:
        self.state = state


class ControllerHarness:
    """One controller on a memory log; `restart` makes a new one over what the log holds."""

    def __init__(
        self,
        *,
        static: dict[str, str] | None = None,
        snapshots: SnapshotPolicy | None = None,
        loop: Any = None,
        **settings: Any,
    ) -> None:
        self.settings = ControllerSettings(node_id=1, cluster_id=CLUSTER_ID, **settings)
        self.log = ControllerLog()
        self.elections = MemoryElections()
        self.now_ms = 1_000_000
        self.wall_jump_ms = 0
        self.static = static or {}
        self.snapshots = snapshots
        self.commits: list[Any] = []
        self.faults: list[BaseException] = []
        self.loop = loop
        self.start()

    def view(self, version: int = 0) -> ControllerView:
        """Return what the active controller shows to its managers, for a request of a version."""
        return self.active._view(version)

    def start(self) -> None:
        node = RaftNode(
            ReplicaKey(1, DIRECTORY),
            VoterSetHistory(VotersFrom(0, VoterSet.of([Voter(1, DIRECTORY)]))),
            self.elections.read() or ElectionState(),
            self.log,
            self.clock,
            random.Random(1),
        )
        self.driver = RaftDriver(node, self.log, self.elections)  # type: ignore[arg-type]  # it needs no more than this
        self.attach(self.driver, self.faults.append)
        self.driver.start()

    def attach(self, driver: RaftDriver, on_fault: Callable[[BaseException], None]) -> None:
        """Put a loader, a generator of snapshots and a controller onto a driver that is not started."""
        self.loader = MetadataLoader(
            driver.log,
            quorum_high_watermark=lambda: driver.node.high_watermark,
            kraft_version=lambda: driver.node.kraft_version,
            loop=self.loop,
        )
        self.loader.add_publisher(lambda delta, image: self.commits.append((delta, image)))
        self.generator = SnapshotGenerator(
            driver.log,
            driver.node.history,
            self.snapshots or SnapshotPolicy(),
            self.clock,
            lambda: self.loader.loaded_bytes,
            self.loop,
        )
        self.loader.add_publisher(self.generator.publish)
        self.controller = LocalController(
            self.settings,
            ConfigResolver(config_schema(), self.settings.node_id, self.static, {}),
            driver,
            self.loader,
            create_future=Settled,  # type: ignore[arg-type]
            clock=self.clock,
            random=random.Random(7),
            on_fault=on_fault,
            loop=self.loop,
        )

    @property
    def active(self) -> QuorumController:
        assert self.controller.active is not None, "this node does not lead"
        return self.controller.active

    def write_snapshot(self) -> SnapshotId:
        """Write a snapshot of what is committed, at once."""
        written = self.generator.write(self.controller.image)
        with pytest.raises(StopIteration) as stopped:
            written.send(None)
        snapshot: SnapshotId = stopped.value.value
        return snapshot

    @property
    def clock(self) -> Clock:
        """Both times are `now_ms`, except that the wall clock may have jumped."""
        return Clock(lambda: self.now_ms + self.wall_jump_ms, lambda: self.now_ms)

    def restart(self) -> None:
        self.start()

    def send(self, api: ApiKey, request: Any, version: int | None = None, **options: Any) -> Any:
        """The answer, which must be there at once."""
        return self.later(api, request, version, **options).result()

    def later(self, api: ApiKey, request: Any, version: int | None = None, **options: Any) -> Any:
        version = request.MAX_VERSION if version is None else version
        return self.controller.handle(api, version, request, **options)

    def register(self, broker_id: int = 1, *, unfence: bool = True, **fields: Any) -> int:
        """Register a broker and unfence it; returns its epoch."""
        from barnabas.metadata.metadata_version import supported_features

        request = messages.BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=CLUSTER_ID,
            incarnation_id=fields.pop("incarnation_id", INCARNATION),
            listeners=[
                messages.BrokerRegistrationRequest.Listener(
                    name="PLAINTEXT", host="localhost", port=9092, security_protocol=0
                )
            ],
            features=[
                messages.BrokerRegistrationRequest.Feature(
                    name=name, min_supported_version=f.min, max_supported_version=f.max
                )
                for name, f in supported_features().items()
            ],
            log_dirs=[directory_of(broker_id)],
            **fields,
        )
        epoch: int = self.send(ApiKey.BROKER_REGISTRATION, request).broker_epoch
        if unfence:
            self.heartbeat(broker_id, epoch)
        return epoch

    def heartbeat(self, broker_id: int, epoch: int, **fields: Any) -> Any:
        offset = self.controller.image.provenance.offset
        request = messages.BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=offset, **fields
        )
        return self.send(ApiKey.BROKER_HEARTBEAT, request)

    def create(self, *names: str, partitions: int = 1, configs: dict[str, str] | None = None) -> Any:
        topic = messages.CreateTopicsRequest.CreatableTopic
        config = messages.CreateTopicsRequest.CreatableTopicConfig
        request = messages.CreateTopicsRequest(
            topics=[
                topic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=-1,
                    configs=[config(name=key, value=value) for key, value in (configs or {}).items()],
                )
                for name in names
            ],
            timeout_ms=1000,
        )
        return self.send(ApiKey.CREATE_TOPICS, request)
