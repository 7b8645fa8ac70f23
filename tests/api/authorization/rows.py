"""Requests, and the rights that each of them needs: one row for each line of the table that a client can bring about.

A row is played by one user for each way of having its rights. Its answer is denied, or it is not; what else the answer says is compared
with Apache Kafka's (`tests/conform/test_authorization.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from barnabas.protocol import messages as m
from barnabas.protocol.message import Struct
from barnabas.records.builder import build_batch
from barnabas.security.acls import AclBinding, AclOperation, PatternType, Permission, ResourceType

TOPIC, GROUP, CLUSTER, TXN = (
    ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID,
)  # fmt: skip
READ, WRITE, CREATE, DELETE, ALTER = (
    AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DELETE, AclOperation.ALTER,
)  # fmt: skip
DESCRIBE, ACTION, IDEMPOTENT = AclOperation.DESCRIBE, AclOperation.CLUSTER_ACTION, AclOperation.IDEMPOTENT_WRITE
DESCRIBE_CONFIGS, ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS

CODES = {TOPIC: 29, GROUP: 30, CLUSTER: 31, TXN: 53}
DENIALS = frozenset(CODES.values())

MODES = ("none", "first", "exact", "implied", "prefixed", "wildcard", "denied", "super")
"""No right; only the first of several; each right by a literal name, by what implies it, by a prefix, by `*`; all rights but one that is
denied; a super user."""

_IMPLYING = {DESCRIBE: READ, DESCRIBE_CONFIGS: ALTER_CONFIGS}


class Right(NamedTuple):
    """An operation on a resource, and the code in the answer to a client that lacks it (-1: no code, something is left out)."""

    operation: AclOperation
    kind: ResourceType
    name: str
    code: int


class Row(NamedTuple):
    """A request and its rights.

    Attributes:
        make: returns the request, given the name of the mode.
        left_out: modes that mean something else here.
    """

    name: str
    version: int
    rights: tuple[Right, ...]
    make: Callable[[str], Any]
    left_out: tuple[str, ...] = ()

    def modes(self) -> Iterator[str]:
        for mode in MODES:
            if mode == "first" and len(self.rights) < 2:
                continue
            if mode == "implied" and not any(right.operation in _IMPLYING for right in self.rights):
                continue
            if mode in self.left_out:
                continue
            if mode == "prefixed" and all(right.kind == CLUSTER for right in self.rights):
                continue
            yield mode

    def user(self, mode: str) -> str:
        return "admin" if mode == "super" else f"{self.name}-{mode}"

    def lacks(self, mode: str) -> Right | None:
        """Return the first right that the user of a mode does not have."""
        if mode == "none":
            return self.rights[0]
        if mode == "first":
            return self.rights[1]
        return self.rights[-1] if mode == "denied" else None

    def acls(self, mode: str) -> Iterator[AclBinding]:
        principal = f"User:{self.user(mode)}"

        def acl(right: Right, name: str, pattern: PatternType, operation: AclOperation, how: Permission) -> AclBinding:
            return AclBinding(right.kind, name, pattern, principal, "*", operation, how)

        rights = {"none": (), "super": (), "first": self.rights[:1]}.get(mode, self.rights)
        for right in rights:
            name, pattern, operation = right.name, PatternType.LITERAL, right.operation
            if mode == "prefixed" and right.kind != CLUSTER:
                name, pattern = name[:2], PatternType.PREFIXED
            elif mode == "wildcard" and right.kind != CLUSTER:
                name = "*"
            elif mode == "implied":
                operation = _IMPLYING.get(operation, operation)
            elif mode == "denied":
                operation = AclOperation.ALL
            yield acl(right, name, pattern, operation, Permission.ALLOW)
        if mode == "denied":
            last = self.rights[-1]
            yield acl(last, last.name, PatternType.LITERAL, last.operation, Permission.DENY)


def on(operation: AclOperation, kind: ResourceType, name: str, code: int | None = None) -> Right:
    return Right(operation, kind, name, CODES[kind] if code is None else code)


def cluster(operation: AclOperation) -> Right:
    return on(operation, CLUSTER, "kafka-cluster")


def codes(answer: Any) -> Iterator[int]:
    """Yield every authorization error in an answer."""
    for name in answer.FIELDS:
        value = getattr(answer, name)
        if isinstance(value, Struct):
            yield from codes(value)
        elif isinstance(value, list):
            for each in value:
                if isinstance(each, Struct):
                    yield from codes(each)
        elif name.endswith("error_code") and value in DENIALS:
            yield value


T, G, X = "orders", "readers", "payer"
"""A topic of two partitions that both brokers have, a group, a transactional id."""
ABSENT = "or-absent"
"""A topic that nobody creates; the prefix of the topic `orders` is its own, too."""


def batch(**fields: Any) -> bytes:
    return bytes(build_batch([(1_700_000_000_000, None, b"value", ())], **fields))


def produce(_: str, name: str = T, txn: str | None = None, **fields: Any) -> m.ProduceRequest:
    kind = m.ProduceRequest
    data = kind.PartitionProduceData(index=0, records=batch(**fields))
    topics = [kind.TopicProduceData(name=name, partition_data=[data])]
    return kind(transactional_id=txn, acks=-1, timeout_ms=5000, topic_data=topics)


def fetch(_: str, name: str = T) -> m.FetchRequest:
    kind = m.FetchRequest
    part = kind.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    return kind(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1000,
        session_epoch=-1,
        topics=[kind.FetchTopic(topic=name, partitions=[part])],
    )


def follow(_: str) -> m.FetchRequest:
    request = fetch("")
    request.replica_id = 1
    return request


def list_offsets(_: str, name: str = T) -> m.ListOffsetsRequest:
    kind = m.ListOffsetsRequest
    part = kind.ListOffsetsPartition(partition_index=0, timestamp=-2)
    return kind(replica_id=-1, topics=[kind.ListOffsetsTopic(name=name, partitions=[part])])


def metadata_old(_: str) -> m.MetadataRequest:
    return m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=T)])


def metadata(_: str, name: str = T, *, creates: bool = False, bits: bool = True) -> m.MetadataRequest:
    topic = m.MetadataRequest.MetadataRequestTopic(name=name)
    return m.MetadataRequest(
        topics=[topic], allow_auto_topic_creation=creates, include_topic_authorized_operations=bits,
        include_cluster_authorized_operations=bits,
    )  # fmt: skip


def offset_commit(_: str, name: str = T) -> m.OffsetCommitRequest:
    kind = m.OffsetCommitRequest
    part = kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    return kind(group_id=G, topics=[kind.OffsetCommitRequestTopic(name=name, partitions=[part])])


def offset_fetch(_: str, topics: tuple[str, ...] | None = (T, ABSENT)) -> m.OffsetFetchRequest:
    kind = m.OffsetFetchRequest
    asked = None if topics is None else [
        kind.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in topics
    ]  # fmt: skip
    return kind(groups=[kind.OffsetFetchRequestGroup(group_id=G, topics=asked)])


def offset_fetch_old(_: str) -> m.OffsetFetchRequest:
    kind = m.OffsetFetchRequest
    return kind(group_id=G, topics=[kind.OffsetFetchRequestTopic(name=T, partition_indexes=[0])])


def find(kind: int, key: str) -> Callable[[str], m.FindCoordinatorRequest]:
    return lambda _: m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])


def find_old(kind: int, key: str) -> Callable[[str], m.FindCoordinatorRequest]:
    return lambda _: m.FindCoordinatorRequest(key_type=kind, key=key)


def create_topics(mode: str) -> m.CreateTopicsRequest:
    kind = m.CreateTopicsRequest
    made = kind.CreatableTopic(name="made-it", num_partitions=1, replication_factor=1)
    return kind(topics=[made], timeout_ms=5000, validate_only=True)


def delete_topics(name: str) -> Callable[[str], m.DeleteTopicsRequest]:
    return lambda _: m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.DeleteTopicState(name=name)], timeout_ms=5000)


def create_partitions(_: str) -> m.CreatePartitionsRequest:
    kind = m.CreatePartitionsRequest
    return kind(topics=[kind.CreatePartitionsTopic(name=T, count=7)], timeout_ms=5000, validate_only=True)


def delete_records(_: str) -> m.DeleteRecordsRequest:
    kind = m.DeleteRecordsRequest
    part = kind.DeleteRecordsPartition(partition_index=1, offset=0)
    return kind(topics=[kind.DeleteRecordsTopic(name=T, partitions=[part])], timeout_ms=5000)


def epochs(_: str) -> m.OffsetForLeaderEpochRequest:
    kind = m.OffsetForLeaderEpochRequest
    part = kind.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    return kind(replica_id=-1, topics=[kind.OffsetForLeaderTopic(topic=T, partitions=[part])])


def add_partitions(_: str) -> m.AddPartitionsToTxnRequest:
    kind = m.AddPartitionsToTxnRequest
    topic = kind.AddPartitionsToTxnTopic(name=T, partitions=[0])
    return kind(
        v3_and_below_transactional_id=X, v3_and_below_producer_id=77, v3_and_below_producer_epoch=0,
        v3_and_below_topics=[topic],
    )  # fmt: skip


def verify_partitions(_: str) -> m.AddPartitionsToTxnRequest:
    kind = m.AddPartitionsToTxnRequest
    topic = kind.AddPartitionsToTxnTopic(name=T, partitions=[0])
    one = kind.AddPartitionsToTxnTransaction(
        transactional_id=X, producer_id=77, producer_epoch=0, verify_only=True, topics=[topic]
    )
    return kind(transactions=[one])


def txn_offset_commit(_: str) -> m.TxnOffsetCommitRequest:
    kind = m.TxnOffsetCommitRequest
    part = kind.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    topics = [kind.TxnOffsetCommitRequestTopic(name=T, partitions=[part])]
    return kind(transactional_id=X, group_id=G, producer_id=77, producer_epoch=0, topics=topics)


def markers(_: str) -> m.WriteTxnMarkersRequest:
    kind = m.WriteTxnMarkersRequest
    topic = kind.WritableTxnMarkerTopic(name=ABSENT, partition_indexes=[0])
    return kind(markers=[kind.WritableTxnMarker(producer_id=77, producer_epoch=0, topics=[topic])])


def describe_configs(kind: int, name: str) -> Callable[[str], m.DescribeConfigsRequest]:
    resource = m.DescribeConfigsRequest.DescribeConfigsResource
    return lambda _: m.DescribeConfigsRequest(
        resources=[resource(resource_type=kind, resource_name=name, configuration_keys=["segment.bytes"])]
    )


def alter_configs(kind: int, name: str, setting: str, value: str) -> Callable[[str], m.IncrementalAlterConfigsRequest]:
    all_ = m.IncrementalAlterConfigsRequest
    one = all_.AlterableConfig(name=setting, config_operation=0, value=value)
    return lambda _: all_(
        resources=[all_.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[one])],
        validate_only=True,
    )


def alter_configs_old(_: str) -> m.AlterConfigsRequest:
    kind = m.AlterConfigsRequest
    one = kind.AlterableConfig(name="retention.ms", value="1000000")
    resource = kind.AlterConfigsResource(resource_type=2, resource_name=T, configs=[one])
    return kind(resources=[resource], validate_only=True)


def offset_delete(_: str) -> m.OffsetDeleteRequest:
    kind = m.OffsetDeleteRequest
    part = kind.OffsetDeleteRequestPartition(partition_index=1)
    return kind(group_id=G, topics=[kind.OffsetDeleteRequestTopic(name=T, partitions=[part])])


def producers(_: str) -> m.DescribeProducersRequest:
    kind = m.DescribeProducersRequest
    return kind(topics=[kind.TopicRequest(name=T, partition_indexes=[0])])


def describe_topic(_: str, *names: str) -> m.DescribeTopicPartitionsRequest:
    kind = m.DescribeTopicPartitionsRequest
    return kind(topics=[kind.TopicRequest(name=name) for name in names or (T, ABSENT)], response_partition_limit=100)


def consumer_beat(_: str) -> m.ConsumerGroupHeartbeatRequest:
    return m.ConsumerGroupHeartbeatRequest(
        group_id=G, member_id="m", member_epoch=7, rebalance_timeout_ms=1000, subscribed_topic_names=[T]
    )


def share_beat(_: str) -> m.ShareGroupHeartbeatRequest:
    return m.ShareGroupHeartbeatRequest(group_id=G, member_id="m", member_epoch=7, subscribed_topic_names=[T])


def streams_beat(_: str) -> m.StreamsGroupHeartbeatRequest:
    kind = m.StreamsGroupHeartbeatRequest
    part = kind.Subtopology(subtopology_id="0", source_topics=[T])
    return kind(
        group_id=G, member_id="m", member_epoch=7, topology=kind.Topology(epoch=0, subtopologies=[part]),
        active_tasks=[], standby_tasks=[], warmup_tasks=[], rebalance_timeout_ms=1000, process_id="p", client_tags=[],
    )  # fmt: skip


def reassign(_: str) -> m.AlterPartitionReassignmentsRequest:
    kind = m.AlterPartitionReassignmentsRequest
    part = kind.ReassignablePartition(partition_index=0, replicas=None)
    return kind(timeout_ms=5000, topics=[kind.ReassignableTopic(name=T, partitions=[part])])


def elect(_: str) -> m.ElectLeadersRequest:
    kind = m.ElectLeadersRequest
    return kind(election_type=0, topic_partitions=[kind.TopicPartitions(topic=T, partitions=[0])], timeout_ms=5000)


def quotas(_: str) -> m.AlterClientQuotasRequest:
    kind = m.AlterClientQuotasRequest
    entry = kind.EntryData(
        entity=[kind.EntityData(entity_type="user", entity_name="u")],
        ops=[kind.OpData(key="request_percentage", value=50.0, remove=False)],
    )
    return kind(entries=[entry], validate_only=True)


def scram(_: str) -> m.AlterUserScramCredentialsRequest:
    kind = m.AlterUserScramCredentialsRequest
    return kind(deletions=[kind.ScramCredentialDeletion(name="nobody", mechanism=1)], upsertions=[])


def scram_users(_: str) -> m.DescribeUserScramCredentialsRequest:
    # Apache Kafka never answers a client without the right that asks for all users: it fails while it makes its answer.
    kind = m.DescribeUserScramCredentialsRequest
    return kind(users=[kind.UserName(name="nobody")])


def log_dirs(_: str) -> m.AlterReplicaLogDirsRequest:
    kind = m.AlterReplicaLogDirsRequest
    topic = kind.AlterReplicaLogDirTopic(name=T, partitions=[0])
    return kind(dirs=[kind.AlterReplicaLogDir(path="/nowhere", topics=[topic])])


def quorum(_: str) -> m.DescribeQuorumRequest:
    kind = m.DescribeQuorumRequest
    part = kind.PartitionData(partition_index=0)
    return kind(topics=[kind.TopicData(topic_name="__cluster_metadata", partitions=[part])])


def share_state(kind: Any) -> Callable[[str], Any]:
    topic = next(each for name, each in vars(kind).items() if name.endswith("Data") and name != "PartitionData")
    asked = topic(topic_id=bytes(15) + b"\x07", partitions=[kind.PartitionData(partition=0)])
    return lambda _: kind(group_id="sharers", topics=[asked])


def share_fetch(_: str) -> m.ShareFetchRequest:
    return m.ShareFetchRequest(group_id=G, member_id="m" * 22, share_session_epoch=3, max_wait_ms=0)


def share_acknowledge(_: str) -> m.ShareAcknowledgeRequest:
    return m.ShareAcknowledgeRequest(group_id=G, member_id="m" * 22, share_session_epoch=3)


def share_offsets(_: str) -> m.DescribeShareGroupOffsetsRequest:
    kind = m.DescribeShareGroupOffsetsRequest
    topics = [kind.DescribeShareGroupOffsetsRequestTopic(topic_name=T, partitions=[0])]
    return kind(groups=[kind.DescribeShareGroupOffsetsRequestGroup(group_id="sharers", topics=topics)])


def alter_share_offsets(_: str) -> m.AlterShareGroupOffsetsRequest:
    kind = m.AlterShareGroupOffsetsRequest
    part = kind.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
    topics = [kind.AlterShareGroupOffsetsRequestTopic(topic_name=T, partitions=[part])]
    return kind(group_id="sharers", topics=topics)


def delete_share_offsets(_: str) -> m.DeleteShareGroupOffsetsRequest:
    kind = m.DeleteShareGroupOffsetsRequest
    topic = kind.DeleteShareGroupOffsetsRequestTopic(topic_name=T)
    return kind(group_id="sharers", topics=[topic])


def features(_: str) -> m.UpdateFeaturesRequest:
    kind = m.UpdateFeaturesRequest
    update = kind.FeatureUpdateKey(feature="no.such", max_version_level=1, upgrade_type=1)
    return kind(timeout_ms=5000, feature_updates=[update], validate_only=True)


def acl_creation(_: str) -> m.CreateAclsRequest:
    kind = m.CreateAclsRequest
    one = kind.AclCreation(
        resource_type=2, resource_name="", resource_pattern_type=3, principal="User:x", host="*", operation=3,
        permission_type=3,
    )  # fmt: skip
    return kind(creations=[one])


def acl_deletion(_: str) -> m.DeleteAclsRequest:
    kind = m.DeleteAclsRequest
    one = kind.DeleteAclsFilter(
        resource_type_filter=2, resource_name_filter="nothing", pattern_type_filter=3, principal_filter="User:none",
        host_filter="*", operation=3, permission_type=3,
    )  # fmt: skip
    return kind(filters=[one])


def acl_description(_: str) -> m.DescribeAclsRequest:
    return m.DescribeAclsRequest(
        resource_type_filter=2, resource_name_filter="nothing", pattern_type_filter=3, principal_filter="User:none",
        host_filter="*", operation=3, permission_type=3,
    )  # fmt: skip


def static(request: Any) -> Callable[[str], Any]:
    kind, fields = request
    return lambda _: kind(**fields)


ROWS = (
    Row("produce", 9, (on(WRITE, TOPIC, T),), produce),
    Row("produce-absent", 9, (on(WRITE, TOPIC, ABSENT),), lambda _: produce("", ABSENT)),
    Row(
        "produce-txn", 9, (on(WRITE, TXN, X), on(WRITE, TOPIC, T)),
        lambda _: produce("", txn=X, producer_id=77, producer_epoch=0, base_sequence=0, transactional=True),
    ),
    Row("fetch", 12, (on(READ, TOPIC, T),), fetch),
    Row("fetch-absent", 12, (on(READ, TOPIC, ABSENT),), lambda _: fetch("", ABSENT)),
    Row("fetch-follower", 12, (on(ACTION, CLUSTER, "kafka-cluster", 29),), follow),
    Row("list-offsets", 7, (on(DESCRIBE, TOPIC, T),), list_offsets),
    Row("list-offsets-absent", 7, (on(DESCRIBE, TOPIC, ABSENT),), lambda _: list_offsets("", ABSENT)),
    Row("metadata", 10, (on(DESCRIBE, TOPIC, T),), metadata),
    Row("metadata-absent", 12, (on(DESCRIBE, TOPIC, ABSENT),), lambda _: metadata("", ABSENT, bits=False)),
    Row("metadata-old", 0, (on(DESCRIBE, TOPIC, T),), metadata_old),
    Row(
        "metadata-creates", 9, (on(DESCRIBE, TOPIC, "bad name!"), on(CREATE, TOPIC, "bad name!")),
        lambda _: metadata("", "bad name!", creates=True, bits=False),
    ),
    Row("metadata-all", 9, (on(DESCRIBE, TOPIC, T, -1),), static((m.MetadataRequest, {"topics": None}))),
    Row("offset-commit", 9, (on(READ, GROUP, G), on(READ, TOPIC, T)), offset_commit),
    Row("offset-commit-absent", 9, (on(READ, GROUP, G), on(READ, TOPIC, ABSENT)), lambda _: offset_commit("", ABSENT)),
    Row("offset-fetch", 9, (on(DESCRIBE, GROUP, G), on(DESCRIBE, TOPIC, T)), lambda _: offset_fetch("", (T,))),
    Row("offset-fetch-all", 9, (on(DESCRIBE, GROUP, G), on(DESCRIBE, TOPIC, T, -1)), lambda _: offset_fetch("", None)),
    Row("offset-fetch-old", 7, (on(DESCRIBE, GROUP, G), on(DESCRIBE, TOPIC, T)), offset_fetch_old),
    Row("find-group", 4, (on(DESCRIBE, GROUP, G),), find(0, G)),
    Row("find-group-old", 3, (on(DESCRIBE, GROUP, G),), find_old(0, G)),
    Row("find-txn", 4, (on(DESCRIBE, TXN, X),), find(1, X)),
    Row("find-share", 6, (cluster(ACTION),), find(2, "g:AAAAAAAAAAAAAAAAAAAABw:0")),
    Row("join", 5, (on(READ, GROUP, G),), static((m.JoinGroupRequest, {"group_id": G, "session_timeout_ms": 1}))),
    Row("heartbeat", 4, (on(READ, GROUP, G),), static((m.HeartbeatRequest, {"group_id": G, "member_id": "m"}))),
    Row("leave", 5, (on(READ, GROUP, G),), static((m.LeaveGroupRequest, {"group_id": G}))),
    Row("sync", 4, (on(READ, GROUP, G),), static((m.SyncGroupRequest, {"group_id": G, "member_id": "m"}))),
    Row(
        "describe-groups", 5, (on(DESCRIBE, GROUP, G),),
        static((m.DescribeGroupsRequest, {"groups": [G], "include_authorized_operations": True})),
    ),
    Row("list-groups", 4, (on(DESCRIBE, GROUP, G, -1),), static((m.ListGroupsRequest, {}))),
    Row("create-topics", 7, (on(CREATE, TOPIC, "made-it"), on(DESCRIBE_CONFIGS, TOPIC, "made-it")), create_topics),
    Row(
        "create-topics-cluster", 7,
        (Right(CREATE, CLUSTER, "kafka-cluster", 29), on(DESCRIBE_CONFIGS, TOPIC, "made-it")), create_topics,
    ),
    Row("delete-topics-absent", 6, (on(DESCRIBE, TOPIC, ABSENT),), delete_topics(ABSENT)),
    Row("create-partitions", 3, (on(ALTER, TOPIC, T),), create_partitions),
    Row("delete-records", 2, (on(DELETE, TOPIC, T),), delete_records),
    Row(
        "init-producer-id", 4, (on(WRITE, TXN, X),),
        static((m.InitProducerIdRequest, {"transactional_id": X, "transaction_timeout_ms": -5})),
    ),
    Row("init-idempotent", 4, (cluster(IDEMPOTENT),), static((m.InitProducerIdRequest, {"transactional_id": None}))),
    Row("init-by-topic", 4, (on(WRITE, TOPIC, T, 31),), static((m.InitProducerIdRequest, {"transactional_id": None}))),
    Row("epochs", 4, (on(DESCRIBE, TOPIC, T),), epochs),
    Row("add-partitions", 3, (on(WRITE, TXN, X), on(WRITE, TOPIC, T)), add_partitions),
    Row("verify-partitions", 4, (cluster(ACTION),), verify_partitions),
    Row(
        "add-offsets", 3, (on(WRITE, TXN, X), on(READ, GROUP, G)),
        static((m.AddOffsetsToTxnRequest, {"transactional_id": X, "group_id": G, "producer_id": 77})),
    ),
    Row("end-txn", 3, (on(WRITE, TXN, X),), static((m.EndTxnRequest, {"transactional_id": X, "producer_id": 77}))),
    Row("markers", 1, (cluster(ACTION),), markers, ("denied",)),
    Row("markers-alter", 1, (cluster(ALTER),), markers, ("denied",)),
    Row("txn-offset-commit", 3, (on(WRITE, TXN, X), on(READ, GROUP, G), on(READ, TOPIC, T)), txn_offset_commit),
    Row("describe-acls", 3, (cluster(DESCRIBE),), acl_description),
    Row("create-acls", 3, (cluster(ALTER),), acl_creation),
    Row("delete-acls", 3, (cluster(ALTER),), acl_deletion),
    Row("configs-topic", 4, (on(DESCRIBE_CONFIGS, TOPIC, T),), describe_configs(2, T)),
    Row("configs-absent", 4, (on(DESCRIBE_CONFIGS, TOPIC, ABSENT),), describe_configs(2, ABSENT)),
    Row("configs-broker", 4, (cluster(DESCRIBE_CONFIGS),), describe_configs(4, "1")),
    Row("configs-logger", 4, (cluster(DESCRIBE_CONFIGS),), describe_configs(8, "7")),
    Row("configs-metrics", 4, (cluster(DESCRIBE_CONFIGS),), describe_configs(16, "sub")),
    Row("configs-group", 4, (on(DESCRIBE_CONFIGS, GROUP, G),), describe_configs(32, G)),
    Row("alter-topic", 1, (on(ALTER_CONFIGS, TOPIC, T),), alter_configs(2, T, "retention.ms", "1000000")),
    Row("alter-absent", 1, (on(ALTER_CONFIGS, TOPIC, ABSENT),), alter_configs(2, ABSENT, "retention.ms", "1000000")),
    Row("alter-broker", 1, (cluster(ALTER_CONFIGS),), alter_configs(4, "", "log.retention.ms", "1000000")),
    Row("alter-metrics", 1, (cluster(ALTER_CONFIGS),), alter_configs(16, "sub", "interval.ms", "1000")),
    Row(
        "alter-group", 1, (on(ALTER_CONFIGS, GROUP, G),),
        alter_configs(32, G, "consumer.session.timeout.ms", "50000"),
    ),
    Row("alter-old", 2, (on(ALTER_CONFIGS, TOPIC, T),), alter_configs_old),
    Row("alter-log-dirs", 2, (cluster(ALTER),), log_dirs),
    Row("log-dirs", 4, (cluster(DESCRIBE),), static((m.DescribeLogDirsRequest, {"topics": []}))),
    Row("log-dirs-old", 1, (Right(DESCRIBE, CLUSTER, "kafka-cluster", -1),), static((m.DescribeLogDirsRequest, {"topics": []}))),
    Row("delete-groups", 2, (on(DELETE, GROUP, "absent"),), static((m.DeleteGroupsRequest, {"groups_names": ["absent"]}))),
    Row("elect", 2, (cluster(ALTER),), elect),
    Row("reassign", 0, (cluster(ALTER),), reassign),
    Row("reassignments", 0, (cluster(DESCRIBE),), static((m.ListPartitionReassignmentsRequest, {"topics": None, "timeout_ms": 5000}))),
    Row("offset-delete", 0, (on(DELETE, GROUP, G), on(READ, TOPIC, T)), offset_delete),
    Row("quotas", 1, (cluster(DESCRIBE_CONFIGS),), static((m.DescribeClientQuotasRequest, {"components": []}))),
    Row("alter-quotas", 1, (cluster(ALTER_CONFIGS),), quotas),
    Row("scram-users", 0, (cluster(DESCRIBE),), scram_users),
    Row("alter-scram", 0, (cluster(ALTER),), scram),
    Row("quorum", 1, (cluster(DESCRIBE),), quorum),
    Row("features", 1, (cluster(ALTER),), features),
    Row(
        "cluster-bits", 1, (Right(DESCRIBE, CLUSTER, "kafka-cluster", -1),),
        static((m.DescribeClusterRequest, {"include_cluster_authorized_operations": True})),
    ),
    Row("producers", 0, (on(READ, TOPIC, T),), producers),
    Row("unregister", 0, (cluster(ALTER),), static((m.UnregisterBrokerRequest, {"broker_id": 99}))),
    Row("transactions", 0, (on(DESCRIBE, TXN, X),), static((m.DescribeTransactionsRequest, {"transactional_ids": [X]}))),
    Row("list-transactions", 1, (on(DESCRIBE, TXN, X, -1),), static((m.ListTransactionsRequest, {}))),
    Row("consumer-beat", 1, (on(READ, GROUP, G), on(DESCRIBE, TOPIC, T)), consumer_beat),
    Row(
        "describe-consumers", 1, (on(DESCRIBE, GROUP, G),),
        static((m.ConsumerGroupDescribeRequest, {"group_ids": [G], "include_authorized_operations": True})),
    ),
    Row("config-resources", 1, (cluster(DESCRIBE_CONFIGS),), static((m.ListConfigResourcesRequest, {"resource_types": [16]}))),
    Row("topic-partitions", 0, (on(DESCRIBE, TOPIC, T), on(DESCRIBE, TOPIC, ABSENT)), describe_topic),
    Row(
        "topic-partitions-all", 0, (on(DESCRIBE, TOPIC, T, -1),),
        static((m.DescribeTopicPartitionsRequest, {"topics": [], "response_partition_limit": 100})),
    ),
    Row("share-beat", 1, (on(READ, GROUP, G), on(DESCRIBE, TOPIC, T)), share_beat),
    Row("describe-sharers", 1, (on(DESCRIBE, GROUP, "sharers"),), static((m.ShareGroupDescribeRequest, {"group_ids": ["sharers"]}))),
    Row("share-fetch", 1, (on(READ, GROUP, G),), share_fetch),
    Row("share-acknowledge", 1, (on(READ, GROUP, G),), share_acknowledge),
    Row("share-initialize", 0, (cluster(ACTION),), share_state(m.InitializeShareGroupStateRequest)),
    Row("share-read", 0, (cluster(ACTION),), share_state(m.ReadShareGroupStateRequest)),
    Row("share-write", 0, (cluster(ACTION),), share_state(m.WriteShareGroupStateRequest)),
    Row("share-delete", 0, (cluster(ACTION),), share_state(m.DeleteShareGroupStateRequest)),
    Row("share-summary", 0, (cluster(ACTION),), share_state(m.ReadShareGroupStateSummaryRequest)),
    Row("streams-beat", 0, (on(READ, GROUP, G), on(DESCRIBE, TOPIC, T)), streams_beat),
    Row("describe-streams", 0, (on(DESCRIBE, GROUP, G),), static((m.StreamsGroupDescribeRequest, {"group_ids": [G]}))),
    Row("share-offsets", 0, (on(DESCRIBE, GROUP, "sharers"), on(DESCRIBE, TOPIC, T)), share_offsets),
    Row("alter-share-offsets", 0, (on(READ, GROUP, "sharers"), on(READ, TOPIC, T)), alter_share_offsets),
    Row("delete-share-offsets", 0, (on(DELETE, GROUP, "sharers"), on(READ, TOPIC, T)), delete_share_offsets),
    Row("remove-voter", 0, (cluster(ALTER),), static((m.RemoveRaftVoterRequest, {"cluster_id": "another", "voter_id": 9}))),
    Row("add-voter", 0, (cluster(ALTER),), static((m.AddRaftVoterRequest, {"cluster_id": "another", "voter_id": 9, "listeners": []}))),
)  # fmt: skip
