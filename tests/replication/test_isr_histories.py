"""Random histories of one partition's in-sync replicas: a leader, its followers, and a controller behind a slow, lossy network.

A small model beside them states the rule of the high watermark and the promise that it keeps: each replica that the controller may elect
has every record below the leader's high watermark.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.log.errors import KafkaStorageError
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import AppendOrigin
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.protocol.errors import ErrorCode
from barnabas.replication.followers import Followers
from barnabas.replication.partition import Partition
from barnabas.replication.partition_state import (
    CommittedPartitionState,
    IsrProposal,
    PendingExpandIsr,
    PendingIsrChange,
    PendingShrinkIsr,
)

LEADER = 1
FOLLOWERS = (2, 3)
REPLICAS = (LEADER, *FOLLOWERS)
LAG_TIMES_MS = (-1, 10)
"""With -1 nobody counts as caught up who does not have the whole log."""


class Log:
    """The leader's log: only its ends."""

    high_watermark = 0
    log_end_offset = 0
    config = LogConfig()

    def begin_epoch(self, leader_epoch: int) -> None: ...

    def append_as_leader(self, records: Any, leader_epoch: int, **options: Any) -> None:
        self.log_end_offset += 1


class Controller:
    """The truth: the ISR and who is fenced; each change is an image."""

    def __init__(self, isr: tuple[int, ...]) -> None:
        self.isr = isr
        self.partition_epoch = 0
        self.fenced: set[int] = set()
        self.images: list[tuple[PartitionRegistration, frozenset[int]]] = []
        self.publish()

    def publish(self) -> None:
        registration = PartitionRegistration(REPLICAS, self.isr, LEADER, 0, self.partition_epoch)
        self.images.append((registration, frozenset(self.fenced)))

    def commit(self, isr: tuple[int, ...]) -> None:
        self.isr = isr
        self.partition_epoch += 1
        self.publish()

    def alter(self, change: PendingIsrChange) -> Callable[[Partition], Any]:
        """Handle AlterPartition; return what its answer does to the leader."""
        isr = tuple(broker for broker, _ in change.sent.isr)
        if change.sent.partition_epoch != self.partition_epoch:
            return lambda leader: leader.isr_change_failed(change, ErrorCode.INVALID_UPDATE_VERSION)
        if self.fenced & set(isr):
            return lambda leader: leader.isr_change_failed(change, ErrorCode.INELIGIBLE_REPLICA)
        self.commit(isr)
        epoch = self.partition_epoch
        return lambda leader: leader.isr_change_completed(change, 0, epoch, isr)


class World:
    """The leader under test is its own host: what it asks of its broker is answered here.

    Attributes:
        has: where each follower's log really ends.
        said: where the leader knows that it ends.
        requests, answers: on the way to the controller and back, in order.
        seen: how many images the leader has applied.
    """

    def __init__(self, min_isr: int, lag_time_max_ms: int, isr: tuple[int, ...]) -> None:
        self.min_isr = min_isr
        self.lag_time_max_ms = lag_time_max_ms
        self.now_ms = 0
        self.log = Log()
        self.controller = Controller(isr)
        self.has = dict.fromkeys(FOLLOWERS, 0)
        self.said = dict.fromkeys(FOLLOWERS, -1)
        self.requests: list[PendingIsrChange] = []
        self.answers: list[tuple[PendingIsrChange, Callable[[Partition], Any]]] = []
        self.seen = 0
        topic = SimpleNamespace(name="t", config=SimpleNamespace(min_insync_replicas=min_isr))
        self.leader = Partition(cast(Any, topic), 0, LEADER, cast(Any, self))
        self.see_an_image(0)

    # As the leader's host

    def open_log(self, partition: Partition) -> Any:
        return self.log

    def monotonic_ms(self) -> int:
        return self.now_ms

    def broker_epoch(self, broker_id: int) -> int:
        return 1

    def is_in_service(self, broker_id: int) -> bool:
        return broker_id not in self.known_fenced

    def high_watermark_moved(self, partition: Partition) -> None: ...

    def log_synced(self, partition: Partition) -> None: ...

    def disk_failed(self, partition: Partition, error: KafkaStorageError) -> None: ...

    # What may happen next; `number` chooses one of several

    def append(self, number: int) -> None:
        self.leader.append_as_leader(memoryview(b""), 1, AppendOrigin.CLIENT)

    def fetch(self, number: int) -> None:
        follower = FOLLOWERS[number % 2]
        self.said[follower] = self.has[follower]
        self.leader.update_follower(follower, self.has[follower], broker_epoch=1)
        self.has[follower] = min(self.log.log_end_offset, self.has[follower] + number // 2)

    def propose_to_add(self, number: int) -> None:
        change = self.leader.prepare_expand_isr(FOLLOWERS[number % 2])
        if change is not None:
            self.requests.append(change)

    def propose_to_remove(self, number: int) -> None:
        change = self.leader.prepare_shrink_isr()
        if change is not None:
            self.requests.append(change)

    def reach_the_controller(self, number: int) -> None:
        if self.requests:
            change = self.requests.pop(0)
            self.answers.append((change, self.controller.alter(change)))

    def answer(self, number: int) -> None:
        if self.answers:
            self.answers.pop(0)[1](self.leader)

    def lose_the_answer(self, number: int) -> None:
        if self.answers:
            change, _ = self.answers.pop(0)
            if self.leader.isr_change_failed(change, ErrorCode.REQUEST_TIMED_OUT):
                self.requests.append(change)

    def see_an_image(self, number: int) -> None:
        if self.seen < len(self.controller.images):
            registration, self.known_fenced = self.controller.images[self.seen]
            self.leader.update(registration)
            self.seen += 1

    def fence(self, number: int) -> None:
        follower = FOLLOWERS[number % 2]
        controller = self.controller
        controller.fenced.add(follower)
        if follower in controller.isr:
            controller.commit(tuple(each for each in controller.isr if each != follower))
        else:
            controller.publish()

    def unfence(self, number: int) -> None:
        self.controller.fenced.discard(FOLLOWERS[number % 2])
        self.controller.publish()

    def wait(self, number: int) -> None:
        self.now_ms += number


STEPS: tuple[Callable[[World, int], None], ...] = (
    World.append,
    World.append,
    World.fetch,
    World.fetch,
    World.fetch,
    World.propose_to_add,
    World.propose_to_add,
    World.propose_to_remove,
    World.reach_the_controller,
    World.answer,
    World.lose_the_answer,
    World.see_an_image,
    World.fence,
    World.unfence,
    World.wait,
)


def check(world: World, before: int) -> None:
    """Compare the leader with the rule, and the controller's ISR with the promise."""
    high_watermark, end = world.log.high_watermark, world.log.log_end_offset
    for replica in world.controller.isr:
        if replica != LEADER:
            assert world.has[replica] >= high_watermark, f"{replica} may be elected and lacks committed records"
    assert high_watermark >= before, "the high watermark never goes back"
    state = world.leader.state
    is_enough = len(state.isr) >= min(world.min_isr, len(REPLICAS))
    members = set(state.isr)
    if isinstance(state, PendingIsrChange):
        members |= {broker for broker, _ in state.sent.isr}
    if high_watermark > before:
        assert is_enough, "the ISR is smaller than min.insync.replicas"
        smallest = min([end, *(world.said[each] for each in members - {LEADER})])
        assert high_watermark <= smallest, "a member of the maximal ISR has less"
    if is_enough:
        assert high_watermark >= min([end, *world.said.values()]), "all replicas have more"


def bring_all_up_to_date(world: World) -> None:
    """Once everything arrives, all replicas are in sync and everything is committed."""
    world.controller.fenced.clear()
    world.controller.publish()
    for _ in range(5):
        while world.requests or world.answers or world.seen < len(world.controller.images):
            world.reach_the_controller(0)
            world.answer(0)
            world.see_an_image(0)
        for follower in range(2):
            world.fetch(1000 + follower)
            world.propose_to_add(follower)
    assert sorted(world.controller.isr) == sorted(world.leader.isr) == list(REPLICAS)
    assert world.leader.state.partition_epoch == world.controller.partition_epoch
    assert world.log.high_watermark == world.log.log_end_offset


def live_through(seed: int) -> None:
    """Run one history; the message of a failure has its steps."""
    random = Random(seed)
    isr = REPLICAS[: random.randint(1, len(REPLICAS))]
    world = World(random.choice((1, 1, 2, 4)), random.choice(LAG_TIMES_MS), isr)
    history = []
    try:
        for _ in range(random.randint(10, 80)):
            step, number, before = random.choice(STEPS), random.randint(0, 12), world.log.high_watermark
            history.append(f"{step.__name__}({number})")
            step(world, number)
            check(world, before)
        bring_all_up_to_date(world)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, {world.min_isr=}: {error}; " + " ".join(history)) from error


def live_through_many() -> None:
    for seed in range(1000):
        live_through(seed)


def test_whoever_may_be_elected_has_every_committed_record() -> None:
    live_through_many()


def expand_without_waiting(self: CommittedPartitionState, replica: int, epoch: int, _: Any) -> PendingExpandIsr:
    sent = IsrProposal(epoch, self.partition_epoch, tuple((each, 1) for each in (*self.isr, replica)))
    return PendingExpandIsr(self, sent, self.isr)


def shrink_at_once(self: CommittedPartitionState, late: list[int], epoch: int, _: Any) -> PendingShrinkIsr:
    isr = tuple(each for each in self.isr if each not in late)
    return PendingShrinkIsr(self, IsrProposal(epoch, self.partition_epoch, tuple((each, 1) for each in isr)), isr)


def update_from_any_image(self: Partition, registration: PartitionRegistration) -> None:
    update(self, registration)
    if registration.partition_epoch == self.state.partition_epoch:
        self.state = CommittedPartitionState(registration.isr, registration.partition_epoch)


update = Partition.update
FAULTS: dict[str, tuple[type, str, Any]] = {
    "who may join is not waited for": (CommittedPartitionState, "expand", expand_without_waiting),
    "who may leave is not waited for": (CommittedPartitionState, "shrink", shrink_at_once),
    "a lost answer takes the change back": (PendingIsrChange, "failed", lambda self, code: self.last_committed),
    "a rejected change stays": (PendingIsrChange, "failed", lambda self, code: self),
    "an image that is not newer ends a change": (Partition, "update", update_from_any_image),
    "the high watermark moves under min ISR": (Partition, "is_under_min_isr", False),
    "anybody may join": (Followers, "may_join", lambda self, replica_id, from_offset: True),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_histories_notice_a_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*FAULTS[fault])
    with pytest.raises(AssertionError):
        live_through_many()
