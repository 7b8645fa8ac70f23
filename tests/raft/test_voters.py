"""The voter set and its record (KIP-853)."""

from __future__ import annotations

from barnabas.protocol.messages import VotersRecord
from barnabas.protocol.primitives import ZERO_UUID
from barnabas.raft.voters import Voter, VoterEndpoint, VoterSet

A, B = b"a" * 16, b"b" * 16


def test_round_trip_through_the_record() -> None:
    voters = VoterSet.of([Voter(2, B, (), 1, 2), Voter(1, A, (VoterEndpoint("CONTROLLER", "localhost", 9093),))])
    record = VotersRecord.decode(voters.to_record().encode(0), 0)
    assert VoterSet.from_record(record) == voters
    assert voters.ids() == (1, 2)


def test_a_voter_supports_kraft_versions_0_and_1_if_it_names_no_others() -> None:
    features = [
        voter.k_raft_version_feature for voter in VoterSet.of([Voter(1, A, (), 1, 2), Voter(2, B)]).to_record().voters
    ]
    assert [(feature.min_supported_version, feature.max_supported_version) for feature in features] == [(1, 2), (0, 1)]


def test_a_new_directory_is_another_voter() -> None:
    voters = VoterSet.of([Voter(1, A)])
    assert voters.contains(1, A)
    assert not voters.contains(1, B)
    assert not voters.contains(2, A)


def test_a_static_voter_set_names_no_directories() -> None:
    assert VoterSet.of([Voter(1, ZERO_UUID)]).contains(1, A)


def test_a_voter_is_reached_at_the_listener_of_a_name_or_at_its_first_one() -> None:
    first, second = VoterEndpoint("CONTROLLER", "one", 1), VoterEndpoint("OTHER", "one", 2)
    voters = VoterSet.of([Voter(1, A, (first, second)), Voter(2, B)])
    assert voters.endpoint_of(1, "OTHER") == second
    assert voters.endpoint_of(1, "THIRD") == first
    assert voters.endpoint_of(2, "CONTROLLER") is None
    assert voters.endpoint_of(3, "CONTROLLER") is None
