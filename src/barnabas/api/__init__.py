"""The APIs this broker serves, in key order: one module each, imported at its first request.

`APIS` alone decides what a broker's listener serves: `dispatch` finds handlers here, ApiVersions advertises these ranges, and a test
compares the table with the message schemas. Kafka has keys that are missing here: they are not advertised, and `dispatch` returns an
error for them. `controller_apis` is the same for a controller's listener.

- Produce is advertised from version 0 although versions 0 to 2 are rejected: else librdkafka drops compression (KAFKA-18659).
- InitProducerId ends at 5: version 6 (KIP-939) is unstable, as in Kafka, and served only if the broker's settings allow two-phase
  commit or unstable versions (`UNSTABLE`).
- SASL and ACL requests get the responses of a Kafka without either.
- Brokers, and administrators who end transactions, send WriteTxnMarkers and AddPartitionsToTxn from version 4.

Sources: `ApiKeys` and `ApiMessageType` of Kafka 4.4; KIP-35 and KIP-511 for the meaning of a range.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.config.config import BrokerConfig

__all__ = ["APIS", "Api", "max_version"]


class Api(NamedTuple):
    """One served API: its module in this package, the advertised versions, and the lowest version that is not rejected."""

    module: str
    min_version: int
    max_version: int
    min_served: int


def _api(module: str, min_version: int, max_version: int, min_served: int | None = None) -> Api:
    return Api(module, min_version, max_version, min_version if min_served is None else min_served)


APIS: dict[int, Api] = {
    0: _api("produce", 0, 13, min_served=3),
    1: _api("fetch", 4, 18),
    2: _api("list_offsets", 1, 11),
    3: _api("metadata", 0, 13),
    8: _api("offset_commit", 2, 10),
    9: _api("offset_fetch", 1, 10),
    10: _api("find_coordinator", 0, 6),
    11: _api("join_group", 0, 9),
    12: _api("heartbeat", 0, 4),
    13: _api("leave_group", 0, 5),
    14: _api("sync_group", 0, 5),
    15: _api("describe_groups", 0, 6),
    16: _api("list_groups", 0, 5),
    17: _api("sasl_handshake", 0, 1),
    18: _api("api_versions", 0, 5),
    19: _api("create_topics", 2, 7),
    20: _api("delete_topics", 1, 6),
    21: _api("delete_records", 0, 2),
    22: _api("init_producer_id", 0, 5),
    23: _api("offset_for_leader_epoch", 2, 4),
    24: _api("add_partitions_to_txn", 0, 5),
    25: _api("add_offsets_to_txn", 0, 4),
    26: _api("end_txn", 0, 5),
    27: _api("write_txn_markers", 1, 2),
    28: _api("txn_offset_commit", 0, 6),
    29: _api("describe_acls", 1, 3),
    30: _api("create_acls", 1, 3),
    31: _api("delete_acls", 1, 3),
    32: _api("describe_configs", 1, 4),
    33: _api("alter_configs", 0, 2),
    34: _api("alter_replica_log_dirs", 1, 2),
    35: _api("describe_log_dirs", 1, 5),
    36: _api("sasl_authenticate", 0, 2),
    37: _api("create_partitions", 0, 3),
    38: _api("create_delegation_token", 1, 3),
    39: _api("renew_delegation_token", 1, 2),
    40: _api("expire_delegation_token", 1, 2),
    41: _api("describe_delegation_token", 1, 3),
    42: _api("delete_groups", 0, 3),
    43: _api("elect_leaders", 0, 2),
    44: _api("incremental_alter_configs", 0, 1),
    45: _api("alter_partition_reassignments", 0, 1),
    46: _api("list_partition_reassignments", 0, 0),
    47: _api("offset_delete", 0, 0),
    48: _api("describe_client_quotas", 0, 1),
    49: _api("alter_client_quotas", 0, 1),
    50: _api("describe_user_scram_credentials", 0, 0),
    51: _api("alter_user_scram_credentials", 0, 0),
    55: _api("describe_quorum", 0, 2),
    57: _api("update_features", 0, 2),
    60: _api("describe_cluster", 0, 2),
    61: _api("describe_producers", 0, 0),
    64: _api("unregister_broker", 0, 0),
    65: _api("describe_transactions", 0, 0),
    66: _api("list_transactions", 0, 2),
    68: _api("consumer_group_heartbeat", 0, 1),
    69: _api("consumer_group_describe", 0, 1),
    71: _api("get_telemetry_subscriptions", 0, 0),
    72: _api("push_telemetry", 0, 0),
    74: _api("list_config_resources", 0, 1),
    75: _api("describe_topic_partitions", 0, 0),
    76: _api("share_group_heartbeat", 1, 1),
    77: _api("share_group_describe", 1, 1),
    78: _api("share_fetch", 1, 2),
    79: _api("share_acknowledge", 1, 2),
    80: _api("add_raft_voter", 0, 1),
    81: _api("remove_raft_voter", 0, 0),
    83: _api("initialize_share_group_state", 0, 0),
    84: _api("read_share_group_state", 0, 0),
    85: _api("write_share_group_state", 0, 1),
    86: _api("delete_share_group_state", 0, 0),
    87: _api("read_share_group_state_summary", 0, 1),
    88: _api("streams_group_heartbeat", 0, 1),
    89: _api("streams_group_describe", 0, 1),
    90: _api("describe_share_group_offsets", 0, 1),
    91: _api("alter_share_group_offsets", 0, 0),
    92: _api("delete_share_group_offsets", 0, 0),
    93: _api("streams_group_topology_description_update", 0, 0),
    94: _api("unregister_controller", 0, 0),
}

UNSTABLE = {22: (6, ("unstable.api.versions.enable", "transaction.two.phase.commit.enable"))}
"""Versions that Kafka does not call stable, and the settings of which any one enables them."""

RECEIVER = "barnabas.metrics.listen"
TELEMETRY = frozenset({71, 72})
"""Advertised only if `RECEIVER` is set, so that the metrics have a reader, and while there is a subscription."""


def max_version(key: int, config: BrokerConfig, apis: Mapping[int, Api] = APIS) -> int:
    """Return the highest version of an API that this node serves and advertises."""
    unstable = UNSTABLE.get(key)
    if unstable is not None and any(config.bool_value(name) for name in unstable[1]):
        return unstable[0]
    return apis[key].max_version
