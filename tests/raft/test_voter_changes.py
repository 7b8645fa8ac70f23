"""Voters are added, removed and updated, one at a time, over drivers in virtual time; the words are Apache Kafka's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.roles import Role
from barnabas.raft.voter_changes import VersionRange, VoterChangeResult, VoterChanges
from barnabas.raft.voters import Voter, VoterEndpoint
from barnabas.steps import sleep, start
from tests.raft.member_of_three import THREE, TIMEOUTS, TWO
from tests.raft.quorum_of_drivers import Member, Quorum, SlowLog

OK = VoterChangeResult()
ENDPOINT = VoterEndpoint("CONTROLLER", "two.example", 9093)
NEW = Voter(*TWO, (ENDPOINT,))
SHOWN = "ReplicaKey(id=2, directoryId=AgICAgICAgICAgICAgICAg)"
ONE_SHOWN = "ReplicaKey(id=1, directoryId=AQEBAQEBAQEBAQEBAQEBAQ)"
PENDING = "Request timed out waiting for leader to handle previous voter change request"


class Changing:
    """A quorum, and the changes of its first leader."""

    def __init__(self, voters: int, observers: int = 0, *, is_static: bool = False) -> None:
        self.quorum = Quorum(SlowLog, voters, observers, is_static=is_static)
        self.versions: VersionRange | KafkaError | None = VersionRange(0, 1)
        self.asked: list[tuple[int, VoterEndpoint]] = []
        self.on_asked: Callable[[], object] = lambda: None
        self.leader: Member[SlowLog] = self.quorum.leader()
        self.changes = VoterChanges(
            self.leader.driver,
            self.quorum.loop,
            listener_name="CONTROLLER",
            versions_of=self.versions_of,
            timeout_ms=TIMEOUTS.request,
        )
        self.quorum.loop.advance(300)

    async def versions_of(self, node_id: int, endpoint: VoterEndpoint) -> VersionRange | None:
        self.asked.append((node_id, endpoint))
        await sleep(0.005, self.quorum.loop)
        self.on_asked()
        if isinstance(self.versions, KafkaError):
            raise self.versions
        return self.versions

    def begin(self, change: Coroutine[Any, Any, VoterChangeResult]) -> asyncio.Future[VoterChangeResult]:
        return start(change, self.quorum.loop)

    def run(self, change: Coroutine[Any, Any, VoterChangeResult]) -> VoterChangeResult:
        begun = self.begin(change)
        self.quorum.run_until(begun.done)
        return begun.result()

    def voters_at(self, node_id: int) -> tuple[int, ...]:
        return self.quorum.members[node_id].driver.node.voters.ids()

    def until_all_have(self, *voters: int) -> None:
        self.quorum.run_until(lambda: all(self.voters_at(each) == voters for each in self.quorum.members))


def test_a_quorum_grows_from_one_to_three() -> None:
    world = Changing(1, 2)
    assert world.run(world.changes.add(NEW)) == OK
    assert world.asked == [(2, ENDPOINT)]
    assert world.run(world.changes.add(Voter(*THREE, (ENDPOINT,)))) == OK
    world.until_all_have(1, 2, 3)
    assert world.leader.driver.node.voters.voter(2) == NEW
    world.quorum.cut.add(1)
    assert world.quorum.leader().key.id in (2, 3)


def test_the_leader_removes_itself_and_resigns_after_the_commit() -> None:
    world = Changing(3)
    leader = world.leader
    assert world.run(world.changes.remove(leader.key)) == OK
    assert leader.role is not Role.LEADER
    assert ("resigned", leader.driver.node.epoch) in leader.told or leader.driver.node.epoch > 1
    left = tuple(each for each in (1, 2, 3) if each != leader.key.id)
    world.quorum.run_until(lambda: any(world.quorum.members[each].role is Role.LEADER for each in left))
    world.until_all_have(*left)
    assert not leader.driver.node.quorum.is_voter


def test_a_quorum_shrinks_to_one_which_stays() -> None:
    world = Changing(2)
    other = TWO if world.leader.key.id == 1 else ReplicaKey(1, b"\1" * 16)
    assert world.run(world.changes.remove(other)) == OK
    world.until_all_have(world.leader.key.id)
    error, message = world.run(world.changes.remove(world.leader.key))
    assert error is ErrorCode.VOTER_NOT_FOUND
    assert message is not None
    assert message.startswith("Cannot remove voter ReplicaKey(id=")


def test_an_answer_before_the_commit() -> None:
    world = Changing(1, 1)
    begun = world.begin(world.changes.add(NEW, when_committed=False))
    world.quorum.run_until(begun.done)
    assert begun.result() == OK
    node = world.leader.driver.node
    assert node.history.last.offset >= node.high_watermark
    error, message = world.run(world.changes.remove(TWO))
    assert error is ErrorCode.REQUEST_TIMED_OUT
    assert message == (
        f"Request timed out waiting for voters to commit the latest voter change at Optional[{node.history.last.offset}] "
        f"with HWM {node.high_watermark}"
    )


def test_one_change_at_a_time() -> None:
    world = Changing(1, 1)
    begun = world.begin(world.changes.add(NEW))
    busy = VoterChangeResult(ErrorCode.REQUEST_TIMED_OUT, PENDING)
    assert world.run(world.changes.remove(TWO)) == busy
    assert world.run(world.changes.add(NEW)) == busy
    assert world.changes.update(1, NEW) is ErrorCode.REQUEST_TIMED_OUT
    world.quorum.run_until(begun.done)
    assert begun.result() == OK


def test_a_change_that_is_not_committed_in_time() -> None:
    world = Changing(1, 1)
    world.on_asked = lambda: world.quorum.cut.add(2)
    assert world.run(world.changes.add(NEW)) == VoterChangeResult(ErrorCode.REQUEST_TIMED_OUT)
    assert world.voters_at(1) == (1, 2)


def test_a_leader_that_gives_up_before_the_commit() -> None:
    world = Changing(3)
    world.quorum.cut |= {2, 3, 1} - {world.leader.key.id}
    gone = TWO if world.leader.key.id != 2 else THREE
    begun = world.begin(world.changes.remove(gone))
    world.leader.driver.resign()
    world.quorum.run_until(begun.done)
    assert begun.result() == VoterChangeResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert world.run(world.changes.remove(gone)) == VoterChangeResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_the_epoch_must_have_committed_first() -> None:
    quorum = Quorum(SlowLog, 1)
    node = quorum.members[1].driver.node
    changes = VoterChanges(
        quorum.members[1].driver, quorum.loop, listener_name="CONTROLLER", versions_of=_never, timeout_ms=9
    )
    assert node.is_leader
    assert start(changes.remove(TWO), quorum.loop).result() == VoterChangeResult(
        ErrorCode.REQUEST_TIMED_OUT,
        "Request timed out waiting for leader to establish HWM and fence previous voter changes",
    )


async def _never(node_id: int, endpoint: VoterEndpoint) -> VersionRange | None:
    raise AssertionError("nobody is asked")


def test_a_static_quorum_has_the_voters_of_its_configuration() -> None:
    world = Changing(1, 1, is_static=True)
    for change, doing in ((world.changes.add(NEW), "adding"), (world.changes.remove(TWO), "removing")):
        words = f"Cluster doesn't support {doing} voter because the kraft.version feature is 0"
        assert world.run(change) == VoterChangeResult(ErrorCode.UNSUPPORTED_VERSION, words)


def test_a_voter_is_not_added_twice() -> None:
    world = Changing(1, 1)
    assert world.run(world.changes.add(NEW)) == OK
    again = Voter(2, b"another disk abc", (ENDPOINT,))
    assert world.run(world.changes.add(again)) == VoterChangeResult(
        ErrorCode.DUPLICATE_VOTER,
        "The voter id for ReplicaKey(id=2, directoryId=YW5vdGhlciBkaXNrIGFiYw) is already part of the set of voters "
        f"[{ONE_SHOWN}, {SHOWN}].",
    )


@pytest.mark.parametrize(
    ("versions", "error", "message"),
    [
        (
            KafkaError(ErrorCode.BROKER_NOT_AVAILABLE),
            ErrorCode.REQUEST_TIMED_OUT,
            "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE",
        ),
        (
            None,
            ErrorCode.INVALID_REQUEST,
            f"Aborted add voter operation for {SHOWN} since the kraft.version range (min: 0, max: 0) doesn't "
            "support the finalized version 1",
        ),
        (
            VersionRange(2, 3),
            ErrorCode.INVALID_REQUEST,
            f"Aborted add voter operation for {SHOWN} since the kraft.version range (min: 2, max: 3 doesn't "
            "support the finalized version 1",
        ),
    ],
)
def test_what_a_new_voter_must_support(
    versions: VersionRange | KafkaError | None, error: ErrorCode, message: str
) -> None:
    world = Changing(1, 1)
    world.versions = versions
    assert world.run(world.changes.add(NEW)) == VoterChangeResult(error, message)
    assert world.voters_at(1) == (1,)


def test_a_new_voter_must_have_caught_up() -> None:
    world = Changing(1, 1)
    unknown = Voter(7, b"7" * 16, (ENDPOINT,))
    words = "Aborted add voter operation for ReplicaKey(id=7, directoryId=Nzc3Nzc3Nzc3Nzc3Nzc3Nw) since it is lagging behind"
    assert world.run(world.changes.add(unknown)) == VoterChangeResult(ErrorCode.REQUEST_TIMED_OUT, words)


@pytest.mark.parametrize(
    ("voter", "words"),
    [
        (Voter(-1, TWO.directory_id, (ENDPOINT,)), "Add voter request didn't include a valid voter"),
        (Voter(2, bytes(16), (ENDPOINT,)), "Add voter request didn't include a valid voter"),
        (Voter(*TWO), "Add voter request didn't include the endpoint"),
        (
            NEW._replace(endpoints=(ENDPOINT._replace(name="OTHER"),)),
            "for the default listener ListenerName(CONTROLLER)",
        ),
    ],
)
def test_a_new_voter_must_be_whole(voter: Voter, words: str) -> None:
    world = Changing(1, 1)
    error, message = world.run(world.changes.add(voter))
    assert error is ErrorCode.INVALID_REQUEST
    assert words in str(message)
    error, message = world.run(world.changes.remove(voter.key._replace(directory_id=bytes(16))))
    assert (error, message) == (ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter")


def test_an_update_takes_over_endpoints_and_versions() -> None:
    world = Changing(1, 1)
    assert world.run(world.changes.add(NEW)) == OK
    epoch = world.leader.driver.node.epoch
    moved = NEW._replace(endpoints=(ENDPOINT._replace(port=9999),), kraft_max_version=2)
    update: Callable[[int, Voter], ErrorCode] = world.changes.update
    assert update(epoch - 1, moved) is ErrorCode.FENCED_LEADER_EPOCH
    assert update(epoch + 1, moved) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert update(epoch, moved._replace(endpoints=())) is ErrorCode.INVALID_REQUEST
    assert update(epoch, moved._replace(kraft_min_version=3)) is ErrorCode.INVALID_REQUEST
    assert update(epoch, moved._replace(kraft_max_version=0)) is ErrorCode.INVALID_REQUEST
    assert update(epoch, moved._replace(directory_id=b"d" * 16)) is ErrorCode.VOTER_NOT_FOUND
    assert update(epoch, moved) is ErrorCode.NONE
    assert update(epoch, moved) is ErrorCode.REQUEST_TIMED_OUT
    world.quorum.run_until(lambda: world.quorum.members[2].driver.node.voters.voter(2) == moved)
