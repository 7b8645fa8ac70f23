"""Which fetcher has which partition."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas.client.errors import ConnectionLost
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from barnabas.replication.replica_fetcher import FetcherConfig
from barnabas.replication.replica_fetcher_manager import FetcherId, ReplicaFetcherManager, fetcher_number
from barnabas.simulation.world_loop import WorldLoop
from tests.replication.following import Node, registration


class World:
    """A follower of brokers that do not answer, or with `rejects` know nothing of their leadership."""

    def __init__(self) -> None:
        self.loop = WorldLoop()
        self.node = Node(1, 3)
        self.asked: list[tuple[int, list[int]]] = []
        self.rejects = False
        self.manager = ReplicaFetcherManager(
            FetcherConfig(1, backoff_ms=100),
            lambda fetcher: Silent(self, fetcher.leader),
            lambda: 101,
            lambda _: None,
            self.loop,
        )

    def follow(self, index: int, leader: int, epoch: int) -> None:
        self.manager.follow(self.node.lead(registration(leader, epoch), index))

    def advance(self, ms: float = 1) -> None:
        self.loop.run_until_complete(asyncio.sleep(ms / 1000))

    def partitions(self) -> dict[int, list[int]]:
        """Return the partitions of each leader's fetcher."""
        return {
            owner.leader: sorted(index for _, index in each.fetcher.partitions)
            for owner, each in self.manager.fetchers.items()
        }


class Silent:
    def __init__(self, world: World, leader: int) -> None:
        self.world, self.leader = world, leader

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        named = [part.partition for topic in request.topics for part in topic.partitions]
        self.world.asked.append((self.leader, named))
        if self.world.rejects:
            code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            answers = [FetchResponse.PartitionData(partition_index=index, error_code=code) for index in named]
            topic = FetchResponse.FetchableTopicResponse(topic_id=request.topics[0].topic_id, partitions=answers)
            return FetchResponse(responses=[topic])
        raise ConnectionLost("lost the connection")

    async def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        raise AssertionError("nothing is out of range")


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.manager.close()
    made.advance()
    assert not made.loop.errors, made.loop.errors
    made.loop.close()


def test_a_leader_has_one_fetcher_that_asks_for_all_at_once(world: World) -> None:
    world.follow(0, 2, 0)
    world.follow(1, 3, 0)
    world.follow(2, 2, 0)
    world.advance()
    assert world.partitions() == {2: [0, 2], 3: [1]}
    assert world.asked == [(2, [0, 2]), (3, [1])]


def test_a_partition_does_not_wait_for_others_that_are_delayed(world: World) -> None:
    world.rejects = True
    world.follow(0, 2, 0)
    world.advance(10)
    world.follow(1, 2, 0)
    world.advance(10)
    assert world.asked == [(2, [0]), (2, [1])]


def test_a_partition_moves_to_its_new_leader(world: World) -> None:
    world.follow(0, 2, 0)
    world.follow(1, 2, 0)
    world.follow(0, 3, 1)
    world.manager.close_idle()
    assert world.partitions() == {2: [1], 3: [0]}
    world.follow(1, 3, 1)
    world.manager.close_idle()
    assert world.partitions() == {3: [0, 1]}
    world.advance(500)
    assert {leader for leader, _ in world.asked} == {3}, "the other fetcher ended before it began"


def test_a_partition_without_a_leader_is_not_fetched(world: World) -> None:
    world.follow(0, 2, 0)
    world.follow(0, -1, 1)
    assert world.partitions() == {2: []}
    world.manager.stop(world.node.replica(0))
    world.follow(0, 2, 2)
    assert world.partitions() == {2: [0]}


def test_a_partition_that_leaves_is_not_fetched(world: World) -> None:
    world.follow(0, 2, 0)
    world.advance(50)
    world.manager.stop(world.node.replica(0))
    world.manager.close_idle()
    world.advance(1000)
    assert (world.partitions(), world.asked) == ({}, [(2, [0])])


def test_a_fetcher_that_has_ended_begins_again(world: World) -> None:
    world.follow(0, 2, 0)
    world.advance(50)
    world.manager.stop(world.node.replica(0))
    world.manager.close_idle()
    world.follow(0, 2, 1)
    world.advance(50)
    assert world.asked == [(2, [0]), (2, [0])]


def test_a_closed_manager_follows_nothing(world: World) -> None:
    world.follow(0, 2, 0)
    world.manager.close()
    world.follow(1, 2, 0)
    world.advance(1000)
    assert (world.partitions(), world.asked) == ({}, [])


@pytest.mark.parametrize(
    ("topic", "index", "fetchers", "number"),
    [
        # What Java says of Math.abs(31 * topic.hashCode() + partition) % fetchers.
        ("orders", 0, 1, 0),
        ("a", 0, 4, 3),
        ("a", 1, 4, 0),
        ("orders", 0, 3, 2),
        ("orders", 1, 3, 1),
        ("orders", 2, 3, 0),
        ("__consumer_offsets", 49, 7, 6),
        ("a-longer-name-of-a-topic", 5, 6, 0),
    ],
)
def test_the_fetcher_of_a_partition_is_kafkas(topic: str, index: int, fetchers: int, number: int) -> None:
    assert fetcher_number(topic, index, fetchers) == number


def test_more_fetchers_share_the_partitions_of_a_leader(world: World) -> None:
    for index in range(3):
        world.follow(index, 2, 0)
    world.advance()
    assert world.asked == [(2, [0, 1, 2])]
    world.asked.clear()
    world.manager.resize(3)
    world.advance(150)
    assert {owner: len(each.fetcher.partitions) for owner, each in world.manager.fetchers.items()} == {
        FetcherId(2, number): 1 for number in range(3)
    }
    assert {(leader, *named) for leader, named in world.asked} == {(2, 0), (2, 1), (2, 2)}
    world.manager.resize(1)
    assert list(world.manager.fetchers) == [(2, 0)]
    world.asked.clear()
    world.manager.resize(1)
    world.advance(150)
    assert (world.asked[0][0], sorted(world.asked[0][1])) == (2, [0, 1, 2])
