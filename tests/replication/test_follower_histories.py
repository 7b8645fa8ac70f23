"""Random histories of a leader and its followers on real logs: leaders change, answers are lost or come late, records are deleted.

Three brokers hold two partitions. Each broker learns of a new leader in its own time, and goes on as before until then. Each pair of
brokers has one request under way at most; an answer's records are read from the leader's files when the answer arrives.

At every step what is below any replica's high watermark is the same everywhere, and each replica that may be elected has all of it. In the
end all logs are the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

import barnabas.replication.replica_fetcher as replica_fetcher
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import FetchRequest, FetchResponse
from barnabas.replication import follower_log
from barnabas.replication.partition import Partition
from barnabas.replication.replica_fetcher import FetcherConfig, ReplicaFetcher
from tests.replication.following import Node, over_the_wire, registration

BROKERS = (1, 2, 3)
PARTITIONS = 2
CONFIG = LogConfig(segment_bytes=400, min_insync_replicas=1)
BACKOFF_MS = 50


class Controller:
    """One partition's truth; each change is an image that the brokers see in order."""

    def __init__(self) -> None:
        self.leader, self.leader_epoch, self.partition_epoch = 1, 0, 0
        self.isr: tuple[int, ...] = BROKERS
        self.images = [self.now()]

    def now(self) -> Any:
        return registration(self.leader, self.leader_epoch, isr=self.isr, partition_epoch=self.partition_epoch)

    def commit(self) -> None:
        self.partition_epoch += 1
        self.images.append(self.now())

    def elect(self, leader: int, isr: tuple[int, ...]) -> None:
        self.leader, self.isr = leader, isr
        self.leader_epoch += 1
        self.commit()


class World:
    """Attributes: `under_way` has the request or the answer between a follower and a leader."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now_ms = 0
        self.nodes = {broker: Node(broker, PARTITIONS, lambda: CONFIG) for broker in BROKERS}
        self.controllers = [Controller() for _ in range(PARTITIONS)]
        self.seen = {(broker, index): 0 for broker in BROKERS for index in range(PARTITIONS)}
        self.fetchers = {
            (follower, leader): self.fetcher(follower)
            for follower in BROKERS
            for leader in BROKERS
            if follower != leader
        }
        self.under_way: dict[tuple[int, int], FetchRequest | FetchResponse] = {}
        self.committed: list[dict[int, bytes]] = [{} for _ in range(PARTITIONS)]
        self.had_unclean_election = False
        for broker in BROKERS:
            for index in range(PARTITIONS):
                self.see(broker, index)

    def fetcher(self, follower: int) -> ReplicaFetcher:
        config = FetcherConfig(follower, fetch_max_bytes=self.random.choice((1, 150, 1000)), backoff_ms=BACKOFF_MS)
        return ReplicaFetcher(config, lambda: 100 + follower, lambda partition: None)

    def see(self, broker: int, index: int) -> None:
        """Let a broker apply its next image."""
        images, seen = self.controllers[index].images, self.seen[broker, index]
        if seen == len(images):
            return
        self.seen[broker, index] = seen + 1
        partition = self.nodes[broker].lead(images[seen], index)
        if self.random.random() < 0.8:
            self.follow(broker, partition)

    def follow(self, broker: int, partition: Partition) -> None:
        """Let a broker's fetchers follow what its partition knows already."""
        for (follower, leader), fetcher in self.fetchers.items():
            if follower == broker and leader != partition.leader:
                fetcher.remove((partition.topic.topic_id, partition.index))
        if not partition.is_leader:
            self.fetchers[broker, partition.leader].add(partition)

    # What may happen next

    def any_broker(self) -> int:
        return self.random.choice(BROKERS)

    def any_index(self) -> int:
        return self.random.randrange(PARTITIONS)

    def any_pair(self) -> tuple[int, int]:
        return self.random.choice(list(self.fetchers))

    def append(self) -> None:
        node, index = self.nodes[self.any_broker()], self.any_index()
        if node.replica(index).is_leader:
            values = [b"%03d at %d" % (self.random.randrange(1000), node.node_id)] * self.random.choice((1, 1, 1, 1, 3))
            node.append(*values, index=index)

    def delete_records(self) -> None:
        node, index = self.nodes[self.any_broker()], self.any_index()
        log = node.log(index)
        if node.replica(index).is_leader and log.high_watermark > log.log_start_offset:
            node.delete_before(self.random.randint(log.log_start_offset, log.high_watermark), index)
            log.apply_retention()

    def see_an_image(self) -> None:
        self.see(self.any_broker(), self.any_index())

    def follow_late(self) -> None:
        broker = self.any_broker()
        self.follow(broker, self.nodes[broker].replica(self.any_index()))

    def send(self, pair: tuple[int, int] | None = None) -> None:
        pair = pair or self.any_pair()
        fetcher = self.fetchers[pair]
        if pair in self.under_way:
            return
        for state in fetcher.states_to_begin(self.now_ms):
            fetcher.begin(state, self.now_ms)
        states = fetcher.states_out_of_range(self.now_ms)
        if states:
            endpoint = self.nodes[pair[1]]
            rest = fetcher.take_ends(states, endpoint.list_offsets(fetcher.ends_request(states)), self.now_ms)
            fetcher.take_starts(rest, endpoint.list_offsets(fetcher.starts_request(rest)), self.now_ms)
        request = fetcher.request(self.now_ms)
        if request is not None:
            self.under_way[pair] = request

    def reach_the_leader(self, pair: tuple[int, int] | None = None) -> None:
        pair = pair or self.any_pair()
        request = self.under_way.get(pair)
        if isinstance(request, FetchRequest):
            self.under_way[pair] = self.nodes[pair[1]].fetch(request)

    def answer(self, pair: tuple[int, int] | None = None) -> None:
        pair = pair or self.any_pair()
        if not isinstance(self.under_way.get(pair), FetchResponse):
            return
        response = self.under_way.pop(pair)
        assert isinstance(response, FetchResponse)
        fetcher = self.fetchers[pair]
        try:
            response = over_the_wire(response)
        except KafkaError:
            fetcher.request_failed()
            return
        for answer in fetcher.accept(response) or ():
            fetcher.process(answer, self.now_ms)

    def lose(self) -> None:
        pair = self.any_pair()
        if self.under_way.pop(pair, None) is not None:
            self.fetchers[pair].request_failed()

    def lose_sessions(self) -> None:
        sessions = self.nodes[self.any_broker()].sessions
        for session_id in list(sessions._sessions):
            sessions._close(session_id)

    def wait(self) -> None:
        self.now_ms += self.random.randint(1, 2 * BACKOFF_MS)

    def elect(self) -> None:
        controller = self.controllers[self.any_index()]
        controller.elect(self.random.choice(controller.isr), controller.isr)

    def elect_uncleanly(self) -> None:
        if self.had_unclean_election:  # Only in the histories that begin so.
            leader = self.any_broker()
            self.controllers[self.any_index()].elect(leader, (leader,))

    def shrink(self) -> None:
        controller, out = self.controllers[self.any_index()], self.any_broker()
        if out != controller.leader and out in controller.isr:
            controller.isr = tuple(each for each in controller.isr if each != out)
            controller.commit()

    def expand(self, index: int | None = None, follower: int | None = None) -> None:
        index = self.any_index() if index is None else index
        controller = self.controllers[index]
        leader = self.nodes[controller.leader].replica(index)
        change = leader.prepare_expand_isr(follower or self.any_broker())
        if change is None:
            return
        sent = change.sent
        if (sent.leader_epoch, sent.partition_epoch) != (controller.leader_epoch, controller.partition_epoch):
            return  # Rejected; the leader learns of the newer state from an image.
        controller.isr = tuple(broker for broker, _ in sent.isr)
        controller.commit()
        leader.isr_change_completed(change, controller.leader_epoch, controller.partition_epoch, controller.isr)


STEPS: tuple[Callable[[World], None], ...] = (
    *[World.append] * 4,
    *[World.send] * 8,
    *[World.reach_the_leader] * 8,
    *[World.answer] * 8,
    *[World.see_an_image] * 4,
    *[World.follow_late] * 2,
    *[World.expand] * 2,
    World.lose,
    World.lose_sessions,
    World.wait,
    World.elect,
    World.elect_uncleanly,
    World.shrink,
    World.delete_records,
)


def check(world: World) -> None:
    for node in world.nodes.values():
        for index in range(PARTITIONS):
            log = node.log(index)
            assert log.log_start_offset <= log.high_watermark <= log.log_end_offset, f"{node.node_id}: {log}"
    if world.had_unclean_election:
        return
    for index, committed in enumerate(world.committed):
        held = {broker: node.batches(index) for broker, node in world.nodes.items()}
        for broker, batches in held.items():
            log = world.nodes[broker].log(index)
            for offset, data in batches.items():
                if offset < log.high_watermark:
                    assert committed.setdefault(offset, data) == data, (
                        f"{broker} has another committed batch at {offset}"
                    )
        for broker in world.controllers[index].isr:
            log, batches = world.nodes[broker].log(index), held[broker]
            for offset, data in committed.items():
                if offset >= log.log_start_offset:
                    assert batches.get(offset) == data, f"{broker} may be elected and lacks committed batch {offset}"


def bring_all_up_to_date(world: World) -> None:
    """Once everything arrives, the logs are the same."""
    for broker in BROKERS:
        for index in range(PARTITIONS):
            while world.seen[broker, index] < len(world.controllers[index].images):
                world.see(broker, index)
            world.follow(broker, world.nodes[broker].replica(index))
    for number in range(200):
        before = state_of(world)
        world.now_ms += 2 * BACKOFF_MS
        for _ in range(3):
            for pair in world.fetchers:
                world.send(pair)
                world.reach_the_leader(pair)
                world.answer(pair)
        if number > 5 and state_of(world) == before:  # The first ones may only end delays.
            break
    for index, controller in enumerate(world.controllers):
        leader = world.nodes[controller.leader]
        for broker, node in world.nodes.items():
            theirs, own = leader.log(index), node.log(index)
            assert ends(own) == ends(theirs), f"{broker} is not as far as {controller.leader}"
            # A new leader may still have records that the one before it has deleted.
            start = own.log_start_offset
            assert start >= theirs.log_start_offset, f"{broker} starts before {controller.leader}"
            assert later(node.batches(index), start) == later(leader.batches(index), start), (
                f"{broker} has other records"
            )
            assert epochs(own, start) == epochs(theirs, start), f"{broker} has other epochs"


def ends(log: PartitionLog) -> tuple[int, int]:
    return log.high_watermark, log.log_end_offset


def later(batches: dict[int, bytes], start: int) -> dict[int, bytes]:
    return {offset: data for offset, data in batches.items() if offset >= start}


def epochs(log: PartitionLog, start: int) -> list[int]:
    """Return the epochs that have records from an offset on."""
    found = {log.epoch_for_offset(offset) for offset in range(start, log.log_end_offset)}
    return sorted(found)


def state_of(world: World) -> list[Any]:
    return [
        (ends(node.log(index)), node.log(index).epoch_entries)
        for node in world.nodes.values()
        for index in range(PARTITIONS)
    ]


def live_through(seed: int) -> None:
    random = Random(seed)
    world = World(random)
    world.had_unclean_election = seed % 4 == 3
    history = []
    try:
        for _ in range(random.randint(20, 250)):
            step = random.choice(STEPS)
            history.append(step.__name__)
            step(world)
            check(world)
        bring_all_up_to_date(world)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}; {' '.join(history)}") from error


def live_through_many(seeds: int = 200) -> None:
    for seed in range(seeds):
        live_through(seed)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def test_followers_end_as_their_leader() -> None:
    live_through_many()


def forget_nothing(self: ReplicaFetcher, key: Any) -> None: ...


FAULTS: dict[str, tuple[Any, str, Any]] = {
    "a diverging log is not truncated": (replica_fetcher, "truncate_to_divergence", lambda *arguments: None),
    "the high watermark passes the end of the log": (follower_log, "_known_committed", lambda log, offset: offset),
    "an answer of an old epoch is taken": (
        ReplicaFetcher,
        "_is_current",
        lambda self, state: state.key in self.partitions,
    ),
    "a log below the leader's start stays": (replica_fetcher, "truncate_to_start", lambda *arguments: False),
    "a session forgets nothing": (ReplicaFetcher, "_forget", forget_nothing),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_histories_notice_a_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*FAULTS[fault])
    with pytest.raises(AssertionError):
        live_through_many(1000)
