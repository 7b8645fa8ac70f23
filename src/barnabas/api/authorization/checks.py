"""The tables of checks: which one stands before which API.

    BROKER_CHECKS       what a broker decides, on its own listeners
    CONTROLLER_CHECKS   what a controller decides at its listener
    DECIDED_CHECKS      what the active controller decides of every client's request, whether a broker forwarded it or the client dialled a
                        controller; a request that a node sends in its own name over the network is a client's request there

- `BY_HANDLER`: the handler asks, as what it needs is known only on the way. `NOTHING`: nothing is asked. `FORWARDED`: the active
  controller asks.
- An API that is in no table is refused with CLUSTER_AUTHORIZATION_FAILED.

`api/authorization.tsv` has the same in words.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from barnabas.api.authorization import (
    configs,
    created_topics,
    groups,
    metadata,
    offsets,
    quotas,
    tokens,
    topics,
    transactions,
)
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.message import Message
from barnabas.security.acls import AclOperation

if TYPE_CHECKING:
    from barnabas.api.authorization.asker import Asker

__all__ = [
    "BROKER_CHECKS",
    "BY_HANDLER",
    "CONTROLLER_CHECKS",
    "DECIDED_CHECKS",
    "FORWARDED",
    "NOTHING",
    "Check",
    "refused",
]

Check = Callable[..., Awaitable[Message | None]]
"""Awaits of the asker, the request and the rest of the way the response."""

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message | None)


def of_cluster(operation: AclOperation) -> Check:
    """Return the check of a request that needs one operation on the cluster."""

    async def check(asker: Asker, request: Q, then: Callable[[Q], Awaitable[R]]) -> R:
        asker.need_cluster(operation)
        return await then(request)

    return check


async def NOTHING(asker: Asker, request: Q, then: Callable[[Q], Awaitable[R]]) -> R:
    """Ask for nothing."""
    return await then(request)


async def BY_HANDLER(asker: Asker, request: Q, then: Callable[[Q], Awaitable[R]]) -> R:
    """Leave the questions to the handler, which has an asker in its context."""
    return await then(request)


async def FORWARDED(asker: Asker, request: Q, then: Callable[[Q], Awaitable[R]]) -> R:
    """Leave the questions to the active controller."""
    return await then(request)


async def refused(asker: Asker, request: Message, then: object) -> None:
    """Refuse an API of which no table says what it needs."""
    asker.need_cluster(AclOperation.UNKNOWN)


_READ_GROUP = groups.of_group(AclOperation.READ)
_ACTION, _ALTER, _DESCRIBE = AclOperation.CLUSTER_ACTION, AclOperation.ALTER, AclOperation.DESCRIBE
_DESCRIBE_CONFIGS = AclOperation.DESCRIBE_CONFIGS

BROKER_CHECKS: Mapping[int, Check] = {
    ApiKey.PRODUCE: topics.produce,
    ApiKey.FETCH: BY_HANDLER,
    ApiKey.LIST_OFFSETS: topics.list_offsets,
    ApiKey.METADATA: BY_HANDLER,
    ApiKey.OFFSET_COMMIT: offsets.offset_commit,
    ApiKey.OFFSET_FETCH: offsets.offset_fetch,
    ApiKey.FIND_COORDINATOR: groups.find_coordinator,
    ApiKey.JOIN_GROUP: _READ_GROUP,
    ApiKey.HEARTBEAT: _READ_GROUP,
    ApiKey.LEAVE_GROUP: _READ_GROUP,
    ApiKey.SYNC_GROUP: groups.sync_group,
    ApiKey.DESCRIBE_GROUPS: groups.describe_groups,
    ApiKey.LIST_GROUPS: groups.list_groups,
    ApiKey.SASL_HANDSHAKE: NOTHING,
    ApiKey.API_VERSIONS: NOTHING,
    ApiKey.CREATE_TOPICS: FORWARDED,
    ApiKey.DELETE_TOPICS: FORWARDED,
    ApiKey.DELETE_RECORDS: topics.delete_records,
    ApiKey.INIT_PRODUCER_ID: transactions.init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: topics.offset_for_leader_epoch,
    ApiKey.ADD_PARTITIONS_TO_TXN: transactions.add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: transactions.add_offsets_to_txn,
    ApiKey.END_TXN: transactions.end_txn,
    ApiKey.WRITE_TXN_MARKERS: transactions.write_txn_markers,
    ApiKey.TXN_OFFSET_COMMIT: transactions.txn_offset_commit,
    ApiKey.DESCRIBE_ACLS: of_cluster(_DESCRIBE),
    ApiKey.CREATE_ACLS: FORWARDED,
    ApiKey.DELETE_ACLS: FORWARDED,
    ApiKey.DESCRIBE_CONFIGS: configs.describe_configs,
    ApiKey.ALTER_CONFIGS: FORWARDED,
    ApiKey.ALTER_REPLICA_LOG_DIRS: of_cluster(_ALTER),
    ApiKey.DESCRIBE_LOG_DIRS: of_cluster(_DESCRIBE),
    ApiKey.SASL_AUTHENTICATE: NOTHING,
    ApiKey.CREATE_PARTITIONS: FORWARDED,
    ApiKey.CREATE_DELEGATION_TOKEN: BY_HANDLER,
    ApiKey.RENEW_DELEGATION_TOKEN: FORWARDED,
    ApiKey.EXPIRE_DELEGATION_TOKEN: FORWARDED,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: BY_HANDLER,
    ApiKey.DELETE_GROUPS: groups.delete_groups,
    ApiKey.ELECT_LEADERS: FORWARDED,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: FORWARDED,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: FORWARDED,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: FORWARDED,
    ApiKey.OFFSET_DELETE: offsets.offset_delete,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: quotas.describe_client_quotas,
    ApiKey.ALTER_CLIENT_QUOTAS: FORWARDED,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: of_cluster(_DESCRIBE),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: FORWARDED,
    ApiKey.DESCRIBE_QUORUM: FORWARDED,
    ApiKey.UPDATE_FEATURES: FORWARDED,
    ApiKey.DESCRIBE_CLUSTER: metadata.describe_cluster,
    ApiKey.DESCRIBE_PRODUCERS: topics.describe_producers,
    ApiKey.UNREGISTER_BROKER: FORWARDED,
    ApiKey.DESCRIBE_TRANSACTIONS: transactions.describe_transactions,
    ApiKey.LIST_TRANSACTIONS: transactions.list_transactions,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: BY_HANDLER,
    ApiKey.CONSUMER_GROUP_DESCRIBE: BY_HANDLER,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: NOTHING,
    ApiKey.PUSH_TELEMETRY: NOTHING,
    ApiKey.LIST_CONFIG_RESOURCES: of_cluster(_DESCRIBE_CONFIGS),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: BY_HANDLER,
    ApiKey.SHARE_GROUP_HEARTBEAT: BY_HANDLER,
    ApiKey.SHARE_GROUP_DESCRIBE: BY_HANDLER,
    ApiKey.SHARE_FETCH: BY_HANDLER,
    ApiKey.SHARE_ACKNOWLEDGE: BY_HANDLER,
    ApiKey.ADD_RAFT_VOTER: FORWARDED,
    ApiKey.REMOVE_RAFT_VOTER: FORWARDED,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: of_cluster(_ACTION),
    ApiKey.READ_SHARE_GROUP_STATE: of_cluster(_ACTION),
    ApiKey.WRITE_SHARE_GROUP_STATE: of_cluster(_ACTION),
    ApiKey.DELETE_SHARE_GROUP_STATE: of_cluster(_ACTION),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: of_cluster(_ACTION),
    ApiKey.STREAMS_GROUP_HEARTBEAT: BY_HANDLER,
    ApiKey.STREAMS_GROUP_DESCRIBE: BY_HANDLER,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: BY_HANDLER,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: BY_HANDLER,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: BY_HANDLER,
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: BY_HANDLER,
    ApiKey.UNREGISTER_CONTROLLER: FORWARDED,
}

DECIDED_CHECKS: Mapping[int, Check] = {
    ApiKey.CREATE_TOPICS: created_topics.create_topics,
    ApiKey.DELETE_TOPICS: created_topics.delete_topics,
    ApiKey.CREATE_ACLS: of_cluster(_ALTER),
    ApiKey.DELETE_ACLS: of_cluster(_ALTER),
    ApiKey.ALTER_CONFIGS: configs.alter_configs,
    ApiKey.CREATE_PARTITIONS: created_topics.create_partitions,
    ApiKey.CREATE_DELEGATION_TOKEN: tokens.create_delegation_token,
    ApiKey.RENEW_DELEGATION_TOKEN: NOTHING,
    ApiKey.EXPIRE_DELEGATION_TOKEN: NOTHING,
    ApiKey.ELECT_LEADERS: of_cluster(_ALTER),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.incremental_alter_configs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: of_cluster(_ALTER),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: of_cluster(_DESCRIBE),
    ApiKey.ALTER_CLIENT_QUOTAS: quotas.alter_client_quotas,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: of_cluster(_ALTER),
    ApiKey.DESCRIBE_QUORUM: of_cluster(_DESCRIBE),
    ApiKey.ALTER_PARTITION: of_cluster(_ACTION),
    ApiKey.UPDATE_FEATURES: of_cluster(_ALTER),
    ApiKey.BROKER_REGISTRATION: of_cluster(_ACTION),
    ApiKey.UNREGISTER_BROKER: of_cluster(_ALTER),
    ApiKey.ALLOCATE_PRODUCER_IDS: of_cluster(_ACTION),
    ApiKey.CONTROLLER_REGISTRATION: of_cluster(_ACTION),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: of_cluster(_ACTION),
    ApiKey.ADD_RAFT_VOTER: of_cluster(_ALTER),
    ApiKey.REMOVE_RAFT_VOTER: of_cluster(_ALTER),
    ApiKey.UPDATE_RAFT_VOTER: of_cluster(_ACTION),
    ApiKey.UNREGISTER_CONTROLLER: of_cluster(_ALTER),
}

CONTROLLER_CHECKS: Mapping[int, Check] = {
    **dict.fromkeys(DECIDED_CHECKS, FORWARDED),
    ApiKey.FETCH: of_cluster(_ACTION),
    ApiKey.SASL_HANDSHAKE: NOTHING,
    ApiKey.API_VERSIONS: NOTHING,
    ApiKey.DESCRIBE_ACLS: of_cluster(_DESCRIBE),
    ApiKey.DESCRIBE_CONFIGS: configs.describe_configs,
    ApiKey.SASL_AUTHENTICATE: NOTHING,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: NOTHING,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: of_cluster(_DESCRIBE),
    ApiKey.VOTE: of_cluster(_ACTION),
    ApiKey.BEGIN_QUORUM_EPOCH: of_cluster(_ACTION),
    ApiKey.END_QUORUM_EPOCH: of_cluster(_ACTION),
    ApiKey.ENVELOPE: of_cluster(_ACTION),
    ApiKey.FETCH_SNAPSHOT: of_cluster(_ACTION),
    ApiKey.DESCRIBE_CLUSTER: metadata.describe_controllers,
    ApiKey.BROKER_HEARTBEAT: of_cluster(_ACTION),
}
