"""Error responses of whole requests, for every API and version: encodable, and carrying the code."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.api.serving.error_response import error_response
from barnabas.protocol.api_keys import descriptions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterUserScramCredentialsRequest,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribeGroupsRequest,
    DescribeUserScramCredentialsRequest,
    ElectLeadersRequest,
    FetchRequest,
    FindCoordinatorRequest,
    LeaveGroupRequest,
    OffsetFetchRequest,
    ProduceRequest,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from barnabas.protocol.schema import FieldSpec, message_spec

CODE = ErrorCode.COORDINATOR_NOT_AVAILABLE


def filled(known: Any, version: int) -> Any:
    """A request with one element in each array."""
    spec = message_spec(known.request)
    cls = known.request_class

    def value(field: FieldSpec) -> Any:
        plain = {"string": "name", "uuid": b"u" * 16, "bytes": b"", "bool": False, "records": b""}.get(field.type, 1)
        if not field.is_struct:
            return [plain] if field.is_array else plain
        struct = spec.structs[field.type]
        made = getattr(cls, field.type)(**{f.name: value(f) for f in struct.fields if version in f.versions})
        return [made] if field.is_array else made

    return cls(**{f.name: value(f) for f in spec.root.fields if version in f.versions})


@pytest.mark.parametrize("key", sorted(descriptions()))
def test_every_api_and_version_has_an_error_response(key: int) -> None:
    known = descriptions()[key]
    for version in range(known.min_version, known.max_version + 1):
        response = error_response(key, version, filled(known, version), CODE, "why")
        again = known.response_class.decode(response.encode(version), version)
        if known.name != "StreamsGroupTopologyDescriptionUpdate":
            assert str(int(CODE)) in repr(again), (known.name, version, again)


def test_a_failed_heartbeat_has_only_the_code() -> None:
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=7)
    response = error_response(68, 1, request, ErrorCode.UNSUPPORTED_VERSION)
    assert response == ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)


def test_failed_share_requests_have_no_message() -> None:
    request = ShareGroupHeartbeatRequest(group_id="g", member_id="", member_epoch=0)
    response = error_response(76, 1, request, ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    assert response == ShareGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST)


def test_failed_descriptions_of_groups_have_no_message() -> None:
    (group,) = error_response(
        69, 1, ConsumerGroupDescribeRequest(group_ids=["g"]), ErrorCode.UNSUPPORTED_VERSION
    ).groups
    assert (group.group_id, group.error_code, group.error_message) == ("g", ErrorCode.UNSUPPORTED_VERSION, None)


@pytest.mark.parametrize(
    ("message", "said"), [(None, CODE.default_message), (CODE.default_message,) * 2, ("why", "why")]
)
def test_a_coordinators_response_always_has_a_message(message: str | None, said: str) -> None:
    (found,) = error_response(10, 4, FindCoordinatorRequest(coordinator_keys=["g"]), CODE, message).coordinators
    assert found.error_message == said


def test_produce_names_its_partitions() -> None:
    partition = ProduceRequest.PartitionProduceData(index=5, records=b"")
    request = ProduceRequest(topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=[partition])])
    (topic,) = error_response(0, 9, request, CODE).responses
    assert (topic.name, topic.partition_responses[0].index, topic.partition_responses[0].base_offset) == ("t", 5, -1)


def test_elections_and_reassignments_have_the_error_twice() -> None:
    elected = ElectLeadersRequest(topic_partitions=[ElectLeadersRequest.TopicPartitions(topic="t", partitions=[5])])
    answer = error_response(43, 2, elected, CODE, "no")
    (topic,) = answer.replica_election_results
    assert answer.error_code == CODE
    assert [(p.partition_id, p.error_code, p.error_message) for p in topic.partition_result] == [(5, CODE, "no")]
    moved = AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=5)
    asked = AlterPartitionReassignmentsRequest(
        topics=[AlterPartitionReassignmentsRequest.ReassignableTopic(name="t", partitions=[moved])]
    )
    answered = error_response(45, 0, asked, CODE, "no")
    (reassigned,) = answered.responses
    assert (answered.error_code, answered.error_message, reassigned.name) == (CODE, "no", "t")
    assert [(p.partition_index, p.error_code) for p in reassigned.partitions] == [(5, CODE)]


def test_fetch_names_its_partitions_until_it_has_a_code_of_its_own() -> None:
    partition = FetchRequest.FetchPartition(partition=5, fetch_offset=0, partition_max_bytes=1)
    request = FetchRequest(
        max_wait_ms=1, min_bytes=1, topics=[FetchRequest.FetchTopic(topic="t", partitions=[partition])]
    )
    (topic,) = error_response(1, 6, request, CODE).responses
    assert (topic.topic, topic.partitions[0].partition_index, topic.partitions[0].error_code) == ("t", 5, CODE)
    assert error_response(1, 12, request, CODE).error_code == CODE


def test_plain_keys_are_repeated() -> None:
    (group,) = error_response(15, 5, DescribeGroupsRequest(groups=["g"]), CODE).groups
    assert (group.group_id, group.group_state, group.error_code) == ("g", "", CODE)
    (found,) = error_response(10, 4, FindCoordinatorRequest(coordinator_keys=["g"]), CODE, "why").coordinators
    assert (found.key, found.node_id, found.host, found.error_code, found.error_message) == ("g", -1, "", CODE, "why")
    member = LeaveGroupRequest.MemberIdentity(member_id="m")
    assert error_response(13, 4, LeaveGroupRequest(group_id="g", members=[member]), CODE).error_code == CODE


def test_offset_fetch_moves_its_code_to_the_group() -> None:
    old = OffsetFetchRequest(group_id="g", topics=None)
    assert error_response(9, 7, old, CODE).error_code == CODE
    new = OffsetFetchRequest(groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)])
    (group,) = error_response(9, 8, new, CODE).groups
    assert (group.group_id, group.error_code) == ("g", CODE)


def test_scram_users_have_the_error_once_each() -> None:
    kind = AlterUserScramCredentialsRequest
    request = kind(
        deletions=[kind.ScramCredentialDeletion(name=name, mechanism=1) for name in ("alice", "bob")],
        upsertions=[kind.ScramCredentialUpsertion(name=name, mechanism=2) for name in ("bob", "carol")],
    )
    response = error_response(51, 0, request, CODE)
    assert [(each.user, each.error_code) for each in response.results] == [(n, CODE) for n in ("alice", "bob", "carol")]


def test_described_scram_users_have_the_error_without_their_names() -> None:
    kind = DescribeUserScramCredentialsRequest
    response = error_response(50, 0, kind(users=[kind.UserName(name="alice")]), CODE)
    assert (response.error_code, response.error_message) == (CODE, None)
    assert [(each.user, each.error_code, each.error_message) for each in response.results] == [("", CODE, None)]
    assert error_response(50, 0, kind(users=None), CODE).results == []
