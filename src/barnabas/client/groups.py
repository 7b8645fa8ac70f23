"""Groups: list them, explain their rebalances, delete them. `group_descriptions` and `group_offsets` have the rest.

Sources: ListGroups (16), DeleteGroups (42), DescribeConfigs (32); KIP-222, KIP-229, KIP-848.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.configs import ResourceType
from barnabas.client.outcome import outcome_of, results
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for

REBALANCES = "barnabas.rebalances"


class GroupListing(NamedTuple):
    """A group as ListGroups returns it; an old broker leaves state and type empty."""

    group_id: str
    protocol_type: str
    state: str
    type: str
    coordinator: int


class MovedPartition(NamedTuple):
    """A partition that changed hands in a rebalance; an empty id means no member."""

    topic: str
    partition: int
    from_member: str
    to_member: str


class GroupRebalance(NamedTuple):
    """One rebalance, as the coordinator saw it; `ended_ms` is None while it continues."""

    epoch: int
    cause: str
    member_id: str
    client_id: str
    started_ms: int
    ended_ms: int | None
    superseded: bool
    members: int | None
    moved: list[MovedPartition]


def list_groups(cluster: Cluster, *, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[GroupListing]:
    """Return every broker's groups, sorted by id.

    Args:
        states: only groups in one of these states (`Stable`, `Empty`, …); needs ListGroups v4.
        types: only groups of one of these types (`classic`, `consumer`, …); needs ListGroups v5.

    Raises:
        KafkaError: a broker did not answer; a partial list would look complete.
    """

    def ask(connection: BlockingConnection, node_id: int) -> list[GroupListing] | KafkaError:
        response = connection.request(messages.ListGroupsRequest(states_filter=list(states), types_filter=list(types)))
        return outcome_of(response.error_code) or [
            GroupListing(each.group_id, each.protocol_type, each.group_state, each.group_type, node_id)
            for each in response.groups
        ]

    return sorted(listing for found in results(cluster.ask_nodes(ask)).values() for listing in found)


def group_rebalances(cluster: Cluster, group_ids: Iterable[str]) -> dict[str, list[GroupRebalance] | KafkaError]:
    """Return each group's last rebalances, oldest first; UNSUPPORTED_VERSION if the broker is not barnabas.

    The coordinator returns them as a setting of the group: see decision 7.
    """
    request_class = messages.DescribeConfigsRequest

    def ask(connection: BlockingConnection, batch: list[str]) -> dict[str, list[GroupRebalance] | KafkaError]:
        request = request_class(
            resources=[
                request_class.DescribeConfigsResource(
                    resource_type=ResourceType.GROUP, resource_name=group_id, configuration_keys=[REBALANCES]
                )
                for group_id in batch
            ]
        )
        return {
            each.resource_name: outcome_of(each.error_code, each.error_message) or _rebalances(each)
            for each in connection.request(request).results
        }

    return cluster.ask_each(group_ids, cluster.coordinators, ask)


def _rebalances(described: messages.DescribeConfigsResponse.DescribeConfigsResult) -> list[GroupRebalance] | KafkaError:
    value = next((entry.value for entry in described.configs if entry.name == REBALANCES), None)
    if value is None:
        reason = "its coordinator does not remember rebalances: not a barnabas broker?"
        return error_for(ErrorCode.UNSUPPORTED_VERSION, reason)
    return [
        GroupRebalance(
            **{
                **each,
                "moved": [
                    MovedPartition(one["topic"], one["partition"], one["from"], one["to"]) for one in each["moved"]
                ],
            }
        )
        for each in json.loads(value)["rebalances"]
    ]


def delete_groups(cluster: Cluster, group_ids: Iterable[str]) -> dict[str, KafkaError | None]:
    """Delete groups without members, and their offsets; None for each deleted group."""
    messages_by_code = {
        ErrorCode.GROUP_ID_NOT_FOUND: "does not exist",
        ErrorCode.NON_EMPTY_GROUP: "still has members",
    }

    def ask(connection: BlockingConnection, batch: list[str]) -> dict[str, KafkaError | None]:
        answers: dict[str, KafkaError | None] = {}
        for group in connection.request(messages.DeleteGroupsRequest(groups_names=batch)).results:
            reason = messages_by_code.get(group.error_code)
            message = f"group {group.group_id} {reason}" if reason else None
            answers[group.group_id] = outcome_of(group.error_code, message)
        return answers

    return cluster.ask_each(group_ids, cluster.coordinators, ask)
