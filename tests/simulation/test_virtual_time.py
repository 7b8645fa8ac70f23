"""What takes seconds, hours or weeks happens at once in virtual time: long polls, session and rebalance timeouts, retention.

The whole broker runs; the clients are this room's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
    ProduceResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from barnabas.records.builder import build_batch
from barnabas.simulation.node_loop import NodeLoop
from barnabas.simulation.world import World
from tests.simulation.client import Client
from tests.simulation.history import Partition
from tests.simulation.workload import fetch

ADDRESS = ("127.0.0.1", 9092)
P = Partition("t", 0)

pytestmark = pytest.mark.slow


def in_virtual_time(story: Callable[[NodeLoop], Coroutine[Any, Any, None]], **settings: str) -> None:
    """Run `story` on a client's node against a started broker, and stop the broker after it."""
    properties = {
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    world = World(seed=1)
    broker, client = world.add_broker("broker", properties), world.add_node("client")
    assert broker.address == ADDRESS

    async def main() -> None:
        await broker.start()
        await client.run(story(client.loop))
        await broker.stop()

    world.play(main())
    assert world.errors == []


async def create(**config: str) -> None:
    configs = [CreateTopicsRequest.CreatableTopicConfig(name=n.replace("_", "."), value=v) for n, v in config.items()]
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)
    answer = await Client(ADDRESS, "admin").request(
        ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic], timeout_ms=1000), CreateTopicsResponse
    )
    assert answer.topics[0].error_code == 0, answer


async def produce(loop: NodeLoop, value: bytes) -> None:
    records = bytes(build_batch([(loop.now_ms(), None, value, [])]))
    partition = ProduceRequest.PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=[partition])]
    )
    answer = await Client(ADDRESS, "producer").request(ApiKey.PRODUCE, 9, request, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == 0, answer


async def earliest() -> int:
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-2)
    request = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[wanted])])
    answer = await Client(ADDRESS, "offsets").request(ApiKey.LIST_OFFSETS, 5, request, ListOffsetsResponse)
    return int(answer.topics[0].partitions[0].offset)


def test_a_long_poll_waits_its_time_and_no_longer() -> None:
    async def story(loop: NodeLoop) -> None:
        await create()
        began = loop.time()
        assert await fetch(Client(ADDRESS, "c", timeout=1000), P, 0, wait_ms=60_000) == (0, [])
        assert 60 <= loop.time() - began < 61

    in_virtual_time(story)


def test_a_long_poll_ends_when_a_record_comes() -> None:
    async def story(loop: NodeLoop) -> None:
        await create()
        waiting = loop.create_task(fetch(Client(ADDRESS, "c", timeout=1000), P, 0, wait_ms=60_000))
        await asyncio.sleep(20)
        assert not waiting.done()
        await produce(loop, b"news")
        began = loop.time()
        assert await waiting == (0, [(0, b"news")])
        assert loop.time() - began < 1

    in_virtual_time(story)


@pytest.mark.parametrize(
    "day_s", [pytest.param(3_600, id="of hours"), pytest.param(86_400, id="of days", marks=pytest.mark.long)]
)
def test_retention_deletes_segments_after_a_week(day_s: int) -> None:
    async def story(loop: NodeLoop) -> None:
        await create(segment_ms=str(day_s * 1000))
        for _ in range(10):
            await produce(loop, b"a day's record")
            await asyncio.sleep(day_s)
        # Days 0 to 3 are more than a week old, and retention has looked at least once since.
        await asyncio.sleep(600)
        assert await earliest() == 4

    of_hours = {} if day_s == 86_400 else {"log_retention_ms": str(7 * day_s * 1000)}
    in_virtual_time(story, **of_hours)


def test_infinite_retention_outlives_the_default() -> None:
    async def story(loop: NodeLoop) -> None:
        await create(segment_ms="3600000", retention_ms="-1")
        for _ in range(12):
            await produce(loop, b"an hour's record")
            await asyncio.sleep(3_600)
        assert await earliest() == 0

    in_virtual_time(story, log_retention_ms="7200000")


class Member:
    """A member of a classic group that does what it is told."""

    def __init__(self, name: str, session_ms: int = 10_000, rebalance_ms: int = 60_000) -> None:
        self.client = Client(ADDRESS, name, timeout=10_000)
        self.session_ms, self.rebalance_ms = session_ms, rebalance_ms
        self.member_id, self.generation = "", -1

    async def join(self) -> Any:
        await self.client.request(
            ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["g"]), FindCoordinatorResponse
        )
        while True:
            request = JoinGroupRequest(
                group_id="g",
                session_timeout_ms=self.session_ms,
                rebalance_timeout_ms=self.rebalance_ms,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")],
            )
            answer = await self.client.request(ApiKey.JOIN_GROUP, 5, request, JoinGroupResponse)
            self.member_id = answer.member_id or self.member_id
            if answer.error_code not in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
                self.generation = answer.generation_id
                return answer

    async def sync(self, leader: bool, members: list[str]) -> Any:
        assignments = [SyncGroupRequest.SyncGroupRequestAssignment(member_id=m, assignment=m.encode()) for m in members]
        request = SyncGroupRequest(
            group_id="g",
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=assignments if leader else [],
        )
        return await self.client.request(ApiKey.SYNC_GROUP, 3, request, SyncGroupResponse)

    async def heartbeat(self) -> int:
        request = HeartbeatRequest(group_id="g", generation_id=self.generation, member_id=self.member_id)
        return int((await self.client.request(ApiKey.HEARTBEAT, 3, request, HeartbeatResponse)).error_code)


async def group_state() -> tuple[str, int]:
    answer = await Client(ADDRESS, "admin").request(
        ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(groups=["g"]), DescribeGroupsResponse
    )
    return answer.groups[0].group_state, len(answer.groups[0].members)


async def stable_pair() -> tuple[Member, Member]:
    """Two members of a stable group."""
    a, b = Member("a"), Member("b")
    await a.join()
    await a.sync(True, [a.member_id])
    joining = asyncio.ensure_future(b.join())
    while await a.heartbeat() != ErrorCode.REBALANCE_IN_PROGRESS:
        await asyncio.sleep(0.5)
    joined = await a.join()
    await joining
    members = [m.member_id for m in joined.members]
    await asyncio.gather(a.sync(True, members), b.sync(False, []))
    assert await group_state() == ("Stable", 2)
    return a, b


def test_a_silent_member_is_out_after_its_session_timeout() -> None:
    async def story(loop: NodeLoop) -> None:
        await create()
        a, _b = await stable_pair()
        for _ in range(8):
            await asyncio.sleep(1)
            assert await a.heartbeat() == ErrorCode.NONE
        await asyncio.sleep(3)
        assert await a.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
        assert len((await a.join()).members) == 1

    in_virtual_time(story)


def test_a_member_that_does_not_rejoin_is_out_after_the_rebalance_timeout() -> None:
    async def story(loop: NodeLoop) -> None:
        await create()
        a, b = await stable_pair()
        b.session_ms = 1_000_000
        newcomer = Member("c", rebalance_ms=60_000)
        joining = asyncio.ensure_future(newcomer.join())
        await asyncio.sleep(1)
        rejoining = asyncio.ensure_future(a.join())
        began = loop.time()
        while not rejoining.done() and loop.time() - began < 120:
            await asyncio.sleep(2)
            assert await b.heartbeat() in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID)
        assert 55 < loop.time() - began < 66
        assert len((await rejoining).members) == 2
        assert (await joining).error_code == ErrorCode.NONE
        assert await b.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID

    in_virtual_time(story)
