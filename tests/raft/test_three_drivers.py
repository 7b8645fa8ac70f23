"""Three drivers that elect, replicate, lose their leader and take it back."""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.raft.leader import Leader
from barnabas.raft.peer_messages import Answer, FetchSnapshot, Request, SnapshotPiece
from barnabas.raft.roles import Role
from barnabas.raft.voters import VoterEndpoint
from tests.raft.quorum_of_drivers import FLUSH_MS, ONE_WAY_MS, TIMEOUTS, Member, Quorum, SlowLog


def test_one_is_elected_and_the_others_follow() -> None:
    quorum = Quorum(SlowLog)
    leader = quorum.leader()
    others = [member for member in quorum.members.values() if member is not leader]
    quorum.run_until(lambda: all(other.role is Role.FOLLOWER for other in others))
    assert {member.driver.node.leader_id for member in quorum.members.values()} == {leader.key.id}
    assert {member.driver.node.epoch for member in quorum.members.values()} == {leader.driver.node.epoch}


def test_what_the_leader_appends_is_committed_on_all() -> None:
    quorum = Quorum(SlowLog)
    leader = quorum.leader()
    assert leader.driver.append([b"a", b"b"]) == leader.driver.append([b"c"]) - 1
    quorum.run_until(lambda: all(member.values()[-1:] == [b"c"] for member in quorum.members.values()))
    assert [member.values()[-3:] for member in quorum.members.values()] == [[b"a", b"b", b"c"]] * 3
    assert len({tuple(member.log.contents()) for member in quorum.members.values()}) == 1
    ends = {tuple(member.log.high_watermarks[-1:]) for member in quorum.members.values()}
    assert ends == {(leader.log.end_offset,)}


def test_a_quiet_quorum_keeps_its_leader_and_asks_little() -> None:
    quorum = Quorum(SlowLog)
    leader = quorum.leader()
    quorum.loop.advance(1_000)
    epoch, told = leader.driver.node.epoch, len(leader.told)
    sent: list[object] = []
    for member in quorum.members.values():
        member.driver.peers = _Counting(member, sent)
    quorum.loop.advance(60_000)
    assert (leader.role, leader.driver.node.epoch, len(leader.told)) == (Role.LEADER, epoch, told)
    assert 200 < len(sent) < 260, "two followers, a fetch of half a second each"


class _Counting:
    def __init__(self, peers: Member[SlowLog], sent: list[object]) -> None:
        self.peers, self.sent = peers, sent

    async def send(self, to: int, request: Request) -> Answer:
        self.sent.append(request)
        return await self.peers.send(to, request)

    async def fetch_snapshot(self, to: int, request: FetchSnapshot) -> SnapshotPiece:
        return await self.peers.fetch_snapshot(to, request)

    def endpoint_of(self, node_id: int) -> VoterEndpoint | None:
        return None

    def learn(self, node_id: int, endpoints: Sequence[VoterEndpoint]) -> None:
        self.peers.learn(node_id, endpoints)

    def close(self) -> None:
        self.peers.close()


def test_records_reach_the_followers_without_waiting_for_the_next_fetch() -> None:
    quorum = Quorum(SlowLog)
    leader = quorum.leader()
    quorum.loop.advance(1_234)
    last = leader.driver.append([b"a"])
    quorum.loop.advance(1 + 3 * ONE_WAY_MS + FLUSH_MS)  # Out, flushed there, back, and the high watermark out.
    assert {member.driver.node.high_watermark for member in quorum.members.values()} == {last + 1}


def test_a_leader_that_was_cut_off_comes_back_and_loses_what_nobody_else_has() -> None:
    quorum = Quorum(SlowLog)
    former = quorum.leader()
    former.driver.append([b"before"])
    quorum.run_until(lambda: all(member.values()[-1:] == [b"before"] for member in quorum.members.values()))
    old_epoch, committed = former.driver.node.epoch, former.driver.node.high_watermark

    quorum.cut = {former.key.id}
    former.driver.append([b"lost"])
    former.driver.append([b"lost too"])
    leader = quorum.leader()
    assert leader is not former
    assert leader.driver.node.epoch > old_epoch
    leader.driver.append([b"kept"])
    others = [member for member in quorum.members.values() if member is not former]
    quorum.run_until(lambda: all(member.values()[-1:] == [b"kept"] for member in others))
    quorum.loop.advance(3 * TIMEOUTS.fetch)
    assert ("resigned", old_epoch) in former.told
    assert former.values()[-1:] == [b"before"]

    quorum.cut = set()
    quorum.run_until(lambda: former.values()[-1:] == [b"kept"])
    assert former.log.truncated_to == [committed]
    assert former.role is Role.FOLLOWER
    assert len({tuple(member.log.contents()) for member in quorum.members.values()}) == 1
    quorum.leader().driver.append([b"after"])
    quorum.run_until(lambda: all(member.values()[-1:] == [b"after"] for member in quorum.members.values()))
    committed_of = [[offset for what, offset in each.told if what == "committed"] for each in quorum.members.values()]
    assert all(offsets == sorted(offsets) for offsets in committed_of)


def test_a_leader_that_resigns_is_succeeded_before_anyone_misses_it() -> None:
    quorum = Quorum(SlowLog)
    former = quorum.leader()
    quorum.loop.advance(1_000)
    began_ms, epoch = quorum.loop.now_ms, former.driver.node.epoch
    former.driver.resign()
    leader = quorum.leader()
    assert leader is not former
    assert leader.driver.node.epoch > epoch
    assert quorum.loop.now_ms - began_ms < TIMEOUTS.election // 2
    quorum.run_until(lambda: former.driver.node.leader_id == leader.key.id)


def test_an_observer_follows_and_is_counted_for_nothing() -> None:
    quorum = Quorum(SlowLog, observers=1)
    leader, observer = quorum.leader(), quorum.members[4]
    leader.driver.append([b"a"])
    quorum.run_until(lambda: observer.values()[-1:] == [b"a"])
    assert isinstance(leader.driver.node.quorum.state, Leader)
    assert [key.id for key in leader.driver.node.quorum.state.observers] == [4]
    quorum.cut = {1, 2, 3} - {leader.key.id}
    leader.driver.append([b"b"])
    quorum.loop.advance(500)
    assert observer.log.values(observer.log.end_offset)[-1:] == [b"b"]
    assert observer.values()[-1:] == [b"a"]
