"""The checks of requests about groups: members, offsets, descriptions, deletions.

- The group comes first; a client that may not use it learns nothing of it, neither its existence nor its members.
- Topics come second, each by itself where offsets are committed or fetched, all together where a member subscribes or a group is
  described: one topic that the client may not describe hides the whole group.

Source: Kafka's `KafkaApis`, method by method.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from barnabas.api.authorization.operations import GROUP_OPERATIONS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.turns import ELEMENT, pace

if TYPE_CHECKING:
    from barnabas.api.authorization.asker import Asker
    from barnabas.api.serving.authorized_operations import DescribedGroup
    from barnabas.protocol import messages

    _OfGroup = (
        messages.JoinGroupRequest
        | messages.SyncGroupRequest
        | messages.HeartbeatRequest
        | messages.LeaveGroupRequest
        | messages.StreamsGroupTopologyDescriptionUpdateRequest
    )

__all__ = [
    "delete_groups",
    "describe_groups",
    "find_coordinator",
    "list_groups",
    "of_group",
    "sync_group",
    "with_bits",
]

COORDINATOR_KEYS_SINCE = 4
COORDINATOR_SHARE_SINCE = 6
_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
PROTOCOL_NAME_SINCE = 5

_DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED


Q = TypeVar("Q", bound="_OfGroup")
R = TypeVar("R")


def of_group(operation: AclOperation) -> Callable[[Asker, Q, Callable[[Q], Awaitable[R]]], Awaitable[R]]:
    """Return the check of a request about one group, which needs one operation on it."""

    async def check(asker: Asker, request: Q, then: Callable[[Q], Awaitable[R]]) -> R:
        asker.need(operation, ResourceType.GROUP, request.group_id)
        return await then(request)

    return check


async def sync_group(
    asker: Asker, request: SyncGroupRequest, then: Callable[[SyncGroupRequest], Awaitable[SyncGroupResponse]]
) -> SyncGroupResponse:
    """Ask for the group, unless the request lacks the protocol: then the handler refuses it."""
    if asker.version < PROTOCOL_NAME_SINCE or not (request.protocol_type is None or request.protocol_name is None):
        asker.need(AclOperation.READ, ResourceType.GROUP, request.group_id)
    return await then(request)


async def find_coordinator(
    asker: Asker,
    request: FindCoordinatorRequest,
    then: Callable[[FindCoordinatorRequest], Awaitable[FindCoordinatorResponse]],
) -> FindCoordinatorResponse:
    """Ask for each group or transactional id; the state of share groups is for brokers."""
    kind = request.key_type
    if kind == _SHARE and asker.version >= COORDINATOR_SHARE_SINCE:
        asker.need_cluster(AclOperation.CLUSTER_ACTION)
    if kind not in (_GROUP, _TRANSACTION):
        return await then(request)
    of = ResourceType.GROUP if kind == _GROUP else ResourceType.TRANSACTIONAL_ID
    if asker.version < COORDINATOR_KEYS_SINCE:
        asker.need(AclOperation.DESCRIBE, of, request.key)
        return await then(request)
    allowed, denied = await asker.split(request.coordinator_keys, AclOperation.DESCRIBE, of, str)
    request.coordinator_keys = allowed
    response = await then(request)
    code = _DENIED if kind == _GROUP else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    for key in denied:
        await pace(ELEMENT)
        response.coordinators.append(
            FindCoordinatorResponse.Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code)
        )
    return response


async def list_groups(
    asker: Asker, request: ListGroupsRequest, then: Callable[[ListGroupsRequest], Awaitable[ListGroupsResponse]]
) -> ListGroupsResponse:
    """Ask for the cluster, else leave out each group that the client may not describe."""
    response = await then(request)
    if not asker.may_cluster(AclOperation.DESCRIBE, is_loud=False):
        response.groups, _ = await asker.split(
            response.groups, AclOperation.DESCRIBE, ResourceType.GROUP, lambda group: group.group_id, is_loud=False
        )
    return response


async def describe_groups(
    asker: Asker,
    request: DescribeGroupsRequest,
    then: Callable[[DescribeGroupsRequest], Awaitable[DescribeGroupsResponse]],
) -> DescribeGroupsResponse:
    """Ask for each group; topics inside the members' bytes are not looked at."""
    allowed, denied = await asker.split(request.groups, AclOperation.DESCRIBE, ResourceType.GROUP, str)
    request.groups = allowed
    response = await then(request)
    if request.include_authorized_operations:
        await with_bits(asker, response.groups)
    for group_id in denied:
        await pace(ELEMENT)
        response.groups.append(DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=_DENIED))
    return response


async def delete_groups(
    asker: Asker, request: DeleteGroupsRequest, then: Callable[[DeleteGroupsRequest], Awaitable[DeleteGroupsResponse]]
) -> DeleteGroupsResponse:
    """Ask for each group, once."""
    allowed, denied = await asker.split(
        dict.fromkeys(request.groups_names), AclOperation.DELETE, ResourceType.GROUP, str
    )
    if not denied:
        return await then(request)
    request.groups_names = allowed
    response = await then(request)
    for group_id in denied:
        await pace(ELEMENT)
        response.results.append(DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=_DENIED))
    return response


async def with_bits(asker: Asker, groups: Sequence[DescribedGroup]) -> None:
    """Put what the client may do into the groups without an error."""
    for group in groups:
        await pace(ELEMENT)
        if group.error_code == ErrorCode.NONE:
            group.authorized_operations = asker.bits(GROUP_OPERATIONS, ResourceType.GROUP, group.group_id)
