"""The requests that change the quorum's voters, as bytes at a controller's listener."""

from __future__ import annotations

import pytest

from barnabas.protocol.api_keys import ApiKey, api
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import AddRaftVoterRequest, RemoveRaftVoterRequest, UpdateRaftVoterRequest
from tests.api.controlling import Controlling

CHANGES = [ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER, ApiKey.UPDATE_RAFT_VOTER]
DIRECTORY = b"d" * 16


@pytest.mark.parametrize("key", CHANGES)
def test_another_cluster_is_rejected(controlling: Controlling, key: int) -> None:
    answer = controlling.ask(api(key).request_class(cluster_id="another"))
    assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    if key != ApiKey.UPDATE_RAFT_VOTER:  # It has no message.
        assert answer.error_message.startswith('The given id "another" doesn\'t match the cluster id "')


@pytest.mark.parametrize("key", CHANGES)
def test_only_the_leader_answers(controlling: Controlling, key: int) -> None:
    controlling.resign()
    answer = controlling.ask(api(key).request_class(cluster_id=None))
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_what_is_not_whole_is_rejected_in_kafkas_words(controlling: Controlling) -> None:
    answer = controlling.ask(AddRaftVoterRequest(cluster_id=None, voter_id=2))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message == "Add voter request didn't include a valid voter"
    answer = controlling.ask(RemoveRaftVoterRequest(cluster_id=None, voter_id=2, voter_directory_id=DIRECTORY))
    assert answer.error_code == ErrorCode.VOTER_NOT_FOUND
    assert answer.error_message.startswith(
        "Cannot remove voter ReplicaKey(id=2, directoryId=ZGRkZGRkZGRkZGRkZGRkZA) from the set of voters [ReplicaKey(id=1, "
    )


def test_the_answer_to_an_update_names_the_leader(controlling: Controlling) -> None:
    node = controlling.quorum.driver.node
    request = UpdateRaftVoterRequest(
        cluster_id=None,
        current_leader_epoch=node.epoch,
        voter_id=2,
        voter_directory_id=DIRECTORY,
        listeners=[UpdateRaftVoterRequest.Listener(name="CONTROLLER", host="two.example", port=9093)],
        k_raft_version_feature=UpdateRaftVoterRequest.KRaftVersionFeature(
            min_supported_version=0, max_supported_version=1
        ),
    )
    answer = controlling.ask(request)
    assert answer.error_code == ErrorCode.VOTER_NOT_FOUND
    leader = answer.current_leader
    assert (leader.leader_id, leader.leader_epoch) == (1, node.epoch)
    assert (leader.host, leader.port) == ("controller.example", 9093)


def test_a_voter_with_endless_listeners_is_rejected(controlling: Controlling) -> None:
    listener = AddRaftVoterRequest.Listener(name="C", host="h", port=1)
    answer = controlling.ask(AddRaftVoterRequest(cluster_id=None, voter_id=2, listeners=[listener] * 100_000))
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message == "The request's arrays have more than 5000 elements."


def test_a_static_quorum_rejects_changes_in_kafkas_words() -> None:
    static = Controlling(
        controller_quorum_voters="1@controller.example:9093", process_roles="broker,controller", node_id="1"
    )
    request = RemoveRaftVoterRequest(cluster_id=None, voter_id=1, voter_directory_id=DIRECTORY)
    answer = static.ask(request)
    message = "Cluster doesn't support removing voter because the kraft.version feature is 0"
    assert (answer.error_code, answer.error_message) == (ErrorCode.UNSUPPORTED_VERSION, message)
    static.close()
