"""The file quorum-state."""

from __future__ import annotations

import pytest

from barnabas.raft.election_state import BadElectionState, ElectionState

KAFKA_VERSION_1 = (
    b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
)
KAFKA_VERSION_0 = (
    b'{"clusterId":"","leaderId":-1,"leaderEpoch":2,"votedId":3,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":3}],"data_version":0}'
)


def test_bytes_are_those_that_kafka_writes() -> None:
    assert ElectionState(epoch=1, leader_id=1).to_bytes() == KAFKA_VERSION_1


def test_before_the_first_election_there_is_no_epoch_and_no_leader() -> None:
    assert ElectionState() == (-1, -1, -1, bytes(16))
    assert not ElectionState(epoch=3).has_leader
    assert ElectionState(epoch=3, leader_id=0).has_leader


def test_reads_both_versions() -> None:
    assert ElectionState.from_bytes(KAFKA_VERSION_1) == ElectionState(1, 1)
    assert ElectionState.from_bytes(KAFKA_VERSION_0) == ElectionState(2, -1, 3)


def test_round_trip_with_a_vote() -> None:
    state = ElectionState(7, -1, 2, bytes(range(16)))
    assert ElectionState.from_bytes(state.to_bytes()) == state


@pytest.mark.parametrize("cut", range(len(KAFKA_VERSION_1)))
def test_a_cut_file_is_refused(cut: int) -> None:
    with pytest.raises(BadElectionState):
        ElectionState.from_bytes(KAFKA_VERSION_1[:cut])


@pytest.mark.parametrize(
    "data", [b"[]", b"{}", b"null", KAFKA_VERSION_1.replace(b'"data_version":1', b'"data_version":9')]
)
def test_other_content_is_refused(data: bytes) -> None:
    with pytest.raises(BadElectionState):
        ElectionState.from_bytes(data)
