"""The loop goes on: after errors, after a wait, and with turns for others."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator

import pytest

from barnabas.api import fetch
from barnabas.client.errors import ConnectionLost
from barnabas.log.log_config import LogConfig
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from barnabas.replication import replica_fetcher
from barnabas.replication.replica_fetcher import FetcherConfig, ReplicaFetcher
from barnabas.replication.replica_fetcher_loop import ReplicaFetcherLoop
from barnabas.simulation.world_loop import WorldLoop
from barnabas.steps import sleep, step
from barnabas.turns import WRITE
from tests.replication.following import Node, over_the_wire, registration
from tests.replication.hosting import Hosting
from tests.replication.syncing import SyncedNode
from tests.short_turns import set_turn

WAIT_MS = 70
BACKOFF_MS = 50


class Leader:
    """The leader's end of a slow network: each answer takes the time that an empty fetch may wait."""

    def __init__(self, node: Node, loop: WorldLoop) -> None:
        self.node, self.loop = node, loop
        self.asked_ms: list[int] = []
        self.lost = 0
        self.lost_offsets = 0

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        self.asked_ms.append(int(self.loop.time() * 1000))
        if self.lost:
            self.lost -= 1
            raise ConnectionLost("lost the connection")
        response = self.node.fetch(request)
        if not any(data.records or data.error_code for topic in response.responses for data in topic.partitions):
            await sleep(request.max_wait_ms / 1000, self.loop)
        return over_the_wire(response)

    async def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        if self.lost_offsets:
            self.lost_offsets -= 1
            raise ConnectionLost("lost the connection")
        return self.node.list_offsets(request)


class World:
    def __init__(self, partitions: int = 1) -> None:
        self.loop = WorldLoop()
        self.leader, self.follower = Node(1, partitions), Node(2, partitions)
        config = FetcherConfig(2, wait_max_ms=WAIT_MS, backoff_ms=BACKOFF_MS)
        self.fetcher = ReplicaFetcher(config, lambda: 102, lambda partition: None)
        self.end_point = Leader(self.leader, self.loop)
        self.fetching = ReplicaFetcherLoop(self.fetcher, self.end_point, self.loop)
        for index in range(partitions):
            self.leader.lead(registration(1), index)

    def follow(self, index: int = 0) -> None:
        self.fetcher.add(self.follower.lead(registration(1), index))
        self.fetching.wake()

    def advance(self, ms: int) -> None:
        self.loop.run_until_complete(asyncio.sleep(ms / 1000))

    def close(self) -> None:
        self.fetching.close()
        self.advance(1)
        assert not self.loop.errors, self.loop.errors
        self.loop.close()


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


def test_it_waits_for_partitions_and_then_for_records(world: World) -> None:
    world.leader.append(b"a")
    world.fetching.start()
    world.advance(1000)
    assert world.end_point.asked_ms == []
    world.follow()
    world.advance(10)
    assert world.follower.batches() == world.leader.batches()
    assert world.end_point.asked_ms == [1000, 1000]
    world.advance(200)
    assert world.end_point.asked_ms == [1000, 1000, 1070, 1140, 1210]
    assert world.follower.log().high_watermark == 0, "broker 3 has not fetched"


def test_it_goes_on_after_lost_connections(world: World) -> None:
    world.leader.append(b"a")
    world.end_point.lost = 2
    world.follow()
    world.fetching.start()
    world.advance(2 * BACKOFF_MS + 1)
    assert world.end_point.asked_ms == [0, 50, 100, 100]
    assert world.follower.batches() == world.leader.batches()


def test_a_lost_session_is_replaced_at_once_unless_that_fails_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def rejected(request: FetchRequest) -> FetchResponse:
        world.end_point.asked_ms.append(int(world.loop.time() * 1000))
        return FetchResponse(error_code=int(ErrorCode.INVALID_FETCH_SESSION_EPOCH))

    monkeypatch.setattr(world.end_point, "fetch", rejected)
    world.follow()
    world.fetching.start()
    world.advance(60)
    assert world.end_point.asked_ms == [0, 0, 50]


def test_a_delayed_partition_is_fetched_again_in_time(world: World) -> None:
    world.leader.lead(registration(1, 1))  # The follower does not know it yet.
    world.follow()
    world.fetching.start()
    world.advance(120)
    assert world.end_point.asked_ms == [0, 51, 102]


def test_a_follower_out_of_range_asks_for_the_leaders(world: World) -> None:
    for value in (b"a", b"b", b"c"):
        world.leader.append(value)
    world.leader.log().high_watermark = 2
    world.leader.delete_before(2)
    world.end_point.lost_offsets = 1
    world.follow()
    world.fetching.start()
    world.advance(200)
    assert world.follower.log().log_start_offset == 2
    assert world.follower.batches() == world.leader.batches()


def test_a_partition_that_is_added_while_an_answer_is_under_way_is_next() -> None:
    world = World(partitions=2)
    world.leader.append(b"a", index=1)
    world.follow(0)
    world.fetching.start()
    world.advance(10)
    world.follow(1)
    world.advance(WAIT_MS)
    assert world.follower.batches(1) == world.leader.batches(1)
    world.close()


def test_a_partition_that_is_added_while_offsets_are_asked_for_is_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only other one is removed meanwhile, so that there is nothing to fetch."""
    world = World(partitions=2)
    world.leader.append(b"a", index=1)

    async def slow(request: ListOffsetsRequest) -> ListOffsetsResponse:
        await sleep(0.1, world.loop)
        return world.leader.list_offsets(request)

    monkeypatch.setattr(world.end_point, "list_offsets", slow)
    world.follow(0)
    world.follower.log(0).truncate_fully_and_start_at(5)
    world.fetching.start()
    world.advance(50)
    world.fetcher.remove((world.follower.topic.topic_id, 0))
    world.follow(1)
    world.advance(60)
    assert world.follower.batches(1) == world.leader.batches(1)
    assert world.follower.log(0).log_end_offset == 5, "the answer is for a partition that is removed"
    world.close()


def test_others_have_turns_between_many_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    set_turn(monkeypatch, 10 * WRITE)
    world = World(partitions=200)
    for index in range(200):
        world.leader.append(b"a", index=index)
        world.follow(index)
    seen: list[int] = []

    def look() -> None:
        seen.append(sum(bool(each.open_log and each.log.log_end_offset) for each in parts))
        if len(seen) < 500:
            world.loop.call_soon(look)

    parts = [world.follower.replica(index) for index in range(200)]
    world.loop.call_soon(look)
    world.fetching.start()
    world.advance(10)
    assert seen[-1] == 200
    assert max(after - before for before, after in itertools.pairwise(seen)) == 10
    world.close()


def test_partitions_that_are_ready_do_not_wait_for_all_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_fetcher, "LOGS_PER_REQUEST", 3)
    world = World(partitions=8)
    for index in range(8):
        world.leader.append(b"a", index=index)
        world.follow(index)
    for index in range(3):
        world.follower.lead(registration(1, 1), index)  # The fetcher does not know it yet, and has nothing to fetch.
    world.fetching.start()
    world.advance(10)
    assert [bool(world.follower.replica(index).open_log) for index in range(8)] == [False] * 3 + [True] * 5
    assert [world.follower.batches(index) for index in range(3, 8)] == [
        world.leader.batches(index) for index in range(3, 8)
    ]
    assert set(world.end_point.asked_ms) == {0}
    world.close()


class Api:
    """The leader's own handler of Fetch."""

    def __init__(self, hosting: Hosting) -> None:
        self.hosting = hosting

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        arrived = FetchRequest.decode(request.encode(18), 18)
        response = step(fetch.handle(self.hosting.context(1, 18), arrived), self.hosting.loop)
        return over_the_wire(response if isinstance(response, FetchResponse) else await response)

    async def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        raise AssertionError("the log is in range")


def test_a_follower_of_the_broker_gets_records_at_once_and_commits_them(hosting: Hosting) -> None:
    hosting.create_topic("orders", 2, number=1, replicas=(1, 2))
    follower = Node(2, 2)
    fetcher = ReplicaFetcher(FetcherConfig(2), lambda: -1, lambda partition: None)
    for index in range(2):
        fetcher.add(follower.lead(registration(1, replicas=(1, 2)), index))
    fetching = ReplicaFetcherLoop(fetcher, Api(hosting), hosting.loop)
    fetching.start()
    hosting.advance(100)
    hosting.append("orders", b"a", index=1)
    hosting.advance(1)
    assert follower.log(1).log_end_offset == 1
    assert hosting.replicas.partition("orders", 1).log.high_watermark == 1
    hosting.append("orders", b"b", index=1)
    hosting.advance(1)
    assert (follower.log(1).log_end_offset, follower.log(1).high_watermark) == (2, 1)
    hosting.advance(501)
    assert follower.log(1).high_watermark == 2, "known when the fetch has waited long enough"
    fetching.close()
    hosting.advance(1)


def test_after_close_nothing_is_fetched(world: World) -> None:
    world.follow()
    world.fetching.start()
    world.fetching.close()
    world.advance(500)
    assert world.end_point.asked_ms == [0]


class SyncedWorld(World):
    """The follower's topic has `barnabas.flush.before.ack`, and its syncs end when the test says so."""

    def __init__(self, partitions: int = 1) -> None:
        super().__init__(partitions)
        self.follower = self.synced = SyncedNode(2, partitions)

    def known_end(self, index: int = 0) -> int:
        """Return the follower's end as the leader knows it."""
        followers = self.leader.replica(index).followers
        assert followers is not None
        return next(each.log_end_offset for each in followers.states() if each.broker_id == 2)


@pytest.fixture
def synced() -> Iterator[SyncedWorld]:
    made = SyncedWorld()
    yield made
    made.close()


def test_a_follower_reports_what_it_has_synced(synced: SyncedWorld) -> None:
    for value in (b"a", b"b"):
        synced.leader.append(value)
    synced.follow()
    synced.fetching.start()
    synced.advance(1000)
    assert synced.follower.log().log_end_offset == 2
    assert synced.known_end() == 0
    assert len(synced.synced.thread.waiting) == 1, "one sync for both"
    synced.synced.thread.next()
    synced.advance(10)
    assert synced.known_end() == 2


def test_a_follower_syncs_several_logs_at_the_same_time() -> None:
    world = SyncedWorld(partitions=3)
    for index in range(3):
        world.leader.append(b"a", index=index)
        world.follow(index)
    world.fetching.start()
    world.advance(10)
    assert len(world.synced.thread.waiting) == 3
    for _ in range(3):
        world.synced.thread.next()
    world.advance(10)
    assert [world.known_end(index) for index in range(3)] == [1, 1, 1]
    world.close()


def test_a_follower_reports_nothing_of_a_sync_that_failed(synced: SyncedWorld) -> None:
    synced.leader.append(b"a")
    synced.follow()
    synced.fetching.start()
    synced.advance(10)
    synced.synced.thread.next(OSError(5, "Input/output error"))
    synced.advance(10)
    assert synced.follower.disk_failures == [synced.follower.replica()]
    assert synced.known_end() == 0


def test_a_follower_that_leads_meanwhile_no_longer_waits(synced: SyncedWorld) -> None:
    synced.leader.append(b"a")
    synced.follow()
    synced.fetching.start()
    synced.advance(10)
    synced.fetcher.remove((synced.follower.topic.topic_id, 0))
    synced.follower.lead(registration(2, 1))
    synced.synced.thread.next()
    synced.advance(10)
    assert synced.known_end() == 0
    assert not synced.follower.disk_failures


def test_a_follower_without_the_setting_syncs_nothing(synced: SyncedWorld) -> None:
    synced.synced.reconfigure(LogConfig())
    synced.leader.append(b"a")
    synced.follow()
    synced.fetching.start()
    synced.advance(10)
    assert not synced.synced.thread.waiting
    assert synced.known_end() == 1
