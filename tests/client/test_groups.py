"""Groups: listed from every broker, and deleted."""

import json
from typing import Any

import pytest

from barnabas.client.admin import Admin, result
from barnabas.client.groups import REBALANCES
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import error_code, every_version, only


@pytest.mark.parametrize("version", every_version(messages.ListGroupsRequest))
def test_list_groups_asks_every_broker(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.ListGroupsRequest, version)
    response = messages.ListGroupsResponse

    def list_groups(broker_id: int, request: Any, version: int) -> Any:
        listed = response.ListedGroup(group_id=f"g{broker_id}", protocol_type="consumer")
        if version >= 4:
            listed.group_state = "Stable"
        return response(groups=[listed])

    memory.handlers["ListGroupsRequest"] = list_groups
    listed = admin.list_groups()
    assert [(each.group_id, each.coordinator) for each in listed] == [("g1", 1), ("g2", 2)]
    assert {each.state for each in listed} == ({"Stable"} if version >= 4 else {""})


def test_a_partial_list_of_groups_is_an_error(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.ListGroupsResponse
    memory.handlers["ListGroupsRequest"] = lambda broker_id, request, version: response(
        error_code=0 if broker_id == 1 else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    )
    with pytest.raises(KafkaError) as raised:
        admin.list_groups()
    assert raised.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_delete_groups(memory: MemoryCluster, admin: Admin) -> None:
    groups = messages.DeleteGroupsResponse
    codes = {"g": 0, "busy": ErrorCode.NON_EMPTY_GROUP, "nope": ErrorCode.GROUP_ID_NOT_FOUND}
    memory.handlers["DeleteGroupsRequest"] = lambda broker_id, request, version: groups(
        results=[
            groups.DeletableGroupResult(group_id=group_id, error_code=codes[group_id])
            for group_id in request.groups_names
        ]
    )
    deleted = admin.delete_groups(list(codes))
    assert deleted["g"] is None
    assert "group busy still has members" in str(deleted["busy"])
    assert "group nope does not exist" in str(deleted["nope"])


def test_rebalances_are_read_from_a_setting_of_the_group(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.DescribeConfigsResponse
    rebalance = {
        "epoch": 2, "cause": "member m joined", "member_id": "m", "client_id": "c", "started_ms": 5, "ended_ms": None,
        "superseded": False, "members": 1, "moved": [{"topic": "t", "partition": 0, "from": "", "to": "m"}],
    }  # fmt: skip

    def describe(broker_id: int, request: Any, version: int) -> Any:
        value = json.dumps({"rebalances": [rebalance]})
        entry = response.DescribeConfigsResourceResult(name=REBALANCES, value=value)
        return response(
            results=[
                response.DescribeConfigsResult(
                    resource_type=each.resource_type,
                    resource_name=each.resource_name,
                    configs=[entry] if each.resource_name == "g" else [],
                )
                for each in request.resources
            ]
        )

    memory.handlers["DescribeConfigsRequest"] = describe
    found = admin.group_rebalances(["g", "kafka"])
    (only_one,) = result(found["g"])
    assert (only_one.epoch, only_one.ended_ms, only_one.moved) == (2, None, [("t", 0, "", "m")])
    assert error_code(found["kafka"]) == ErrorCode.UNSUPPORTED_VERSION
