"""Administration of a cluster: one method per question or change.

    with Admin("localhost:9092") as admin:
        admin.create_topics([NewTopic("orders", partitions=6)])
        admin.list_offsets({TopicPartition("orders", 0): LATEST})

A method about several things returns a dictionary with a result *or a KafkaError* for each: one missing topic does not hide the
answers about the others. `result` turns such a value into a result or an exception. If a request fails as a whole, the method
raises. Requests that fail with a retriable error are sent again until the cluster's `timeout_ms`.

Each method is a function of a `Cluster`, in the module of its noun; `Admin` only gathers them.

Source: org.apache.kafka.clients.admin.Admin.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

from barnabas.client import (
    acls,
    brokers,
    configs,
    cuts,
    delegation_tokens,
    directory_moves,
    elections,
    features,
    group_descriptions,
    group_offsets,
    groups,
    offsets,
    owners,
    partition_descriptions,
    program,
    quorum,
    quotas,
    reassignments,
    record_times,
    replica_ends,
    replication_throttle,
    scram_users,
    share_states,
    topic_growth,
    topics,
    transactions,
)
from barnabas.client.brokers import ClusterDescription, LogDir, ProducerState, ReplicaSize
from barnabas.client.closeable import Closeable
from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import Node, PartitionMetadata, TopicMetadata, TopicPartition
from barnabas.client.configs import ConfigChange, ConfigEntry, ConfigResource, ConfigSource, ResourceType
from barnabas.client.cuts import Cut
from barnabas.client.group_descriptions import GroupDescription, GroupMember
from barnabas.client.group_offsets import CommittedOffset
from barnabas.client.groups import GroupListing, GroupRebalance
from barnabas.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, OffsetAndTimestamp
from barnabas.client.outcome import result, results
from barnabas.client.partition_descriptions import PartitionDescription
from barnabas.client.quorum import Quorum, QuorumReplica
from barnabas.client.quotas import Quota
from barnabas.client.reassignments import Reassignment
from barnabas.client.topics import CreatedTopic, NewTopic
from barnabas.client.transactions import TransactionDescription, TransactionListing

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "Admin",
    "ClusterDescription",
    "CommittedOffset",
    "ConfigChange",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "CreatedTopic",
    "Cut",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "GroupRebalance",
    "LogDir",
    "NewTopic",
    "Node",
    "OffsetAndTimestamp",
    "PartitionDescription",
    "PartitionMetadata",
    "ProducerState",
    "Quorum",
    "QuorumReplica",
    "Quota",
    "Reassignment",
    "ReplicaSize",
    "ResourceType",
    "TopicMetadata",
    "TopicPartition",
    "TransactionDescription",
    "TransactionListing",
    "result",
    "results",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")


def _method(function: Callable[Concatenate[Cluster, P], R]) -> Callable[Concatenate[Admin, P], R]:
    """Make a method of Admin out of a function of its cluster."""

    @functools.wraps(function)
    def method(admin: Admin, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return function(admin.cluster, *args, **kwargs)

    return method


class Admin(Closeable):
    """Administers the cluster behind some bootstrap addresses.

    Args:
        bootstrap: `host:port,host:port`, a sequence of addresses, or a `Cluster` to share.
        options: what `Cluster` takes (`client_id`, `timeout_ms`, `security`, …).
    """

    def __init__(self, bootstrap: str | Sequence[str] | Cluster, **options: Any) -> None:
        self.cluster = bootstrap if isinstance(bootstrap, Cluster) else Cluster(bootstrap, **options)

    def __repr__(self) -> str:
        return f"<Admin {self.cluster!r}>"

    def close(self) -> None:
        """Close the cluster's connections."""
        self.cluster.close()

    list_topics = _method(topics.list_topics)
    describe_topics = _method(topics.describe_topics)
    create_topics = _method(topics.create_topics)
    create_if_absent = _method(topics.create_if_absent)
    brokers_create_topics = _method(topics.brokers_create_topics)
    delete_topics = _method(topics.delete_topics)
    create_partitions = _method(topics.create_partitions)

    describe_all_topics = _method(partition_descriptions.describe_all_topics)
    describe_partitions = _method(partition_descriptions.describe_partitions)
    leaderless_partitions = _method(partition_descriptions.leaderless_partitions)

    list_offsets = _method(offsets.list_offsets)
    delete_records = _method(offsets.delete_records)
    record_times = _method(record_times.record_times)

    describe_configs = _method(configs.describe_configs)
    alter_configs = _method(configs.alter_configs)
    list_config_resources = _method(configs.list_config_resources)

    list_groups = _method(groups.list_groups)
    describe_groups = _method(group_descriptions.describe_groups)
    group_rebalances = _method(groups.group_rebalances)
    delete_groups = _method(groups.delete_groups)
    list_group_offsets = _method(group_offsets.list_group_offsets)
    alter_group_offsets = _method(group_offsets.alter_group_offsets)
    delete_group_offsets = _method(group_offsets.delete_group_offsets)
    list_share_group_offsets = _method(group_offsets.list_share_group_offsets)
    read_share_states = _method(share_states.read_share_states)

    list_transactions = _method(transactions.list_transactions)
    describe_transactions = _method(transactions.describe_transactions)
    fence_producers = _method(transactions.fence_producers)
    abort_transaction = _method(transactions.abort_transaction)

    describe_cluster = _method(brokers.describe_cluster)
    describe_log_dirs = _method(brokers.describe_log_dirs)
    alter_replica_log_dirs = _method(directory_moves.alter_replica_log_dirs)
    await_directory_moves = _method(directory_moves.await_directory_moves)
    describe_producers = _method(brokers.describe_producers)
    unregister_broker = _method(brokers.unregister_broker)
    describe_quorum = _method(quorum.describe_quorum)
    add_voter = _method(quorum.add_voter)
    remove_voter = _method(quorum.remove_voter)
    describe_features = _method(features.describe_features)
    raise_features = _method(features.raise_features)
    describe_programs = _method(program.describe_programs)

    list_reassignments = _method(reassignments.list_reassignments)
    reassign = _method(reassignments.reassign)
    alter_reassignments = _method(reassignments.alter_reassignments)
    describe_throttle = _method(replication_throttle.describe_throttle)
    set_throttle = _method(replication_throttle.set_throttle)
    remove_throttle = _method(replication_throttle.remove_throttle)
    elect_preferred_leaders = _method(elections.elect_preferred_leaders)
    elect_unclean_leaders = _method(elections.elect_unclean_leaders)
    replica_ends = _method(replica_ends.replica_ends)

    list_quotas = _method(quotas.list_quotas)
    alter_quotas = _method(quotas.alter_quotas)

    list_users = _method(scram_users.list_users)
    set_password = _method(scram_users.set_password)
    delete_password = _method(scram_users.delete_password)

    create_token = _method(delegation_tokens.create_token)
    renew_token = _method(delegation_tokens.renew_token)
    expire_token = _method(delegation_tokens.expire_token)
    describe_tokens = _method(delegation_tokens.describe_tokens)

    list_acls = _method(acls.list_acls)
    create_acls = _method(acls.create_acls)
    delete_acls = _method(acls.delete_acls)

    take_cut = _method(cuts.take_cut)
    list_cuts = _method(cuts.list_cuts)
    store_cut = _method(cuts.store_cut)
    delete_cuts = _method(cuts.delete_cuts)
    current_topic_ids = _method(cuts.current_topic_ids)
    list_owners = _method(owners.list_owners)
    set_owner = _method(owners.set_owner)
    list_growth = _method(topic_growth.list_growth)
    store_growth = _method(topic_growth.store_growth)
