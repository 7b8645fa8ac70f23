"""Nodes of a quorum in a simulated world: the server's driver, loader and controller, over channels, a network and disks."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Callable
from typing import Any

from barnabas.clock import Clock
from barnabas.config.config import BrokerConfig
from barnabas.config.config_table import config_schema
from barnabas.log.meta_properties import MetaProperties
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.snapshots import build_voters_checkpoint
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey, response_header_version
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.framing import parse_request_header
from barnabas.protocol.message import Message
from barnabas.protocol.primitives import uuid_to_str
from barnabas.quorum.metadata_log import DIRECTORY, MetadataLog, checkpoint_name
from barnabas.quorum.metadata_quorum import MetadataQuorum
from barnabas.raft.answer_messages import NodeAddress, answer_message, rejection
from barnabas.raft.raft_driver import RaftDriver
from barnabas.raft.request_messages import PeerRequest, read_request
from barnabas.raft.roles import Role
from barnabas.raft.seams import SnapshotId
from barnabas.raft.snapshot_messages import piece_message, read_snapshot_request
from barnabas.raft.voters import Voter, VoterEndpoint, VoterSet
from barnabas.records.record import iter_records
from barnabas.simulation.node import Node
from barnabas.simulation.world import World

CLUSTER = "h3p9Kx-TQ3OqgKQkXVdIew"
PORT = 9093
SERVED: dict[ApiKey, tuple[type[Message], int]] = {
    ApiKey.FETCH: (messages.FetchRequest, 18),
    ApiKey.VOTE: (messages.VoteRequest, 2),
    ApiKey.BEGIN_QUORUM_EPOCH: (messages.BeginQuorumEpochRequest, 1),
    ApiKey.END_QUORUM_EPOCH: (messages.EndQuorumEpochRequest, 1),
    ApiKey.FETCH_SNAPSHOT: (messages.FetchSnapshotRequest, 1),
    ApiKey.API_VERSIONS: (messages.ApiVersionsRequest, 4),
}


class QuorumConnection(asyncio.Protocol):
    """One connection to a node's part of the quorum; requests are answered one after the other."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._received = bytearray()
        self._transport: asyncio.Transport
        self._frames: asyncio.Queue[bytes] = asyncio.Queue()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._task = self._member.node.loop.create_task(self._serve())

    def connection_lost(self, error: Exception | None) -> None:
        self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            (size,) = struct.unpack_from(">i", self._received)
            if len(self._received) < 4 + size:
                return
            self._frames.put_nowait(bytes(self._received[4 : 4 + size]))
            del self._received[: 4 + size]

    async def _serve(self) -> None:
        while True:
            frame = await self._frames.get()
            header, body = parse_request_header(frame)
            kind, _ = SERVED[ApiKey(header.api_key)]
            request = kind.decode(frame[body:], header.api_version)
            response = await self._member.answer(request, header.api_version)
            out = struct.pack(">i", header.correlation_id)
            if response_header_version(header.api_key, header.api_version) >= 1:
                out += b"\0"
            out += response.encode(header.api_version)
            self._transport.write(struct.pack(">i", len(out)) + out)


class Member:
    """A node with its part of the quorum."""

    def __init__(self, node: Node, properties: dict[str, str], node_id: int) -> None:
        self.node = node
        self.id = node_id
        self.config = BrokerConfig.from_properties(properties)
        self.meta = MetaProperties(CLUSTER, node_id, uuid_to_str(bytes([node_id]) * 16))
        self.images: list[MetadataImage] = []
        self.faults: list[BaseException] = []
        self.answered: list[str] = []
        self.quorum: MetadataQuorum

    def __repr__(self) -> str:
        return f"<Member {self.id} {self.quorum!r} {self.log!r} faults={self.faults}>"

    @property
    def driver(self) -> RaftDriver:
        return self.quorum.driver

    @property
    def log(self) -> MetadataLog:
        assert isinstance(self.driver.log, MetadataLog)
        return self.driver.log

    async def start(self) -> None:
        if not self.node.is_up:
            self.node.boot()
        await self.node.run(self._start())

    async def _start(self) -> None:
        node, loop = self.node, self.node.loop
        self.images = []
        self.quorum = MetadataQuorum(
            self.config,
            self.meta,
            ConfigResolver(config_schema(), self.id, dict(self.config.properties), {}),
            disk=node.disk,
            loop=loop,
            clock=Clock(node.now_ms, lambda: int(loop.time() * 1000)),
            random=random.Random(self.id),
            run_blocking=lambda work: loop.run_in_executor(None, work),
            on_fault=self.faults.append,
        )
        self.quorum.loader.add_publisher(lambda _, image: self.images.append(image))
        await loop.create_server(lambda: QuorumConnection(self), node.host, PORT)
        self.quorum.start()

    async def answer(self, message: Any, version: int) -> Any:
        self.answered.append(type(message).__name__)
        if isinstance(message, messages.ApiVersionsRequest):
            item = messages.ApiVersionsResponse.ApiVersion
            return messages.ApiVersionsResponse(
                api_keys=[item(api_key=key, max_version=highest) for key, (_, highest) in SERVED.items()]
            )
        try:
            if isinstance(message, messages.FetchSnapshotRequest):
                piece = self.driver.answer_snapshot(read_snapshot_request(message, CLUSTER))
                return piece_message(piece, version, self._leader())
            return await self._answer_peer(message, version)
        except KafkaError as error:
            is_snapshot = isinstance(message, messages.FetchSnapshotRequest)
            return (
                messages.FetchSnapshotResponse(error_code=error.code) if is_snapshot else rejection(message, error.code)
            )

    async def _answer_peer(self, message: PeerRequest, version: int) -> Any:
        request = read_request(message, version, CLUSTER)
        return answer_message(request, await self.driver.answer(request), version, self._leader())

    def _leader(self) -> NodeAddress | None:
        endpoint = self.quorum.leader_endpoint()
        return None if endpoint is None else NodeAddress(self.driver.node.leader_id, endpoint.host, endpoint.port)

    async def run(self, work: Callable[[], Any]) -> Any:
        """Run a function in the node's process."""

        async def call() -> Any:
            return work()

        return await self.node.run(call())

    async def change(self, value: int | None, name: str = "log.retention.ms") -> None:
        """Have the active controller commit a change of the default settings."""
        resource = messages.IncrementalAlterConfigsRequest.AlterConfigsResource
        config = messages.IncrementalAlterConfigsRequest.AlterableConfig
        request = messages.IncrementalAlterConfigsRequest(
            resources=[
                resource(
                    resource_type=4,
                    resource_name="",
                    configs=[config(name=name, config_operation=0 if value is not None else 1, value=str(value))],
                )
            ]
        )

        async def ask() -> None:
            await self.quorum.controller.handle(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)

        await self.node.run(ask())

    def contents(self) -> list[bytes]:
        """The batches of the log."""
        return [bytes(batch) for batch in self.log.read(0, self.log.end_offset)]

    def values(self) -> list[bytes]:
        return [bytes(record.value or b"") for batch in self.contents() for record in iter_records(memoryview(batch))]


class Quorum:
    """Controllers 1 to `voters`, brokers after them.

    Args:
        is_dynamic: the formatted directories of the controllers name the voters; brokers know only the address of controller 1.
    """

    def __init__(
        self,
        seed: int = 1,
        *,
        voters: int = 3,
        brokers: int = 0,
        is_dynamic: bool = False,
        settings: dict[str, str] | None = None,
    ) -> None:
        self.world = World(seed)
        self.members: dict[int, Member] = {}
        nodes = [self.world.add_node(f"node {n}") for n in range(1, voters + brokers + 1)]
        listed = ",".join(f"{n}@{nodes[n - 1].host}:{PORT}" for n in range(1, voters + 1))
        for number, node in enumerate(nodes, 1):
            is_controller = number <= voters
            properties = {
                "process.roles": "controller" if is_controller else "broker",
                "node.id": str(number),
                "listeners": f"CONTROLLER://{node.host}:{PORT}" if is_controller else f"PLAINTEXT://{node.host}:9092",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
                "controller.quorum.voters": listed,
                "log.dirs": "/data",
                **(settings or {}),
            }
            if is_dynamic:
                del properties["controller.quorum.voters"]
                properties["controller.quorum.bootstrap.servers"] = f"{nodes[0].host}:{PORT}"
            node.disk.mkdir("/data")
            node.disk.sync_dir("/")
            self.members[number] = Member(node, properties, number)
        if is_dynamic:
            self._format([self.members[number] for number in range(1, voters + 1)])

    def _format(self, controllers: list[Member]) -> None:
        voters = VoterSet.of(
            Voter(each.id, bytes([each.id]) * 16, (VoterEndpoint("CONTROLLER", each.node.host, PORT),))
            for each in controllers
        )
        for each in controllers:
            each.node.disk.mkdir(f"/data/{DIRECTORY}")
            path = f"/data/{DIRECTORY}/{checkpoint_name(SnapshotId(0, 0))}"
            each.node.disk.write_file_atomic(path, build_voters_checkpoint(voters, 0))
            each.node.disk.sync_dir("/data")

    @property
    def up(self) -> list[Member]:
        return [member for member in self.members.values() if member.node.is_up]

    async def start(self) -> None:
        for member in self.members.values():
            await member.start()

    async def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        ends = self.world.loop.time() + seconds
        while not condition():
            assert self.world.loop.time() < ends, f"not within {seconds} s: {self.up}"
            await asyncio.sleep(0.01)

    async def leader(self) -> Member:
        """Wait for one active controller, and return it."""

        def active() -> list[Member]:
            return [
                each
                for each in self.up
                if each.quorum.local_controller is not None and each.quorum.controller.is_active
            ]

        await self.until(lambda: len(active()) == 1)
        return active()[0]

    async def agreed(self) -> None:
        """Wait until all that are up have the leader's log and image."""
        leader = await self.leader()

        def agree() -> bool:
            return all(
                each.images
                and each.images[-1].provenance[:2] == leader.images[-1].provenance[:2]
                and each.log.end_offset == leader.log.end_offset
                for each in self.up
            )

        await self.until(agree)
        logs = {tuple(each.contents()) for each in self.up if each.log.start_offset == leader.log.start_offset}
        assert len(logs) == 1
        assert all(each.images[-1].configs == leader.images[-1].configs for each in self.up)
        assert all(each.driver.node.role in (Role.LEADER, Role.FOLLOWER) for each in self.up)
        assert [fault for each in self.up for fault in each.faults] == []
        assert self.world.errors == []
