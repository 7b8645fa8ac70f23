"""Bugs put into the quorum on purpose: the random test must notice each of them within 40 fixed runs.

A bug that no run finds would mean that the random test proves nothing about the rule that the bug breaks. Without a bug the same runs are
clean: they are a part of `test_random_quorum`, which plays each of them.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import NamedTuple
from unittest import mock

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.raft import quorum, voter_changes
from barnabas.raft.leader import Leader
from barnabas.raft.local_log import LocalLog
from barnabas.raft.peer_messages import LogEnd
from barnabas.raft.prospective import Prospective
from barnabas.raft.raft_node import RaftNode
from barnabas.raft.ready import FlushToken
from barnabas.raft.replica_key import ReplicaKey
from barnabas.raft.request_manager import RequestManager
from barnabas.raft.unattached import Unattached
from barnabas.raft.voter_changes import VoterChangeResult
from barnabas.raft.voter_set_history import VoterSetHistory
from tests.raft.quorum_world import Host
from tests.raft.test_random_quorum import SEEDS, SHAPES, play


class Wrong(NamedTuple):
    """What stands in for `owner.name` while a bug is there."""

    owner: object
    name: str
    replacement: object


_crash = Host.crash


def forget_the_vote(host: Host) -> None:
    _crash(host)
    host.election = host.election._replace(voted_id=-1, leader_id=-1)


def grant_twice(state: Unattached | Prospective, candidate: ReplicaKey, *, is_up_to_date: bool, pre_vote: bool) -> bool:
    return is_up_to_date


def grant_any_log(
    state: Unattached | Prospective, candidate: ReplicaKey, *, is_up_to_date: bool, pre_vote: bool
) -> bool:
    if pre_vote or state.voted is None:
        return pre_vote or state.leader_id == -1
    return state.voted.names(candidate)


def commit_older_epochs(leader: Leader) -> int:
    counted = quorum.commit_index(each.end_offset for each in leader.progress.values())
    leader.high_watermark = max(leader.high_watermark, counted or -1)
    return leader.high_watermark


def count_unflushed(leader: Leader, end_offset: int, now_ms: int) -> None:
    own = leader.progress[leader.key.id]
    leader.progress[leader.key.id] = own._replace(end_offset=1 << 40)


def take_stale_tokens(log: LocalLog, token: FlushToken) -> bool:
    log.durable_end = log.end_offset
    return True


def find_no_difference(log: LocalLog, offset: int, last_epoch: int) -> LogEnd | None:
    return None


def take_every_answer(manager: RequestManager, request: object, now_ms: int, *, is_ok: bool) -> bool:
    return True


RUNS = [(seed, *shape) for seed in SEEDS[:20] for shape in SHAPES[2:]]

BUGS: dict[str, tuple[Wrong, ...]] = {
    "a crash forgets the vote": (Wrong(Host, "crash", forget_the_vote),),
    "a node votes twice": (Wrong(Unattached, "grants", grant_twice),),
    "a vote ignores the log's end": (
        Wrong(Unattached, "grants", grant_any_log),
        Wrong(Prospective, "grants", grant_any_log),
    ),
    "an older epoch is committed by counting": (Wrong(Leader, "advance", commit_older_epochs),),
    "a follower fetches before its flush": (Wrong(LocalLog, "is_durable", property(lambda log: True)),),
    "a leader counts what it has not flushed": (Wrong(Leader, "flushed", count_unflushed),),
    "a minority decides": (Wrong(quorum, "majority", lambda voters: max(voters // 2, 1)),),
    "a leader compares no epochs": (Wrong(LocalLog, "differs_at", find_no_difference),),
    "a flush counts for what was written after it began": (Wrong(LocalLog, "flushed", take_stale_tokens),),
    "a node takes answers that it gave up": (Wrong(RequestManager, "ended", take_every_answer),),
}


def noticed(wrong: tuple[Wrong, ...], seed: int, voters: int, observers: int, *, changes: bool = False) -> bool:
    """Return whether a run with this bug fails."""
    with ExitStack() as stack:
        for each in wrong:
            stack.enter_context(mock.patch.object(each.owner, each.name, each.replacement))
        try:
            play(seed, voters, observers, changes=changes)
        except AssertionError:
            return True
    return False


def lead_without_removal(history: VoterSetHistory, key: ReplicaKey, high_watermark: int) -> bool:
    return history.last.voters.contains(*key)


def change_at_any_time(node: RaftNode, doing: str) -> VoterChangeResult | None:
    return None if node.is_leader else VoterChangeResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)


BUGS_OF_CHANGES: dict[str, Wrong] = {
    "voters change before the last change is committed": Wrong(voter_changes, "why_unchangeable", change_at_any_time),
    "a node that removed itself never stands": Wrong(VoterSetHistory, "may_stand", lead_without_removal),
}


@pytest.mark.parametrize("bug", BUGS_OF_CHANGES)
def test_the_random_test_notices_a_bug_of_voter_changes(bug: str) -> None:
    wrong, shapes = BUGS_OF_CHANGES[bug], ((1, 2), (2, 2), (3, 2))
    assert any(noticed((wrong,), seed, *shape, changes=True) for seed in range(20) for shape in shapes)


@pytest.mark.parametrize("bug", BUGS)
def test_the_random_test_notices(bug: str) -> None:
    assert any(noticed(BUGS[bug], *run) for run in RUNS)
