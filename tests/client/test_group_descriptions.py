"""Groups of every type, described by the API that knows them."""

from typing import Any

import pytest

from barnabas.client.admin import Admin, TopicPartition, result
from barnabas.client.group_descriptions import Subtopology
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import T0, T1, error_code, every_version, only


def without(memory: MemoryCluster, *names: str) -> None:
    for name in names:
        del memory.versions[getattr(messages, f"{name}Request").API_KEY]


def classic_groups(broker_id: int, request: Any, version: int) -> Any:
    response = messages.DescribeGroupsResponse
    assigned = messages.ConsumerProtocolAssignment(
        assigned_partitions=[messages.ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=[1, 0])]
    )
    groups = []
    for group_id in request.groups:
        if group_id == "g":
            member = response.DescribedGroupMember(
                member_id="m", client_id="c", client_host="/127.0.0.1", member_assignment=b"\0\0" + assigned.encode(0)
            )
            odd = response.DescribedGroupMember(member_id="n", member_assignment=b"\x00")
            groups.append(
                response.DescribedGroup(
                    group_id="g", group_state="Stable", protocol_type="consumer", protocol_data="range",
                    members=[odd, member],
                )
            )  # fmt: skip
        elif version >= 6:
            groups.append(response.DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND))
        else:
            groups.append(response.DescribedGroup(group_id=group_id, group_state="Dead"))
    return response(groups=groups)


@pytest.mark.parametrize("version", every_version(messages.DescribeGroupsRequest))
def test_describe_classic_groups(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.DescribeGroupsRequest, version)
    without(memory, "ConsumerGroupDescribe", "ShareGroupDescribe", "StreamsGroupDescribe")
    memory.handlers["DescribeGroupsRequest"] = classic_groups
    found = admin.describe_groups(["g", "nope"])
    group = result(found["g"])
    assert (group.type, group.state, group.assignor, group.coordinator.id) == ("classic", "Stable", "range", 2)
    assert [(member.member_id, member.assignment) for member in group.members] == [("m", [T0, T1]), ("n", [])]
    assert "group nope does not exist" in str(found["nope"])


@pytest.mark.parametrize("version", every_version(messages.ConsumerGroupDescribeRequest))
def test_describe_groups_of_both_types(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.ConsumerGroupDescribeRequest, version)
    without(memory, "ShareGroupDescribe", "StreamsGroupDescribe")
    response = messages.ConsumerGroupDescribeResponse

    def describe(broker_id: int, request: Any, version: int) -> Any:
        groups = []
        for group_id in request.group_ids:
            if group_id == "new":
                topic = response.TopicPartitions(topic_name="t", partitions=[0])
                member = response.Member(
                    member_id="m", client_id="c", assignment=response.Assignment(topic_partitions=[topic])
                )
                groups.append(
                    response.DescribedGroup(
                        group_id="new", group_state="Stable", assignor_name="uniform", members=[member]
                    )
                )
            else:
                groups.append(response.DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND))
        return response(groups=groups)

    memory.handlers["ConsumerGroupDescribeRequest"] = describe
    memory.handlers["DescribeGroupsRequest"] = classic_groups
    found = admin.describe_groups(["new", "g", "nope"])
    assert result(found["new"]).type == "consumer"
    assert result(found["new"]).members[0].assignment == [T0]
    assert result(found["g"]).type == "classic"
    assert error_code(found["nope"]) == ErrorCode.GROUP_ID_NOT_FOUND


def found_by(response_class: Any, known: dict[str, Any]) -> Any:
    """A handler that describes the known groups and returns GROUP_ID_NOT_FOUND for others."""

    def describe(broker_id: int, request: Any, version: int) -> Any:
        unknown = ErrorCode.GROUP_ID_NOT_FOUND
        return response_class(
            groups=[
                known.get(group_id) or response_class.DescribedGroup(group_id=group_id, error_code=unknown)
                for group_id in request.group_ids
            ]
        )

    return describe


@pytest.fixture
def every_type(memory: MemoryCluster) -> MemoryCluster:
    """Group "new" is a consumer group, "g" classic, "q" a share group, "app" a streams group."""
    consumer, share, streams = (
        messages.ConsumerGroupDescribeResponse,
        messages.ShareGroupDescribeResponse,
        messages.StreamsGroupDescribeResponse,
    )
    held = share.Assignment(topic_partitions=[share.TopicPartitions(topic_name="t", partitions=[1, 0])])
    subtopology = streams.Subtopology(
        subtopology_id="0", source_topics=["t"], repartition_source_topics=[streams.TopicInfo(name="r")],
        repartition_sink_topics=["s"], state_changelog_topics=[streams.TopicInfo(name="c")],
    )  # fmt: skip
    tasks = streams.Assignment(
        active_tasks=[streams.TaskIds(subtopology_id="0", partitions=[1])],
        standby_tasks=[streams.TaskIds(subtopology_id="0", partitions=[0])],
    )
    groups: dict[str, tuple[Any, Any]] = {
        "ConsumerGroupDescribe": (consumer, consumer.DescribedGroup(group_id="new", group_state="Stable")),
        "ShareGroupDescribe": (
            share,
            share.DescribedGroup(
                group_id="q", group_state="Stable", assignor_name="simple",
                group_epoch=5, assignment_epoch=4,
                members=[share.Member(member_id="m", member_epoch=4, client_id="c", client_host="/h", assignment=held)],
            ),
        ),
        "StreamsGroupDescribe": (
            streams,
            streams.DescribedGroup(
                group_id="app", group_state="Stable", topology=streams.Topology(subtopologies=[subtopology]),
                members=[streams.Member(member_id="m", instance_id="i", assignment=tasks)],
            ),
        ),
    }  # fmt: skip
    for name, (response_class, group) in groups.items():
        memory.handlers[f"{name}Request"] = found_by(response_class, {group.group_id: group})
    memory.handlers["DescribeGroupsRequest"] = classic_groups
    return memory


def test_each_type_is_described_by_its_api(every_type: MemoryCluster, admin: Admin) -> None:
    found = admin.describe_groups(["new", "g", "q", "app", "nope"])
    described = {name: result(group) for name, group in found.items() if name != "nope"}
    assert {name: (group.type, group.protocol_type) for name, group in described.items()} == {
        "new": ("consumer", "consumer"),
        "g": ("classic", "consumer"),
        "q": ("share", "share"),
        "app": ("streams", "streams"),
    }
    assert [tuple(member) for member in described["q"].members] == [("m", None, "c", "/h", [T0, T1], 4, None)]
    # Only active tasks count, with every source topic of their subtopology.
    assert [member.assignment for member in described["app"].members] == [[TopicPartition("r", 1), T1]]
    assert str(found["nope"]) == "GROUP_ID_NOT_FOUND: group nope does not exist"


def test_epochs_and_subtopologies(every_type: MemoryCluster, admin: Admin) -> None:
    found = admin.describe_groups(["g", "q", "app"])
    described = {name: result(group) for name, group in found.items()}
    assert {name: (group.epoch, group.assignment_epoch) for name, group in described.items()} == {
        "g": (None, None),
        "q": (5, 4),
        "app": (0, 0),
    }
    assert described["app"].subtopologies == [Subtopology("0", ["t"], ["r"], ["s"], ["c"])]
    assert described["q"].subtopologies == []
    (member,) = described["app"].members
    assert (member.epoch, member.target) == (0, [])


def test_an_api_is_asked_only_about_groups_that_are_still_unknown(every_type: MemoryCluster, admin: Admin) -> None:
    every_type.coordinators = dict.fromkeys(["new", "g", "q", "app"], 1)
    admin.describe_groups(["new", "g", "q", "app"])
    asked = {
        name: [getattr(request, "group_ids", None) or request.groups for request in every_type.asked(f"{name}Request")]
        for name in ("ConsumerGroupDescribe", "DescribeGroups", "ShareGroupDescribe", "StreamsGroupDescribe")
    }
    assert asked == {
        "ConsumerGroupDescribe": [["new", "g", "q", "app"]],
        "DescribeGroups": [["g", "q", "app"]],
        "ShareGroupDescribe": [["q", "app"]],
        "StreamsGroupDescribe": [["app"]],
    }


def test_a_broker_without_the_newer_apis_is_asked_about_classic_groups_only(
    every_type: MemoryCluster, admin: Admin
) -> None:
    without(every_type, "ConsumerGroupDescribe", "ShareGroupDescribe", "StreamsGroupDescribe")
    found = admin.describe_groups(["g", "q"])
    assert result(found["g"]).type == "classic"
    assert error_code(found["q"]) == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_is_described_once_its_coordinator_has_loaded(every_type: MemoryCluster, admin: Admin) -> None:
    response = messages.ShareGroupDescribeResponse
    described = every_type.handlers["ShareGroupDescribeRequest"]

    def loading(broker_id: int, request: Any, version: int) -> Any:
        if every_type.slept:
            return described(broker_id, request, version)
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return response(groups=[response.DescribedGroup(group_id="q", error_code=code)])

    every_type.handlers["ShareGroupDescribeRequest"] = loading
    assert result(admin.describe_groups(["q"])["q"]).type == "share"
    assert len(every_type.slept) == 1


def test_an_error_other_than_unknown_is_the_answer(every_type: MemoryCluster, admin: Admin) -> None:
    response = messages.ConsumerGroupDescribeResponse
    every_type.handlers["ConsumerGroupDescribeRequest"] = lambda broker_id, request, version: response(
        groups=[response.DescribedGroup(group_id="new", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)]
    )
    assert error_code(admin.describe_groups(["new"])["new"]) == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert every_type.asked("DescribeGroupsRequest") == []
