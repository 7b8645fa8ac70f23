"""A static quorum of three drivers becomes one whose voters can change (KIP-853)."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.raft.kraft_version_upgrade import objection
from barnabas.raft.leader import Leader
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.voter_changes import VersionRange, VoterChangeResult, VoterChanges
from barnabas.raft.voters import Voter, VoterEndpoint
from barnabas.steps import start
from tests.raft.member_of_three import KEYS, TIMEOUTS
from tests.raft.quorum_of_drivers import Member, Quorum, SlowLog

OBJECTION = "Invalid upgrade of kraft.version to KRAFT_VERSION_1 because not all of the voters support it"


def named(key: ReplicaKey) -> Voter:
    return Voter(*key, (VoterEndpoint("CONTROLLER", f"node-{key.id}.example", 9093),))


class Static:
    """A static quorum, its leader, and the changes of the voters there."""

    def __init__(self) -> None:
        self.quorum = Quorum(SlowLog, is_static=True)
        for key in KEYS:
            self.quorum.members[key.id].driver.node.own_voter = named(key)
        self.leader: Member[SlowLog] = self.quorum.leader()
        self.changes = VoterChanges(
            self.leader.driver,
            self.quorum.loop,
            listener_name="CONTROLLER",
            versions_of=self.versions_of,
            timeout_ms=TIMEOUTS.request,
        )
        self.others = [key for key in KEYS if key != self.leader.key]

    async def versions_of(self, node_id: int, endpoint: VoterEndpoint) -> VersionRange | None:
        return VersionRange(0, 1)

    @property
    def state(self) -> Leader:
        state = self.leader.driver.node.quorum.state
        assert isinstance(state, Leader)
        return state

    def tell(self, voter: Voter) -> ErrorCode:
        return self.changes.update(self.leader.driver.node.epoch, voter)

    def upgrade(self) -> None:
        for key in self.others:
            assert self.tell(named(key)) is ErrorCode.NONE
        assert objection(self.state, 1) is None
        self.leader.driver.upgrade_kraft_version()

    def versions(self) -> set[int]:
        return {each.driver.node.kraft_version for each in self.quorum.members.values()}


def test_every_voter_must_have_named_itself() -> None:
    world = Static()
    end_offset = world.leader.driver.node.end_offset
    assert objection(world.state, 1) == OBJECTION
    first, second = world.others
    assert world.tell(named(first)) is ErrorCode.NONE
    assert objection(world.state, 1) == OBJECTION
    assert world.tell(named(second)._replace(kraft_max_version=0)) is ErrorCode.NONE
    assert objection(world.state, 1) == OBJECTION
    assert world.tell(named(second)) is ErrorCode.NONE
    assert objection(world.state, 1) is None
    assert world.tell(named(ReplicaKey(4, b"4" * 16))) is ErrorCode.VOTER_NOT_FOUND
    assert world.leader.driver.node.end_offset == end_offset, "the leader only remembers it"


def test_the_upgrade_reaches_every_voter_and_then_voters_change() -> None:
    world = Static()
    world.upgrade()
    world.quorum.run_until(lambda: world.versions() == {1})
    for member in world.quorum.members.values():
        assert member.driver.node.voters.voters == tuple(map(named, KEYS))
    world.quorum.loop.advance(300)
    removed: asyncio.Future[VoterChangeResult] = start(world.changes.remove(world.others[0]), world.quorum.loop)
    world.quorum.run_until(removed.done)
    assert removed.result() == VoterChangeResult()


def test_the_high_watermark_goes_on_without_a_fetch_in_between() -> None:
    world = Static()
    world.quorum.loop.advance(300)
    before = world.state.progress
    world.upgrade()
    for key in world.others:
        assert world.state.progress[key.id] == before[key.id]._replace(directory_id=key.directory_id)


def test_what_the_voters_told_is_gone_with_the_epoch() -> None:
    world = Static()
    for key in world.others:
        world.tell(named(key))
    epoch = world.leader.driver.node.epoch
    world.leader.driver.resign()
    world.quorum.run_until(lambda: world.quorum.leader().driver.node.epoch > epoch)
    state = world.quorum.leader().driver.node.quorum.state
    assert isinstance(state, Leader)
    known = [each.id for each in state.named.voters if each.directory_id != ZERO_UUID]
    assert known == [world.quorum.leader().key.id], "only its own"


@pytest.mark.parametrize("is_seen", [False, True])
def test_a_leader_that_dies_at_once_leaves_either_kind(is_seen: bool) -> None:
    world = Static()
    if not is_seen:
        world.quorum.cut.add(world.leader.key.id)
    world.upgrade()
    if is_seen:
        world.quorum.run_until(lambda: world.versions() == {1})
    assert world.leader.driver.node.kraft_version == 1
    world.quorum.cut.add(world.leader.key.id)
    epoch = world.leader.driver.node.epoch
    world.quorum.run_until(lambda: world.quorum.leader().driver.node.epoch > epoch)
    world.quorum.cut.clear()
    world.quorum.run_until(lambda: world.versions() == {int(is_seen)})
    static = (1, ZERO_UUID, ())
    entry = world.leader.driver.node.voters.voter(1)
    assert entry is not None
    assert (entry[:3] == static) is not is_seen
