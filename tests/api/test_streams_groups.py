"""Streams groups through a whole node: heartbeats, internal topics made by the way, descriptions, listings, deletion, commits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    CreateTopicsResponse,
    DeleteGroupsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    JoinGroupRequest,
    ListGroupsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    StreamsGroupDescribeRequest,
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from tests.api.served_node import Serving
from tests.group.streams.host import GROUP, Request, info, word_count

Commit = OffsetCommitRequest


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    node = Serving(tmp_path, group_streams_assignment_interval_ms="0")
    node.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), 4)
    yield node
    node.close()


def beat(node: Serving, epoch: int, version: int = 1, **fields: Any) -> Any:
    return node.ask(Request(group_id=GROUP, member_id="m", member_epoch=epoch, **fields), version)


def join(node: Serving, topology: Request.Topology | None = None, **fields: Any) -> Any:
    tasks: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    given = {"rebalance_timeout_ms": 60_000, "topology": topology or word_count(), "process_id": "p", **tasks}
    return beat(node, 0, **{**given, **fields})


def running(node: Serving) -> int:
    """A member with all its tasks; returns its epoch."""
    node.create_topic("lines", 2)
    join(node)
    epoch: int = join(node).member_epoch
    return epoch


def statuses(answer: Any) -> list[tuple[int, str]]:
    return [(status.status_code, status.status_detail) for status in answer.status]


def test_internal_topics_are_created(serving: Serving) -> None:
    serving.create_topic("lines", 3)
    first = join(serving)
    assert statuses(first) == [(3, "Internal topics are missing: r, c")]
    (r, c) = serving.ask(MetadataRequest(topics=[_named("r"), _named("c")])).topics
    assert (len(r.partitions), len(c.partitions)) == (3, 3)
    resource = DescribeConfigsRequest.DescribeConfigsResource(resource_type=2, resource_name="c")
    (result,) = serving.ask(DescribeConfigsRequest(resources=[resource])).results
    assert {config.name: config.value for config in result.configs}["cleanup.policy"] == "compact"
    second = beat(serving, first.member_epoch, active_tasks=[], standby_tasks=[], warmup_tasks=[])
    assert statuses(second) == []
    assert [(t.subtopology_id, t.partitions) for t in second.active_tasks] == [("0", [0, 1, 2]), ("1", [0, 1, 2])]


def _named(name: str) -> MetadataRequest.MetadataRequestTopic:
    return MetadataRequest.MetadataRequestTopic(name=name)


def test_metadata_may_name_an_internal_topic_that_is_being_created(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for the same creation, and finds the topic or its error."""
    serving.create_topic("lines", 3)
    created = serving.loop.create_future()
    monkeypatch.setattr(serving.server.services, "controller", SimpleNamespace(handle=lambda *given, **more: created))
    join(serving)
    serving.loop.call_later(0, lambda: created.set_result(_answer(r=0, c=ErrorCode.POLICY_VIOLATION)))
    (r, c) = serving.ask(MetadataRequest(topics=[_named("r"), _named("c")], allow_auto_topic_creation=True)).topics
    assert (r.error_code, c.error_code) == (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.POLICY_VIOLATION)
    assert serving.server.services.creating_topics == {}


def _answer(**codes: int) -> CreateTopicsResponse:
    results = [CreateTopicsResponse.CreatableTopicResult(name=name, error_code=code) for name, code in codes.items()]
    return CreateTopicsResponse(topics=results)


def test_why_an_internal_topic_could_not_be_created(serving: Serving) -> None:
    serving.create_topic("lines", 1)
    topology = word_count()
    topology.subtopologies[1].state_changelog_topics = [info("c", cleanup_policy="nonsense")]
    answer = join(serving, topology)
    (status,) = statuses(answer)
    assert status[0] == 3
    again = beat(serving, answer.member_epoch)
    (status,) = statuses(again)
    assert status[1].startswith("Internal topics are missing: c; Creation failed: c (")
    assert "nonsense" in status[1]
    assert list(serving.server.services.refused_topics) == ["c"], "it is not asked for again so soon"
    serving.now_ms += 10_001
    (status,) = statuses(beat(serving, again.member_epoch))
    assert "Creation failed" in status[1], "asked again, and refused again"


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        (
            "__consumer_offsets",
            "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited.",
        ),
        ("a b", "Topic names a b are not valid topic names."),
    ],
)
def test_names_that_no_topology_may_have(topic: str, words: str, serving: Serving) -> None:
    topology = word_count()
    topology.subtopologies[0].source_topics = [topic]
    answer = join(serving, topology)
    assert (answer.error_code, answer.error_message) == (ErrorCode.STREAMS_INVALID_TOPOLOGY, words)


@pytest.mark.parametrize("version", [0, 1])
def test_described(version: int, serving: Serving) -> None:
    epoch = running(serving)
    request = StreamsGroupDescribeRequest(group_ids=[GROUP, "other", ""], include_authorized_operations=True)
    if version:
        request.include_topology_description = True
    group, other, nameless = serving.ask(request, version).groups
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", epoch, epoch)
    assert [one.subtopology_id for one in group.topology.subtopologies] == ["0", "1"]
    assert group.topology.subtopologies[1].state_changelog_topics[0].partitions == 2
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.client_host) == ("m", epoch, "/10.0.0.9")
    assert group.authorized_operations > 0
    assert (other.error_code, other.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group other not found.")
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID
    if version:
        assert (group.assignor_name, group.topology_description_status) == ("sticky", 1)


def test_listed_and_deleted(serving: Serving) -> None:
    running(serving)
    (listed,) = serving.ask(ListGroupsRequest(types_filter=["streams"])).groups
    assert (listed.group_id, listed.protocol_type, listed.group_state) == (GROUP, "streams", "Stable")
    assert not serving.ask(ListGroupsRequest(types_filter=["consumer"])).groups
    (refused,) = serving.ask(DeleteGroupsRequest(groups_names=[GROUP])).results
    assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
    assert beat(serving, -1).member_epoch == -1
    (deleted,) = serving.ask(DeleteGroupsRequest(groups_names=[GROUP])).results
    assert deleted.error_code == ErrorCode.NONE
    assert not serving.ask(ListGroupsRequest()).groups
    assert join(serving).error_code == 0, "and it may come back"


def commit(node: Serving, epoch: int, member_id: str = "m", version: int = 9) -> int:
    partition = Commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = Commit.OffsetCommitRequestTopic(name="lines", partitions=[partition])
    request = Commit(group_id=GROUP, member_id=member_id, generation_id_or_member_epoch=epoch, topics=[topic])
    code: int = node.ask(request, version).topics[0].partitions[0].error_code
    return code


def test_commits_are_fenced_by_epoch(serving: Serving) -> None:
    epoch = running(serving)
    assert commit(serving, epoch) == 0
    assert commit(serving, epoch + 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(serving, epoch - 1) == ErrorCode.STALE_MEMBER_EPOCH, "before the task was assigned"
    assert commit(serving, epoch, "stranger") == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(serving, -1, "") == ErrorCode.UNKNOWN_MEMBER_ID
    later = join(serving, rack_id="elsewhere").member_epoch
    assert later == epoch + 1
    assert commit(serving, epoch) == 0, "the task is the member's since that epoch"
    group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=GROUP, member_id="m", member_epoch=epoch)
    (fetched,) = serving.ask(OffsetFetchRequest(groups=[group]), 9).groups
    assert fetched.error_code == ErrorCode.STALE_MEMBER_EPOCH
    beat(serving, -1)
    assert commit(serving, -1, "") == 0, "an administrator's, on the empty group"


def test_other_protocols_find_a_streams_group(serving: Serving) -> None:
    running(serving)
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    request = JoinGroupRequest(
        group_id=GROUP,
        member_id="",
        protocol_type="consumer",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocols=[protocol],
    )
    assert serving.ask(request, 3).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    (described,) = serving.ask(DescribeGroupsRequest(groups=[GROUP]), 6).groups
    assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    beat(serving, -1)
    assert serving.ask(request, 3).error_code == 0, "an empty one gives way"
    refused = join(serving)
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Group {GROUP} is not a streams group.",
    )


def test_a_groups_own_settings(serving: Serving) -> None:
    Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    value = IncrementalAlterConfigsRequest.AlterableConfig(
        name="streams.heartbeat.interval.ms", config_operation=0, value="7000"
    )
    request = IncrementalAlterConfigsRequest(
        resources=[Resource(resource_type=32, resource_name=GROUP, configs=[value])]
    )
    assert serving.ask(request).responses[0].error_code == 0
    assert join(serving).heartbeat_interval_ms == 7_000


def test_no_topology_description_is_kept(serving: Serving) -> None:
    request = StreamsGroupTopologyDescriptionUpdateRequest(group_id=GROUP, member_id="m", topology_epoch=0)
    answer = serving.ask(request)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert "no streams group topology description plugin" in answer.error_message


def test_switched_off(tmp_path: Path) -> None:
    node = Serving(tmp_path, group_coordinator_rebalance_protocols="classic,consumer")
    try:
        assert join(node).error_code == ErrorCode.UNSUPPORTED_VERSION
        (described,) = node.ask(StreamsGroupDescribeRequest(group_ids=[GROUP])).groups
        assert described.error_code == ErrorCode.UNSUPPORTED_VERSION
    finally:
        node.close()
