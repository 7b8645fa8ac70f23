# Written by tools/write_stubs.py from schema.json; do not edit.
from typing import ClassVar, Literal

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.primitives import RecordSlice

Records = bytes | bytearray | memoryview | RecordSlice

def message_class(name: str) -> type[Message]: ...
def metadata_record_class(type_id: int) -> type[Message]: ...
def coordinator_key_class(family: str, type_id: int) -> type[Message]: ...
def coordinator_value_class(family: str, type_id: int) -> type[Message]: ...

class AbortTransactionRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[25]]
    reason: str | None
    def __init__(
        self,
        *,
        reason: str | None = None,
    ) -> None: ...

class AbortedTxn(Message):
    # data v0-0, flexible from None
    API_KEY: ClassVar[None]
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    def __init__(
        self,
        *,
        producer_id: int = 0,
        first_offset: int = 0,
        last_offset: int = 0,
        last_stable_offset: int = 0,
    ) -> None: ...

class AccessControlEntryRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[18]]
    id: bytes
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int
    def __init__(
        self,
        *,
        id: bytes = ...,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 0,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None: ...

class AddOffsetsToTxnRequest(Message):
    # request v0-4, flexible from 3
    API_KEY: ClassVar[Literal[25]]
    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str
    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
    ) -> None: ...

class AddOffsetsToTxnResponse(Message):
    # response v0-4, flexible from 3
    API_KEY: ClassVar[Literal[25]]
    throttle_time_ms: int
    error_code: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None: ...

class AddPartitionsToTxnRequest(Message):
    # request v0-5, flexible from 3
    API_KEY: ClassVar[Literal[24]]
    class AddPartitionsToTxnTopic(Struct):
        name: str
        partitions: list[int]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[int] = ...,
        ) -> None: ...

    class AddPartitionsToTxnTransaction(Struct):
        transactional_id: str
        producer_id: int
        producer_epoch: int
        verify_only: bool
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
        def __init__(
            self,
            *,
            transactional_id: str = "",
            producer_id: int = 0,
            producer_epoch: int = 0,
            verify_only: bool = False,
            topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ...,
        ) -> None: ...

    transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction]
    v3_and_below_transactional_id: str
    v3_and_below_producer_id: int
    v3_and_below_producer_epoch: int
    v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic]
    def __init__(
        self,
        *,
        transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction] = ...,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ...,
    ) -> None: ...

class AddPartitionsToTxnResponse(Message):
    # response v0-5, flexible from 3
    API_KEY: ClassVar[Literal[24]]
    class AddPartitionsToTxnTopicResult(Struct):
        name: str
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult]
        def __init__(
            self,
            *,
            name: str = "",
            results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = ...,
        ) -> None: ...

    class AddPartitionsToTxnPartitionResult(Struct):
        partition_index: int
        partition_error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            partition_error_code: int = 0,
        ) -> None: ...

    class AddPartitionsToTxnResult(Struct):
        transactional_id: str
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]
        def __init__(
            self,
            *,
            transactional_id: str = "",
            topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult]
    results_by_topic_v3_and_below: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = ...,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ...,
    ) -> None: ...

class AddRaftVoterRequest(Message):
    # request v0-1, flexible from 0
    API_KEY: ClassVar[Literal[80]]
    class Listener(Struct):
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
        ) -> None: ...

    cluster_id: str | None
    timeout_ms: int
    voter_id: int
    voter_directory_id: bytes
    listeners: list[AddRaftVoterRequest.Listener]
    ack_when_committed: bool
    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        timeout_ms: int = 0,
        voter_id: int = 0,
        voter_directory_id: bytes = ...,
        listeners: list[AddRaftVoterRequest.Listener] = ...,
        ack_when_committed: bool = True,
    ) -> None: ...

class AddRaftVoterResponse(Message):
    # response v0-1, flexible from 0
    API_KEY: ClassVar[Literal[80]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None: ...

class AllocateProducerIdsRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[67]]
    broker_id: int
    broker_epoch: int
    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None: ...

class AllocateProducerIdsResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[67]]
    throttle_time_ms: int
    error_code: int
    producer_id_start: int
    producer_id_len: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id_start: int = 0,
        producer_id_len: int = 0,
    ) -> None: ...

class AlterClientQuotasRequest(Message):
    # request v0-1, flexible from 1
    API_KEY: ClassVar[Literal[49]]
    class EntityData(Struct):
        entity_type: str
        entity_name: str | None
        def __init__(
            self,
            *,
            entity_type: str = "",
            entity_name: str | None = "",
        ) -> None: ...

    class OpData(Struct):
        key: str
        value: float
        remove: bool
        def __init__(
            self,
            *,
            key: str = "",
            value: float = 0.0,
            remove: bool = False,
        ) -> None: ...

    class EntryData(Struct):
        entity: list[AlterClientQuotasRequest.EntityData]
        ops: list[AlterClientQuotasRequest.OpData]
        def __init__(
            self,
            *,
            entity: list[AlterClientQuotasRequest.EntityData] = ...,
            ops: list[AlterClientQuotasRequest.OpData] = ...,
        ) -> None: ...

    entries: list[AlterClientQuotasRequest.EntryData]
    validate_only: bool
    def __init__(
        self,
        *,
        entries: list[AlterClientQuotasRequest.EntryData] = ...,
        validate_only: bool = False,
    ) -> None: ...

class AlterClientQuotasResponse(Message):
    # response v0-1, flexible from 1
    API_KEY: ClassVar[Literal[49]]
    class EntityData(Struct):
        entity_type: str
        entity_name: str | None
        def __init__(
            self,
            *,
            entity_type: str = "",
            entity_name: str | None = "",
        ) -> None: ...

    class EntryData(Struct):
        error_code: int
        error_message: str | None
        entity: list[AlterClientQuotasResponse.EntityData]
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            entity: list[AlterClientQuotasResponse.EntityData] = ...,
        ) -> None: ...

    throttle_time_ms: int
    entries: list[AlterClientQuotasResponse.EntryData]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        entries: list[AlterClientQuotasResponse.EntryData] = ...,
    ) -> None: ...

class AlterConfigsRequest(Message):
    # request v0-2, flexible from 2
    API_KEY: ClassVar[Literal[33]]
    class AlterableConfig(Struct):
        name: str
        value: str | None
        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
        ) -> None: ...

    class AlterConfigsResource(Struct):
        resource_type: int
        resource_name: str
        configs: list[AlterConfigsRequest.AlterableConfig]
        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            configs: list[AlterConfigsRequest.AlterableConfig] = ...,
        ) -> None: ...

    resources: list[AlterConfigsRequest.AlterConfigsResource]
    validate_only: bool
    def __init__(
        self,
        *,
        resources: list[AlterConfigsRequest.AlterConfigsResource] = ...,
        validate_only: bool = False,
    ) -> None: ...

class AlterConfigsResponse(Message):
    # response v0-2, flexible from 2
    API_KEY: ClassVar[Literal[33]]
    class AlterConfigsResourceResponse(Struct):
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            resource_type: int = 0,
            resource_name: str = "",
        ) -> None: ...

    throttle_time_ms: int
    responses: list[AlterConfigsResponse.AlterConfigsResourceResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResponse.AlterConfigsResourceResponse] = ...,
    ) -> None: ...

class AlterPartitionReassignmentsRequest(Message):
    # request v0-1, flexible from 0
    API_KEY: ClassVar[Literal[45]]
    class ReassignablePartition(Struct):
        partition_index: int
        replicas: list[int] | None
        def __init__(
            self,
            *,
            partition_index: int = 0,
            replicas: list[int] | None = None,
        ) -> None: ...

    class ReassignableTopic(Struct):
        name: str
        partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = ...,
        ) -> None: ...

    timeout_ms: int
    allow_replication_factor_change: bool
    topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic]
    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic] = ...,
    ) -> None: ...

class AlterPartitionReassignmentsResponse(Message):
    # response v0-1, flexible from 0
    API_KEY: ClassVar[Literal[45]]
    class ReassignablePartitionResponse(Struct):
        partition_index: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = "",
        ) -> None: ...

    class ReassignableTopicResponse(Struct):
        name: str
        partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = ...,
        ) -> None: ...

    throttle_time_ms: int
    allow_replication_factor_change: bool
    error_code: int
    error_message: str | None
    responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = "",
        responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = ...,
    ) -> None: ...

class AlterPartitionRequest(Message):
    # request v2-3, flexible from 2
    API_KEY: ClassVar[Literal[56]]
    class BrokerState(Struct):
        broker_id: int
        broker_epoch: int
        def __init__(
            self,
            *,
            broker_id: int = 0,
            broker_epoch: int = -1,
        ) -> None: ...

    class PartitionData(Struct):
        partition_index: int
        leader_epoch: int
        new_isr: list[int]
        new_isr_with_epochs: list[AlterPartitionRequest.BrokerState]
        leader_recovery_state: int
        partition_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            leader_epoch: int = 0,
            new_isr: list[int] = ...,
            new_isr_with_epochs: list[AlterPartitionRequest.BrokerState] = ...,
            leader_recovery_state: int = 0,
            partition_epoch: int = 0,
        ) -> None: ...

    class TopicData(Struct):
        topic_id: bytes
        partitions: list[AlterPartitionRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[AlterPartitionRequest.PartitionData] = ...,
        ) -> None: ...

    broker_id: int
    broker_epoch: int
    topics: list[AlterPartitionRequest.TopicData]
    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        topics: list[AlterPartitionRequest.TopicData] = ...,
    ) -> None: ...

class AlterPartitionResponse(Message):
    # response v2-3, flexible from 2
    API_KEY: ClassVar[Literal[56]]
    class PartitionData(Struct):
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        isr: list[int]
        leader_recovery_state: int
        partition_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            isr: list[int] = ...,
            leader_recovery_state: int = 0,
            partition_epoch: int = 0,
        ) -> None: ...

    class TopicData(Struct):
        topic_id: bytes
        partitions: list[AlterPartitionResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[AlterPartitionResponse.PartitionData] = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    topics: list[AlterPartitionResponse.TopicData]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[AlterPartitionResponse.TopicData] = ...,
    ) -> None: ...

class AlterReplicaLogDirsRequest(Message):
    # request v1-2, flexible from 2
    API_KEY: ClassVar[Literal[34]]
    class AlterReplicaLogDirTopic(Struct):
        name: str
        partitions: list[int]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[int] = ...,
        ) -> None: ...

    class AlterReplicaLogDir(Struct):
        path: str
        topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic]
        def __init__(
            self,
            *,
            path: str = "",
            topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = ...,
        ) -> None: ...

    dirs: list[AlterReplicaLogDirsRequest.AlterReplicaLogDir]
    def __init__(
        self,
        *,
        dirs: list[AlterReplicaLogDirsRequest.AlterReplicaLogDir] = ...,
    ) -> None: ...

class AlterReplicaLogDirsResponse(Message):
    # response v1-2, flexible from 2
    API_KEY: ClassVar[Literal[34]]
    class AlterReplicaLogDirPartitionResult(Struct):
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
        ) -> None: ...

    class AlterReplicaLogDirTopicResult(Struct):
        topic_name: str
        partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = ...,
        ) -> None: ...

    throttle_time_ms: int
    results: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = ...,
    ) -> None: ...

class AlterShareGroupOffsetsRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[91]]
    class AlterShareGroupOffsetsRequestPartition(Struct):
        partition_index: int
        start_offset: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            start_offset: int = 0,
        ) -> None: ...

    class AlterShareGroupOffsetsRequestTopic(Struct):
        topic_name: str
        partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition] = ...,
        ) -> None: ...

    group_id: str
    topics: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic] = ...,
    ) -> None: ...

class AlterShareGroupOffsetsResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[91]]
    class AlterShareGroupOffsetsResponsePartition(Struct):
        partition_index: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None: ...

    class AlterShareGroupOffsetsResponseTopic(Struct):
        topic_name: str
        topic_id: bytes
        partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition]
        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: bytes = ...,
            partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition] = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic] = ...,
    ) -> None: ...

class AlterUserScramCredentialsRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[51]]
    class ScramCredentialDeletion(Struct):
        name: str
        mechanism: int
        def __init__(
            self,
            *,
            name: str = "",
            mechanism: int = 0,
        ) -> None: ...

    class ScramCredentialUpsertion(Struct):
        name: str
        mechanism: int
        iterations: int
        salt: bytes
        salted_password: bytes
        def __init__(
            self,
            *,
            name: str = "",
            mechanism: int = 0,
            iterations: int = 0,
            salt: bytes = b"",
            salted_password: bytes = b"",
        ) -> None: ...

    deletions: list[AlterUserScramCredentialsRequest.ScramCredentialDeletion]
    upsertions: list[AlterUserScramCredentialsRequest.ScramCredentialUpsertion]
    def __init__(
        self,
        *,
        deletions: list[AlterUserScramCredentialsRequest.ScramCredentialDeletion] = ...,
        upsertions: list[AlterUserScramCredentialsRequest.ScramCredentialUpsertion] = ...,
    ) -> None: ...

class AlterUserScramCredentialsResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[51]]
    class AlterUserScramCredentialsResult(Struct):
        user: str
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            user: str = "",
            error_code: int = 0,
            error_message: str | None = "",
        ) -> None: ...

    throttle_time_ms: int
    results: list[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult] = ...,
    ) -> None: ...

class ApiVersionsRequest(Message):
    # request v0-5, flexible from 3
    API_KEY: ClassVar[Literal[18]]
    client_software_name: str
    client_software_version: str
    cluster_id: str | None
    node_id: int
    def __init__(
        self,
        *,
        client_software_name: str = "",
        client_software_version: str = "",
        cluster_id: str | None = None,
        node_id: int = -1,
    ) -> None: ...

class ApiVersionsResponse(Message):
    # response v0-5, flexible from 3
    API_KEY: ClassVar[Literal[18]]
    class ApiVersion(Struct):
        api_key: int
        min_version: int
        max_version: int
        def __init__(
            self,
            *,
            api_key: int = 0,
            min_version: int = 0,
            max_version: int = 0,
        ) -> None: ...

    class SupportedFeatureKey(Struct):
        name: str
        min_version: int
        max_version: int
        def __init__(
            self,
            *,
            name: str = "",
            min_version: int = 0,
            max_version: int = 0,
        ) -> None: ...

    class FinalizedFeatureKey(Struct):
        name: str
        max_version_level: int
        min_version_level: int
        def __init__(
            self,
            *,
            name: str = "",
            max_version_level: int = 0,
            min_version_level: int = 0,
        ) -> None: ...

    error_code: int
    api_keys: list[ApiVersionsResponse.ApiVersion]
    throttle_time_ms: int
    supported_features: list[ApiVersionsResponse.SupportedFeatureKey]
    finalized_features_epoch: int
    finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey]
    zk_migration_ready: bool
    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: list[ApiVersionsResponse.ApiVersion] = ...,
        throttle_time_ms: int = 0,
        supported_features: list[ApiVersionsResponse.SupportedFeatureKey] = ...,
        finalized_features_epoch: int = -1,
        finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey] = ...,
        zk_migration_ready: bool = False,
    ) -> None: ...

class AssignReplicasToDirsRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[73]]
    class PartitionData(Struct):
        partition_index: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
        ) -> None: ...

    class TopicData(Struct):
        topic_id: bytes
        partitions: list[AssignReplicasToDirsRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[AssignReplicasToDirsRequest.PartitionData] = ...,
        ) -> None: ...

    class DirectoryData(Struct):
        id: bytes
        topics: list[AssignReplicasToDirsRequest.TopicData]
        def __init__(
            self,
            *,
            id: bytes = ...,
            topics: list[AssignReplicasToDirsRequest.TopicData] = ...,
        ) -> None: ...

    broker_id: int
    broker_epoch: int
    directories: list[AssignReplicasToDirsRequest.DirectoryData]
    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        directories: list[AssignReplicasToDirsRequest.DirectoryData] = ...,
    ) -> None: ...

class AssignReplicasToDirsResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[73]]
    class PartitionData(Struct):
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
        ) -> None: ...

    class TopicData(Struct):
        topic_id: bytes
        partitions: list[AssignReplicasToDirsResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[AssignReplicasToDirsResponse.PartitionData] = ...,
        ) -> None: ...

    class DirectoryData(Struct):
        id: bytes
        topics: list[AssignReplicasToDirsResponse.TopicData]
        def __init__(
            self,
            *,
            id: bytes = ...,
            topics: list[AssignReplicasToDirsResponse.TopicData] = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    directories: list[AssignReplicasToDirsResponse.DirectoryData]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        directories: list[AssignReplicasToDirsResponse.DirectoryData] = ...,
    ) -> None: ...

class BeginQuorumEpochRequest(Message):
    # request v0-1, flexible from 1
    API_KEY: ClassVar[Literal[53]]
    class PartitionData(Struct):
        partition_index: int
        voter_directory_id: bytes
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            voter_directory_id: bytes = ...,
            leader_id: int = 0,
            leader_epoch: int = 0,
        ) -> None: ...

    class TopicData(Struct):
        topic_name: str
        partitions: list[BeginQuorumEpochRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[BeginQuorumEpochRequest.PartitionData] = ...,
        ) -> None: ...

    class LeaderEndpoint(Struct):
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
        ) -> None: ...

    cluster_id: str | None
    voter_id: int
    topics: list[BeginQuorumEpochRequest.TopicData]
    leader_endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint]
    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[BeginQuorumEpochRequest.TopicData] = ...,
        leader_endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint] = ...,
    ) -> None: ...

class BeginQuorumEpochResponse(Message):
    # response v0-1, flexible from 1
    API_KEY: ClassVar[Literal[53]]
    class PartitionData(Struct):
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
        ) -> None: ...

    class TopicData(Struct):
        topic_name: str
        partitions: list[BeginQuorumEpochResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[BeginQuorumEpochResponse.PartitionData] = ...,
        ) -> None: ...

    class NodeEndpoint(Struct):
        node_id: int
        host: str
        port: int
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
        ) -> None: ...

    error_code: int
    topics: list[BeginQuorumEpochResponse.TopicData]
    node_endpoints: list[BeginQuorumEpochResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[BeginQuorumEpochResponse.TopicData] = ...,
        node_endpoints: list[BeginQuorumEpochResponse.NodeEndpoint] = ...,
    ) -> None: ...

class BeginTransactionRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[23]]
    name: str | None
    def __init__(
        self,
        *,
        name: str | None = None,
    ) -> None: ...

class BrokerHeartbeatRequest(Message):
    # request v0-2, flexible from 0
    API_KEY: ClassVar[Literal[63]]
    class ReplicaLog(Struct):
        topic_id: bytes
        partition: int
        current_leader_epoch: int
        last_written_leader_epoch: int
        log_end_offset: int
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partition: int = 0,
            current_leader_epoch: int = 0,
            last_written_leader_epoch: int = 0,
            log_end_offset: int = 0,
        ) -> None: ...

    broker_id: int
    broker_epoch: int
    current_metadata_offset: int
    want_fence: bool
    want_shut_down: bool
    offline_log_dirs: list[bytes]
    cordoned_log_dirs: list[bytes] | None
    replica_logs: list[BrokerHeartbeatRequest.ReplicaLog] | None
    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        current_metadata_offset: int = 0,
        want_fence: bool = False,
        want_shut_down: bool = False,
        offline_log_dirs: list[bytes] = ...,
        cordoned_log_dirs: list[bytes] | None = ...,
        replica_logs: list[BrokerHeartbeatRequest.ReplicaLog] | None = None,
    ) -> None: ...

class BrokerHeartbeatResponse(Message):
    # response v0-2, flexible from 0
    API_KEY: ClassVar[Literal[63]]
    throttle_time_ms: int
    error_code: int
    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        is_caught_up: bool = False,
        is_fenced: bool = True,
        should_shut_down: bool = False,
    ) -> None: ...

class BrokerRegistrationChangeRecord(Message):
    # metadata v0-3, flexible from 0
    API_KEY: ClassVar[Literal[17]]
    broker_id: int
    broker_epoch: int
    fenced: int
    in_controlled_shutdown: int
    log_dirs: list[bytes]
    cordoned_log_dirs: list[bytes] | None
    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
        fenced: int = 0,
        in_controlled_shutdown: int = 0,
        log_dirs: list[bytes] = ...,
        cordoned_log_dirs: list[bytes] | None = ...,
    ) -> None: ...

class BrokerRegistrationRequest(Message):
    # request v0-4, flexible from 0
    API_KEY: ClassVar[Literal[62]]
    class Listener(Struct):
        name: str
        host: str
        port: int
        security_protocol: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            security_protocol: int = 0,
        ) -> None: ...

    class Feature(Struct):
        name: str
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            name: str = "",
            min_supported_version: int = 0,
            max_supported_version: int = 0,
        ) -> None: ...

    broker_id: int
    cluster_id: str
    incarnation_id: bytes
    listeners: list[BrokerRegistrationRequest.Listener]
    features: list[BrokerRegistrationRequest.Feature]
    rack: str | None
    is_migrating_zk_broker: bool
    log_dirs: list[bytes]
    previous_broker_epoch: int
    def __init__(
        self,
        *,
        broker_id: int = 0,
        cluster_id: str = "",
        incarnation_id: bytes = ...,
        listeners: list[BrokerRegistrationRequest.Listener] = ...,
        features: list[BrokerRegistrationRequest.Feature] = ...,
        rack: str | None = "",
        is_migrating_zk_broker: bool = False,
        log_dirs: list[bytes] = ...,
        previous_broker_epoch: int = -1,
    ) -> None: ...

class BrokerRegistrationResponse(Message):
    # response v0-4, flexible from 0
    API_KEY: ClassVar[Literal[62]]
    throttle_time_ms: int
    error_code: int
    broker_epoch: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        broker_epoch: int = -1,
    ) -> None: ...

class ClearElrRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[28]]
    topic_name: str
    def __init__(
        self,
        *,
        topic_name: str = "",
    ) -> None: ...

class ClientQuotaRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[14]]
    class EntityData(Struct):
        entity_type: str
        entity_name: str | None
        def __init__(
            self,
            *,
            entity_type: str = "",
            entity_name: str | None = "",
        ) -> None: ...

    entity: list[ClientQuotaRecord.EntityData]
    key: str
    value: float
    remove: bool
    def __init__(
        self,
        *,
        entity: list[ClientQuotaRecord.EntityData] = ...,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
    ) -> None: ...

class ConfigRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[4]]
    resource_type: int
    resource_name: str
    name: str
    value: str | None
    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        name: str = "",
        value: str | None = "",
    ) -> None: ...

class ConsumerGroupCurrentMemberAssignmentKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[8]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None: ...

class ConsumerGroupCurrentMemberAssignmentValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[8]]
    class TopicPartitions(Struct):
        topic_id: bytes
        partitions: list[int]
        assignment_epochs: list[int] | None
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[int] = ...,
            assignment_epochs: list[int] | None = ...,
        ) -> None: ...

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]
    partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]
    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions] = ...,
        partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions] = ...,
    ) -> None: ...

class ConsumerGroupDescribeRequest(Message):
    # request v0-1, flexible from 0
    API_KEY: ClassVar[Literal[69]]
    group_ids: list[str]
    include_authorized_operations: bool
    def __init__(
        self,
        *,
        group_ids: list[str] = ...,
        include_authorized_operations: bool = False,
    ) -> None: ...

class ConsumerGroupDescribeResponse(Message):
    # response v0-1, flexible from 0
    API_KEY: ClassVar[Literal[69]]
    class TopicPartitions(Struct):
        topic_id: bytes
        topic_name: str
        partitions: list[int]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            topic_name: str = "",
            partitions: list[int] = ...,
        ) -> None: ...

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions]
        def __init__(
            self,
            *,
            topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions] = ...,
        ) -> None: ...

    class Member(Struct):
        member_id: str
        instance_id: str | None
        rack_id: str | None
        member_epoch: int
        client_id: str
        client_host: str
        subscribed_topic_names: list[str]
        subscribed_topic_regex: str | None
        assignment: ConsumerGroupDescribeResponse.Assignment
        target_assignment: ConsumerGroupDescribeResponse.Assignment
        member_type: int
        def __init__(
            self,
            *,
            member_id: str = "",
            instance_id: str | None = None,
            rack_id: str | None = None,
            member_epoch: int = 0,
            client_id: str = "",
            client_host: str = "",
            subscribed_topic_names: list[str] = ...,
            subscribed_topic_regex: str | None = None,
            assignment: ConsumerGroupDescribeResponse.Assignment = ...,
            target_assignment: ConsumerGroupDescribeResponse.Assignment = ...,
            member_type: int = -1,
        ) -> None: ...

    class DescribedGroup(Struct):
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        assignor_name: str
        members: list[ConsumerGroupDescribeResponse.Member]
        authorized_operations: int
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            group_id: str = "",
            group_state: str = "",
            group_epoch: int = 0,
            assignment_epoch: int = 0,
            assignor_name: str = "",
            members: list[ConsumerGroupDescribeResponse.Member] = ...,
            authorized_operations: int = -2147483648,
        ) -> None: ...

    throttle_time_ms: int
    groups: list[ConsumerGroupDescribeResponse.DescribedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[ConsumerGroupDescribeResponse.DescribedGroup] = ...,
    ) -> None: ...

class ConsumerGroupHeartbeatRequest(Message):
    # request v0-1, flexible from 0
    API_KEY: ClassVar[Literal[68]]
    class TopicPartitions(Struct):
        topic_id: bytes
        partitions: list[int]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[int] = ...,
        ) -> None: ...

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    subscribed_topic_names: list[str] | None
    subscribed_topic_regex: str | None
    server_assignor: str | None
    topic_partitions: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        topic_partitions: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None = None,
    ) -> None: ...

class ConsumerGroupHeartbeatResponse(Message):
    # response v0-1, flexible from 0
    API_KEY: ClassVar[Literal[68]]
    class TopicPartitions(Struct):
        topic_id: bytes
        partitions: list[int]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[int] = ...,
        ) -> None: ...

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions]
        def __init__(
            self,
            *,
            topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: ConsumerGroupHeartbeatResponse.Assignment | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: ConsumerGroupHeartbeatResponse.Assignment | None = None,
    ) -> None: ...

class ConsumerGroupMemberMetadataKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[5]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None: ...

class ConsumerGroupMemberMetadataValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[5]]
    class ClassicProtocol(Struct):
        name: str
        metadata: bytes
        def __init__(
            self,
            *,
            name: str = "",
            metadata: bytes = b"",
        ) -> None: ...

    class ClassicMemberMetadata(Struct):
        session_timeout_ms: int
        supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol]
        def __init__(
            self,
            *,
            session_timeout_ms: int = 0,
            supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol] = ...,
        ) -> None: ...

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic_member_metadata: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None
    def __init__(
        self,
        *,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = ...,
        subscribed_topic_regex: str | None = "",
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = "",
        classic_member_metadata: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None = ...,
    ) -> None: ...

class ConsumerGroupMetadataKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[3]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None: ...

class ConsumerGroupMetadataValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[3]]
    epoch: int
    metadata_hash: int
    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
    ) -> None: ...

class ConsumerGroupPartitionMetadataKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[4]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None: ...

class ConsumerGroupPartitionMetadataValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[4]]
    class PartitionMetadata(Struct):
        partition: int
        racks: list[str]
        def __init__(
            self,
            *,
            partition: int = 0,
            racks: list[str] = ...,
        ) -> None: ...

    class TopicMetadata(Struct):
        topic_id: bytes
        topic_name: str
        num_partitions: int
        partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            topic_name: str = "",
            num_partitions: int = 0,
            partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata] = ...,
        ) -> None: ...

    topics: list[ConsumerGroupPartitionMetadataValue.TopicMetadata]
    def __init__(
        self,
        *,
        topics: list[ConsumerGroupPartitionMetadataValue.TopicMetadata] = ...,
    ) -> None: ...

class ConsumerGroupRegularExpressionKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[16]]
    group_id: str
    regular_expression: str
    def __init__(
        self,
        *,
        group_id: str = "",
        regular_expression: str = "",
    ) -> None: ...

class ConsumerGroupRegularExpressionValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[16]]
    topics: list[str]
    version: int
    timestamp: int
    def __init__(
        self,
        *,
        topics: list[str] = ...,
        version: int = 0,
        timestamp: int = 0,
    ) -> None: ...

class ConsumerGroupTargetAssignmentMemberKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[7]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None: ...

class ConsumerGroupTargetAssignmentMemberValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[7]]
    class TopicPartition(Struct):
        topic_id: bytes
        partitions: list[int]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[int] = ...,
        ) -> None: ...

    topic_partitions: list[ConsumerGroupTargetAssignmentMemberValue.TopicPartition]
    def __init__(
        self,
        *,
        topic_partitions: list[ConsumerGroupTargetAssignmentMemberValue.TopicPartition] = ...,
    ) -> None: ...

class ConsumerGroupTargetAssignmentMetadataKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[6]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None: ...

class ConsumerGroupTargetAssignmentMetadataValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[6]]
    assignment_epoch: int
    assignment_timestamp: int
    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None: ...

class ConsumerProtocolAssignment(Message):
    # data v0-3, flexible from None
    API_KEY: ClassVar[None]
    class TopicPartition(Struct):
        topic: str
        partitions: list[int]
        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[int] = ...,
        ) -> None: ...

    assigned_partitions: list[ConsumerProtocolAssignment.TopicPartition]
    user_data: bytes | None
    def __init__(
        self,
        *,
        assigned_partitions: list[ConsumerProtocolAssignment.TopicPartition] = ...,
        user_data: bytes | None = None,
    ) -> None: ...

class ConsumerProtocolSubscription(Message):
    # data v0-3, flexible from None
    API_KEY: ClassVar[None]
    class TopicPartition(Struct):
        topic: str
        partitions: list[int]
        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[int] = ...,
        ) -> None: ...

    topics: list[str]
    user_data: bytes | None
    owned_partitions: list[ConsumerProtocolSubscription.TopicPartition]
    generation_id: int
    rack_id: str | None
    def __init__(
        self,
        *,
        topics: list[str] = ...,
        user_data: bytes | None = None,
        owned_partitions: list[ConsumerProtocolSubscription.TopicPartition] = ...,
        generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None: ...

class ControlRecordTypeSchema(Message):
    # data v0-0, flexible from None
    API_KEY: ClassVar[None]
    type: int
    def __init__(
        self,
        *,
        type: int = 0,
    ) -> None: ...

class ControllerRegistrationRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[70]]
    class Listener(Struct):
        name: str
        host: str
        port: int
        security_protocol: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            security_protocol: int = 0,
        ) -> None: ...

    class Feature(Struct):
        name: str
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            name: str = "",
            min_supported_version: int = 0,
            max_supported_version: int = 0,
        ) -> None: ...

    controller_id: int
    incarnation_id: bytes
    zk_migration_ready: bool
    listeners: list[ControllerRegistrationRequest.Listener]
    features: list[ControllerRegistrationRequest.Feature]
    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: bytes = ...,
        zk_migration_ready: bool = False,
        listeners: list[ControllerRegistrationRequest.Listener] = ...,
        features: list[ControllerRegistrationRequest.Feature] = ...,
    ) -> None: ...

class ControllerRegistrationResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[70]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None: ...

class CreateAclsRequest(Message):
    # request v1-3, flexible from 2
    API_KEY: ClassVar[Literal[30]]
    class AclCreation(Struct):
        resource_type: int
        resource_name: str
        resource_pattern_type: int
        principal: str
        host: str
        operation: int
        permission_type: int
        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            resource_pattern_type: int = 3,
            principal: str = "",
            host: str = "",
            operation: int = 0,
            permission_type: int = 0,
        ) -> None: ...

    creations: list[CreateAclsRequest.AclCreation]
    def __init__(
        self,
        *,
        creations: list[CreateAclsRequest.AclCreation] = ...,
    ) -> None: ...

class CreateAclsResponse(Message):
    # response v1-3, flexible from 2
    API_KEY: ClassVar[Literal[30]]
    class AclCreationResult(Struct):
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
        ) -> None: ...

    throttle_time_ms: int
    results: list[CreateAclsResponse.AclCreationResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreateAclsResponse.AclCreationResult] = ...,
    ) -> None: ...

class CreateDelegationTokenRequest(Message):
    # request v1-3, flexible from 2
    API_KEY: ClassVar[Literal[38]]
    class CreatableRenewers(Struct):
        principal_type: str
        principal_name: str
        def __init__(
            self,
            *,
            principal_type: str = "",
            principal_name: str = "",
        ) -> None: ...

    owner_principal_type: str | None
    owner_principal_name: str | None
    renewers: list[CreateDelegationTokenRequest.CreatableRenewers]
    max_lifetime_ms: int
    def __init__(
        self,
        *,
        owner_principal_type: str | None = "",
        owner_principal_name: str | None = "",
        renewers: list[CreateDelegationTokenRequest.CreatableRenewers] = ...,
        max_lifetime_ms: int = 0,
    ) -> None: ...

class CreateDelegationTokenResponse(Message):
    # response v1-3, flexible from 2
    API_KEY: ClassVar[Literal[38]]
    error_code: int
    principal_type: str
    principal_name: str
    token_requester_principal_type: str
    token_requester_principal_name: str
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int
    token_id: str
    hmac: bytes
    throttle_time_ms: int
    def __init__(
        self,
        *,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        throttle_time_ms: int = 0,
    ) -> None: ...

class CreatePartitionsRequest(Message):
    # request v0-3, flexible from 2
    API_KEY: ClassVar[Literal[37]]
    class CreatePartitionsAssignment(Struct):
        broker_ids: list[int]
        def __init__(
            self,
            *,
            broker_ids: list[int] = ...,
        ) -> None: ...

    class CreatePartitionsTopic(Struct):
        name: str
        count: int
        assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None
        def __init__(
            self,
            *,
            name: str = "",
            count: int = 0,
            assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = ...,
        ) -> None: ...

    topics: list[CreatePartitionsRequest.CreatePartitionsTopic]
    timeout_ms: int
    validate_only: bool
    def __init__(
        self,
        *,
        topics: list[CreatePartitionsRequest.CreatePartitionsTopic] = ...,
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None: ...

class CreatePartitionsResponse(Message):
    # response v0-3, flexible from 2
    API_KEY: ClassVar[Literal[37]]
    class CreatePartitionsTopicResult(Struct):
        name: str
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            name: str = "",
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None: ...

    throttle_time_ms: int
    results: list[CreatePartitionsResponse.CreatePartitionsTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsResponse.CreatePartitionsTopicResult] = ...,
    ) -> None: ...

class CreateTopicsRequest(Message):
    # request v2-7, flexible from 5
    API_KEY: ClassVar[Literal[19]]
    class CreatableReplicaAssignment(Struct):
        partition_index: int
        broker_ids: list[int]
        def __init__(
            self,
            *,
            partition_index: int = 0,
            broker_ids: list[int] = ...,
        ) -> None: ...

    class CreatableTopicConfig(Struct):
        name: str
        value: str | None
        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
        ) -> None: ...

    class CreatableTopic(Struct):
        name: str
        num_partitions: int
        replication_factor: int
        assignments: list[CreateTopicsRequest.CreatableReplicaAssignment]
        configs: list[CreateTopicsRequest.CreatableTopicConfig]
        def __init__(
            self,
            *,
            name: str = "",
            num_partitions: int = 0,
            replication_factor: int = 0,
            assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = ...,
            configs: list[CreateTopicsRequest.CreatableTopicConfig] = ...,
        ) -> None: ...

    topics: list[CreateTopicsRequest.CreatableTopic]
    timeout_ms: int
    validate_only: bool
    def __init__(
        self,
        *,
        topics: list[CreateTopicsRequest.CreatableTopic] = ...,
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None: ...

class CreateTopicsResponse(Message):
    # response v2-7, flexible from 5
    API_KEY: ClassVar[Literal[19]]
    class CreatableTopicConfigs(Struct):
        name: str
        value: str | None
        read_only: bool
        config_source: int
        is_sensitive: bool
        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
            read_only: bool = False,
            config_source: int = -1,
            is_sensitive: bool = False,
        ) -> None: ...

    class CreatableTopicResult(Struct):
        name: str
        topic_id: bytes
        error_code: int
        error_message: str | None
        topic_config_error_code: int
        num_partitions: int
        replication_factor: int
        configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ...,
            error_code: int = 0,
            error_message: str | None = "",
            topic_config_error_code: int = 0,
            num_partitions: int = -1,
            replication_factor: int = -1,
            configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = ...,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[CreateTopicsResponse.CreatableTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[CreateTopicsResponse.CreatableTopicResult] = ...,
    ) -> None: ...

class DefaultPrincipalData(Message):
    # data v0-0, flexible from 0
    API_KEY: ClassVar[None]
    type: str
    name: str
    token_authenticated: bool
    def __init__(
        self,
        *,
        type: str = "",
        name: str = "",
        token_authenticated: bool = False,
    ) -> None: ...

class DelegationTokenRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[10]]
    owner: str
    requester: str
    renewers: list[str]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int
    token_id: str
    def __init__(
        self,
        *,
        owner: str = "",
        requester: str = "",
        renewers: list[str] = ...,
        issue_timestamp: int = 0,
        max_timestamp: int = 0,
        expiration_timestamp: int = 0,
        token_id: str = "",
    ) -> None: ...

class DeleteAclsRequest(Message):
    # request v1-3, flexible from 2
    API_KEY: ClassVar[Literal[31]]
    class DeleteAclsFilter(Struct):
        resource_type_filter: int
        resource_name_filter: str | None
        pattern_type_filter: int
        principal_filter: str | None
        host_filter: str | None
        operation: int
        permission_type: int
        def __init__(
            self,
            *,
            resource_type_filter: int = 0,
            resource_name_filter: str | None = "",
            pattern_type_filter: int = 3,
            principal_filter: str | None = "",
            host_filter: str | None = "",
            operation: int = 0,
            permission_type: int = 0,
        ) -> None: ...

    filters: list[DeleteAclsRequest.DeleteAclsFilter]
    def __init__(
        self,
        *,
        filters: list[DeleteAclsRequest.DeleteAclsFilter] = ...,
    ) -> None: ...

class DeleteAclsResponse(Message):
    # response v1-3, flexible from 2
    API_KEY: ClassVar[Literal[31]]
    class DeleteAclsMatchingAcl(Struct):
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        pattern_type: int
        principal: str
        host: str
        operation: int
        permission_type: int
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            resource_type: int = 0,
            resource_name: str = "",
            pattern_type: int = 3,
            principal: str = "",
            host: str = "",
            operation: int = 0,
            permission_type: int = 0,
        ) -> None: ...

    class DeleteAclsFilterResult(Struct):
        error_code: int
        error_message: str | None
        matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl]
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = ...,
        ) -> None: ...

    throttle_time_ms: int
    filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult] = ...,
    ) -> None: ...

class DeleteGroupsRequest(Message):
    # request v0-3, flexible from 2
    API_KEY: ClassVar[Literal[42]]
    groups_names: list[str]
    def __init__(
        self,
        *,
        groups_names: list[str] = ...,
    ) -> None: ...

class DeleteGroupsResponse(Message):
    # response v0-3, flexible from 2
    API_KEY: ClassVar[Literal[42]]
    class DeletableGroupResult(Struct):
        group_id: str
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            group_id: str = "",
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None: ...

    throttle_time_ms: int
    results: list[DeleteGroupsResponse.DeletableGroupResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DeleteGroupsResponse.DeletableGroupResult] = ...,
    ) -> None: ...

class DeleteRecordsRequest(Message):
    # request v0-2, flexible from 2
    API_KEY: ClassVar[Literal[21]]
    class DeleteRecordsPartition(Struct):
        partition_index: int
        offset: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            offset: int = 0,
        ) -> None: ...

    class DeleteRecordsTopic(Struct):
        name: str
        partitions: list[DeleteRecordsRequest.DeleteRecordsPartition]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = ...,
        ) -> None: ...

    topics: list[DeleteRecordsRequest.DeleteRecordsTopic]
    timeout_ms: int
    def __init__(
        self,
        *,
        topics: list[DeleteRecordsRequest.DeleteRecordsTopic] = ...,
        timeout_ms: int = 0,
    ) -> None: ...

class DeleteRecordsResponse(Message):
    # response v0-2, flexible from 2
    API_KEY: ClassVar[Literal[21]]
    class DeleteRecordsPartitionResult(Struct):
        partition_index: int
        low_watermark: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            low_watermark: int = 0,
            error_code: int = 0,
        ) -> None: ...

    class DeleteRecordsTopicResult(Struct):
        name: str
        partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = ...,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult] = ...,
    ) -> None: ...

class DeleteShareGroupOffsetsRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[92]]
    class DeleteShareGroupOffsetsRequestTopic(Struct):
        topic_name: str
        def __init__(
            self,
            *,
            topic_name: str = "",
        ) -> None: ...

    group_id: str
    topics: list[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic] = ...,
    ) -> None: ...

class DeleteShareGroupOffsetsResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[92]]
    class DeleteShareGroupOffsetsResponseTopic(Struct):
        topic_name: str
        topic_id: bytes
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: bytes = ...,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic] = ...,
    ) -> None: ...

class DeleteShareGroupStateRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[86]]
    class PartitionData(Struct):
        partition: int
        def __init__(
            self,
            *,
            partition: int = 0,
        ) -> None: ...

    class DeleteStateData(Struct):
        topic_id: bytes
        partitions: list[DeleteShareGroupStateRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[DeleteShareGroupStateRequest.PartitionData] = ...,
        ) -> None: ...

    group_id: str
    topics: list[DeleteShareGroupStateRequest.DeleteStateData]
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DeleteShareGroupStateRequest.DeleteStateData] = ...,
    ) -> None: ...

class DeleteShareGroupStateResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[86]]
    class PartitionResult(Struct):
        partition: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None: ...

    class DeleteStateResult(Struct):
        topic_id: bytes
        partitions: list[DeleteShareGroupStateResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[DeleteShareGroupStateResponse.PartitionResult] = ...,
        ) -> None: ...

    results: list[DeleteShareGroupStateResponse.DeleteStateResult]
    def __init__(
        self,
        *,
        results: list[DeleteShareGroupStateResponse.DeleteStateResult] = ...,
    ) -> None: ...

class DeleteTopicsRequest(Message):
    # request v1-6, flexible from 4
    API_KEY: ClassVar[Literal[20]]
    class DeleteTopicState(Struct):
        name: str | None
        topic_id: bytes
        def __init__(
            self,
            *,
            name: str | None = None,
            topic_id: bytes = ...,
        ) -> None: ...

    topics: list[DeleteTopicsRequest.DeleteTopicState]
    topic_names: list[str]
    timeout_ms: int
    def __init__(
        self,
        *,
        topics: list[DeleteTopicsRequest.DeleteTopicState] = ...,
        topic_names: list[str] = ...,
        timeout_ms: int = 0,
    ) -> None: ...

class DeleteTopicsResponse(Message):
    # response v1-6, flexible from 4
    API_KEY: ClassVar[Literal[20]]
    class DeletableTopicResult(Struct):
        name: str | None
        topic_id: bytes
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            name: str | None = "",
            topic_id: bytes = ...,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None: ...

    throttle_time_ms: int
    responses: list[DeleteTopicsResponse.DeletableTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[DeleteTopicsResponse.DeletableTopicResult] = ...,
    ) -> None: ...

class DescribeAclsRequest(Message):
    # request v1-3, flexible from 2
    API_KEY: ClassVar[Literal[29]]
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int
    def __init__(
        self,
        *,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None: ...

class DescribeAclsResponse(Message):
    # response v1-3, flexible from 2
    API_KEY: ClassVar[Literal[29]]
    class AclDescription(Struct):
        principal: str
        host: str
        operation: int
        permission_type: int
        def __init__(
            self,
            *,
            principal: str = "",
            host: str = "",
            operation: int = 0,
            permission_type: int = 0,
        ) -> None: ...

    class DescribeAclsResource(Struct):
        resource_type: int
        resource_name: str
        pattern_type: int
        acls: list[DescribeAclsResponse.AclDescription]
        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            pattern_type: int = 3,
            acls: list[DescribeAclsResponse.AclDescription] = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    resources: list[DescribeAclsResponse.DescribeAclsResource]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: list[DescribeAclsResponse.DescribeAclsResource] = ...,
    ) -> None: ...

class DescribeClientQuotasRequest(Message):
    # request v0-1, flexible from 1
    API_KEY: ClassVar[Literal[48]]
    class ComponentData(Struct):
        entity_type: str
        match_type: int
        match: str | None
        def __init__(
            self,
            *,
            entity_type: str = "",
            match_type: int = 0,
            match: str | None = "",
        ) -> None: ...

    components: list[DescribeClientQuotasRequest.ComponentData]
    strict: bool
    def __init__(
        self,
        *,
        components: list[DescribeClientQuotasRequest.ComponentData] = ...,
        strict: bool = False,
    ) -> None: ...

class DescribeClientQuotasResponse(Message):
    # response v0-1, flexible from 1
    API_KEY: ClassVar[Literal[48]]
    class EntityData(Struct):
        entity_type: str
        entity_name: str | None
        def __init__(
            self,
            *,
            entity_type: str = "",
            entity_name: str | None = "",
        ) -> None: ...

    class ValueData(Struct):
        key: str
        value: float
        def __init__(
            self,
            *,
            key: str = "",
            value: float = 0.0,
        ) -> None: ...

    class EntryData(Struct):
        entity: list[DescribeClientQuotasResponse.EntityData]
        values: list[DescribeClientQuotasResponse.ValueData]
        def __init__(
            self,
            *,
            entity: list[DescribeClientQuotasResponse.EntityData] = ...,
            values: list[DescribeClientQuotasResponse.ValueData] = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    entries: list[DescribeClientQuotasResponse.EntryData] | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: list[DescribeClientQuotasResponse.EntryData] | None = ...,
    ) -> None: ...

class DescribeClusterRequest(Message):
    # request v0-2, flexible from 0
    API_KEY: ClassVar[Literal[60]]
    include_cluster_authorized_operations: bool
    endpoint_type: int
    include_fenced_brokers: bool
    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
    ) -> None: ...

class DescribeClusterResponse(Message):
    # response v0-2, flexible from 0
    API_KEY: ClassVar[Literal[60]]
    class DescribeClusterBroker(Struct):
        broker_id: int
        host: str
        port: int
        rack: str | None
        is_fenced: bool
        def __init__(
            self,
            *,
            broker_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
            is_fenced: bool = False,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    endpoint_type: int
    cluster_id: str
    controller_id: int
    brokers: list[DescribeClusterResponse.DescribeClusterBroker]
    cluster_authorized_operations: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterResponse.DescribeClusterBroker] = ...,
        cluster_authorized_operations: int = -2147483648,
    ) -> None: ...

class DescribeConfigsRequest(Message):
    # request v1-4, flexible from 4
    API_KEY: ClassVar[Literal[32]]
    class DescribeConfigsResource(Struct):
        resource_type: int
        resource_name: str
        configuration_keys: list[str] | None
        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            configuration_keys: list[str] | None = ...,
        ) -> None: ...

    resources: list[DescribeConfigsRequest.DescribeConfigsResource]
    include_synonyms: bool
    include_documentation: bool
    def __init__(
        self,
        *,
        resources: list[DescribeConfigsRequest.DescribeConfigsResource] = ...,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None: ...

class DescribeConfigsResponse(Message):
    # response v1-4, flexible from 4
    API_KEY: ClassVar[Literal[32]]
    class DescribeConfigsSynonym(Struct):
        name: str
        value: str | None
        source: int
        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
            source: int = 0,
        ) -> None: ...

    class DescribeConfigsResourceResult(Struct):
        name: str
        value: str | None
        read_only: bool
        config_source: int
        is_sensitive: bool
        synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym]
        config_type: int
        documentation: str | None
        def __init__(
            self,
            *,
            name: str = "",
            value: str | None = "",
            read_only: bool = False,
            config_source: int = -1,
            is_sensitive: bool = False,
            synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = ...,
            config_type: int = 0,
            documentation: str | None = "",
        ) -> None: ...

    class DescribeConfigsResult(Struct):
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult]
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            resource_type: int = 0,
            resource_name: str = "",
            configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = ...,
        ) -> None: ...

    throttle_time_ms: int
    results: list[DescribeConfigsResponse.DescribeConfigsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResponse.DescribeConfigsResult] = ...,
    ) -> None: ...

class DescribeDelegationTokenRequest(Message):
    # request v1-3, flexible from 2
    API_KEY: ClassVar[Literal[41]]
    class DescribeDelegationTokenOwner(Struct):
        principal_type: str
        principal_name: str
        def __init__(
            self,
            *,
            principal_type: str = "",
            principal_name: str = "",
        ) -> None: ...

    owners: list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None
    def __init__(
        self,
        *,
        owners: list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None = ...,
    ) -> None: ...

class DescribeDelegationTokenResponse(Message):
    # response v1-3, flexible from 2
    API_KEY: ClassVar[Literal[41]]
    class DescribedDelegationTokenRenewer(Struct):
        principal_type: str
        principal_name: str
        def __init__(
            self,
            *,
            principal_type: str = "",
            principal_name: str = "",
        ) -> None: ...

    class DescribedDelegationToken(Struct):
        principal_type: str
        principal_name: str
        token_requester_principal_type: str
        token_requester_principal_name: str
        issue_timestamp: int
        expiry_timestamp: int
        max_timestamp: int
        token_id: str
        hmac: bytes
        renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer]
        def __init__(
            self,
            *,
            principal_type: str = "",
            principal_name: str = "",
            token_requester_principal_type: str = "",
            token_requester_principal_name: str = "",
            issue_timestamp: int = 0,
            expiry_timestamp: int = 0,
            max_timestamp: int = 0,
            token_id: str = "",
            hmac: bytes = b"",
            renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = ...,
        ) -> None: ...

    error_code: int
    tokens: list[DescribeDelegationTokenResponse.DescribedDelegationToken]
    throttle_time_ms: int
    def __init__(
        self,
        *,
        error_code: int = 0,
        tokens: list[DescribeDelegationTokenResponse.DescribedDelegationToken] = ...,
        throttle_time_ms: int = 0,
    ) -> None: ...

class DescribeGroupsRequest(Message):
    # request v0-6, flexible from 5
    API_KEY: ClassVar[Literal[15]]
    groups: list[str]
    include_authorized_operations: bool
    def __init__(
        self,
        *,
        groups: list[str] = ...,
        include_authorized_operations: bool = False,
    ) -> None: ...

class DescribeGroupsResponse(Message):
    # response v0-6, flexible from 5
    API_KEY: ClassVar[Literal[15]]
    class DescribedGroupMember(Struct):
        member_id: str
        group_instance_id: str | None
        client_id: str
        client_host: str
        member_metadata: bytes
        member_assignment: bytes
        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            client_id: str = "",
            client_host: str = "",
            member_metadata: bytes = b"",
            member_assignment: bytes = b"",
        ) -> None: ...

    class DescribedGroup(Struct):
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        protocol_type: str
        protocol_data: str
        members: list[DescribeGroupsResponse.DescribedGroupMember]
        authorized_operations: int
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            group_id: str = "",
            group_state: str = "",
            protocol_type: str = "",
            protocol_data: str = "",
            members: list[DescribeGroupsResponse.DescribedGroupMember] = ...,
            authorized_operations: int = -2147483648,
        ) -> None: ...

    throttle_time_ms: int
    groups: list[DescribeGroupsResponse.DescribedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribeGroupsResponse.DescribedGroup] = ...,
    ) -> None: ...

class DescribeLogDirsRequest(Message):
    # request v1-5, flexible from 2
    API_KEY: ClassVar[Literal[35]]
    class DescribableLogDirTopic(Struct):
        topic: str
        partitions: list[int]
        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[int] = ...,
        ) -> None: ...

    topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None
    def __init__(
        self,
        *,
        topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None = ...,
    ) -> None: ...

class DescribeLogDirsResponse(Message):
    # response v1-5, flexible from 2
    API_KEY: ClassVar[Literal[35]]
    class DescribeLogDirsPartition(Struct):
        partition_index: int
        partition_size: int
        offset_lag: int
        is_future_key: bool
        def __init__(
            self,
            *,
            partition_index: int = 0,
            partition_size: int = 0,
            offset_lag: int = 0,
            is_future_key: bool = False,
        ) -> None: ...

    class DescribeLogDirsTopic(Struct):
        name: str
        partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = ...,
        ) -> None: ...

    class DescribeLogDirsResult(Struct):
        error_code: int
        log_dir: str
        topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic]
        total_bytes: int
        usable_bytes: int
        is_cordoned: bool
        def __init__(
            self,
            *,
            error_code: int = 0,
            log_dir: str = "",
            topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = ...,
            total_bytes: int = -1,
            usable_bytes: int = -1,
            is_cordoned: bool = False,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    results: list[DescribeLogDirsResponse.DescribeLogDirsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResponse.DescribeLogDirsResult] = ...,
    ) -> None: ...

class DescribeProducersRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[61]]
    class TopicRequest(Struct):
        name: str
        partition_indexes: list[int]
        def __init__(
            self,
            *,
            name: str = "",
            partition_indexes: list[int] = ...,
        ) -> None: ...

    topics: list[DescribeProducersRequest.TopicRequest]
    def __init__(
        self,
        *,
        topics: list[DescribeProducersRequest.TopicRequest] = ...,
    ) -> None: ...

class DescribeProducersResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[61]]
    class ProducerState(Struct):
        producer_id: int
        producer_epoch: int
        last_sequence: int
        last_timestamp: int
        coordinator_epoch: int
        current_txn_start_offset: int
        def __init__(
            self,
            *,
            producer_id: int = 0,
            producer_epoch: int = 0,
            last_sequence: int = -1,
            last_timestamp: int = -1,
            coordinator_epoch: int = 0,
            current_txn_start_offset: int = -1,
        ) -> None: ...

    class PartitionResponse(Struct):
        partition_index: int
        error_code: int
        error_message: str | None
        active_producers: list[DescribeProducersResponse.ProducerState]
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            active_producers: list[DescribeProducersResponse.ProducerState] = ...,
        ) -> None: ...

    class TopicResponse(Struct):
        name: str
        partitions: list[DescribeProducersResponse.PartitionResponse]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[DescribeProducersResponse.PartitionResponse] = ...,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[DescribeProducersResponse.TopicResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeProducersResponse.TopicResponse] = ...,
    ) -> None: ...

class DescribeQuorumRequest(Message):
    # request v0-2, flexible from 0
    API_KEY: ClassVar[Literal[55]]
    class PartitionData(Struct):
        partition_index: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
        ) -> None: ...

    class TopicData(Struct):
        topic_name: str
        partitions: list[DescribeQuorumRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[DescribeQuorumRequest.PartitionData] = ...,
        ) -> None: ...

    topics: list[DescribeQuorumRequest.TopicData]
    def __init__(
        self,
        *,
        topics: list[DescribeQuorumRequest.TopicData] = ...,
    ) -> None: ...

class DescribeQuorumResponse(Message):
    # response v0-2, flexible from 0
    API_KEY: ClassVar[Literal[55]]
    class ReplicaState(Struct):
        replica_id: int
        replica_directory_id: bytes
        log_end_offset: int
        last_fetch_timestamp: int
        last_caught_up_timestamp: int
        def __init__(
            self,
            *,
            replica_id: int = 0,
            replica_directory_id: bytes = ...,
            log_end_offset: int = 0,
            last_fetch_timestamp: int = -1,
            last_caught_up_timestamp: int = -1,
        ) -> None: ...

    class PartitionData(Struct):
        partition_index: int
        error_code: int
        error_message: str | None
        leader_id: int
        leader_epoch: int
        high_watermark: int
        current_voters: list[DescribeQuorumResponse.ReplicaState]
        observers: list[DescribeQuorumResponse.ReplicaState]
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = "",
            leader_id: int = 0,
            leader_epoch: int = 0,
            high_watermark: int = 0,
            current_voters: list[DescribeQuorumResponse.ReplicaState] = ...,
            observers: list[DescribeQuorumResponse.ReplicaState] = ...,
        ) -> None: ...

    class TopicData(Struct):
        topic_name: str
        partitions: list[DescribeQuorumResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[DescribeQuorumResponse.PartitionData] = ...,
        ) -> None: ...

    class Listener(Struct):
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
        ) -> None: ...

    class Node(Struct):
        node_id: int
        listeners: list[DescribeQuorumResponse.Listener]
        def __init__(
            self,
            *,
            node_id: int = 0,
            listeners: list[DescribeQuorumResponse.Listener] = ...,
        ) -> None: ...

    error_code: int
    error_message: str | None
    topics: list[DescribeQuorumResponse.TopicData]
    nodes: list[DescribeQuorumResponse.Node]
    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[DescribeQuorumResponse.TopicData] = ...,
        nodes: list[DescribeQuorumResponse.Node] = ...,
    ) -> None: ...

class DescribeShareGroupOffsetsRequest(Message):
    # request v0-1, flexible from 0
    API_KEY: ClassVar[Literal[90]]
    class DescribeShareGroupOffsetsRequestTopic(Struct):
        topic_name: str
        partitions: list[int]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[int] = ...,
        ) -> None: ...

    class DescribeShareGroupOffsetsRequestGroup(Struct):
        group_id: str
        topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None
        def __init__(
            self,
            *,
            group_id: str = "",
            topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None = ...,
        ) -> None: ...

    groups: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup]
    def __init__(
        self,
        *,
        groups: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup] = ...,
    ) -> None: ...

class DescribeShareGroupOffsetsResponse(Message):
    # response v0-1, flexible from 0
    API_KEY: ClassVar[Literal[90]]
    class DescribeShareGroupOffsetsResponsePartition(Struct):
        partition_index: int
        start_offset: int
        leader_epoch: int
        lag: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition_index: int = 0,
            start_offset: int = 0,
            leader_epoch: int = 0,
            lag: int = -1,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None: ...

    class DescribeShareGroupOffsetsResponseTopic(Struct):
        topic_name: str
        topic_id: bytes
        partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition]
        def __init__(
            self,
            *,
            topic_name: str = "",
            topic_id: bytes = ...,
            partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition] = ...,
        ) -> None: ...

    class DescribeShareGroupOffsetsResponseGroup(Struct):
        group_id: str
        topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic]
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            group_id: str = "",
            topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = ...,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None: ...

    throttle_time_ms: int
    groups: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup] = ...,
    ) -> None: ...

class DescribeTopicPartitionsRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[75]]
    class TopicRequest(Struct):
        name: str
        def __init__(
            self,
            *,
            name: str = "",
        ) -> None: ...

    class Cursor(Struct):
        topic_name: str
        partition_index: int
        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
        ) -> None: ...

    topics: list[DescribeTopicPartitionsRequest.TopicRequest]
    response_partition_limit: int
    cursor: DescribeTopicPartitionsRequest.Cursor | None
    def __init__(
        self,
        *,
        topics: list[DescribeTopicPartitionsRequest.TopicRequest] = ...,
        response_partition_limit: int = 2000,
        cursor: DescribeTopicPartitionsRequest.Cursor | None = None,
    ) -> None: ...

class DescribeTopicPartitionsResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[75]]
    class DescribeTopicPartitionsResponsePartition(Struct):
        error_code: int
        partition_index: int
        leader_id: int
        leader_epoch: int
        replica_nodes: list[int]
        isr_nodes: list[int]
        eligible_leader_replicas: list[int] | None
        last_known_elr: list[int] | None
        offline_replicas: list[int]
        def __init__(
            self,
            *,
            error_code: int = 0,
            partition_index: int = 0,
            leader_id: int = 0,
            leader_epoch: int = -1,
            replica_nodes: list[int] = ...,
            isr_nodes: list[int] = ...,
            eligible_leader_replicas: list[int] | None = None,
            last_known_elr: list[int] | None = None,
            offline_replicas: list[int] = ...,
        ) -> None: ...

    class DescribeTopicPartitionsResponseTopic(Struct):
        error_code: int
        name: str | None
        topic_id: bytes
        is_internal: bool
        partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition]
        topic_authorized_operations: int
        def __init__(
            self,
            *,
            error_code: int = 0,
            name: str | None = "",
            topic_id: bytes = ...,
            is_internal: bool = False,
            partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition] = ...,
            topic_authorized_operations: int = -2147483648,
        ) -> None: ...

    class Cursor(Struct):
        topic_name: str
        partition_index: int
        def __init__(
            self,
            *,
            topic_name: str = "",
            partition_index: int = 0,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic]
    next_cursor: DescribeTopicPartitionsResponse.Cursor | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = ...,
        next_cursor: DescribeTopicPartitionsResponse.Cursor | None = None,
    ) -> None: ...

class DescribeTransactionsRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[65]]
    transactional_ids: list[str]
    def __init__(
        self,
        *,
        transactional_ids: list[str] = ...,
    ) -> None: ...

class DescribeTransactionsResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[65]]
    class TopicData(Struct):
        topic: str
        partitions: list[int]
        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[int] = ...,
        ) -> None: ...

    class TransactionState(Struct):
        error_code: int
        transactional_id: str
        transaction_state: str
        transaction_timeout_ms: int
        transaction_start_time_ms: int
        producer_id: int
        producer_epoch: int
        topics: list[DescribeTransactionsResponse.TopicData]
        def __init__(
            self,
            *,
            error_code: int = 0,
            transactional_id: str = "",
            transaction_state: str = "",
            transaction_timeout_ms: int = 0,
            transaction_start_time_ms: int = 0,
            producer_id: int = 0,
            producer_epoch: int = 0,
            topics: list[DescribeTransactionsResponse.TopicData] = ...,
        ) -> None: ...

    throttle_time_ms: int
    transaction_states: list[DescribeTransactionsResponse.TransactionState]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        transaction_states: list[DescribeTransactionsResponse.TransactionState] = ...,
    ) -> None: ...

class DescribeUserScramCredentialsRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[50]]
    class UserName(Struct):
        name: str
        def __init__(
            self,
            *,
            name: str = "",
        ) -> None: ...

    users: list[DescribeUserScramCredentialsRequest.UserName] | None
    def __init__(
        self,
        *,
        users: list[DescribeUserScramCredentialsRequest.UserName] | None = ...,
    ) -> None: ...

class DescribeUserScramCredentialsResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[50]]
    class CredentialInfo(Struct):
        mechanism: int
        iterations: int
        def __init__(
            self,
            *,
            mechanism: int = 0,
            iterations: int = 0,
        ) -> None: ...

    class DescribeUserScramCredentialsResult(Struct):
        user: str
        error_code: int
        error_message: str | None
        credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo]
        def __init__(
            self,
            *,
            user: str = "",
            error_code: int = 0,
            error_message: str | None = "",
            credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: list[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult] = ...,
    ) -> None: ...

class ElectLeadersRequest(Message):
    # request v0-2, flexible from 2
    API_KEY: ClassVar[Literal[43]]
    class TopicPartitions(Struct):
        topic: str
        partitions: list[int]
        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[int] = ...,
        ) -> None: ...

    election_type: int
    topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None
    timeout_ms: int
    def __init__(
        self,
        *,
        election_type: int = 0,
        topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None = ...,
        timeout_ms: int = 60000,
    ) -> None: ...

class ElectLeadersResponse(Message):
    # response v0-2, flexible from 2
    API_KEY: ClassVar[Literal[43]]
    class PartitionResult(Struct):
        partition_id: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition_id: int = 0,
            error_code: int = 0,
            error_message: str | None = "",
        ) -> None: ...

    class ReplicaElectionResult(Struct):
        topic: str
        partition_result: list[ElectLeadersResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic: str = "",
            partition_result: list[ElectLeadersResponse.PartitionResult] = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult] = ...,
    ) -> None: ...

class EndQuorumEpochRequest(Message):
    # request v0-1, flexible from 1
    API_KEY: ClassVar[Literal[54]]
    class ReplicaInfo(Struct):
        candidate_id: int
        candidate_directory_id: bytes
        def __init__(
            self,
            *,
            candidate_id: int = 0,
            candidate_directory_id: bytes = ...,
        ) -> None: ...

    class PartitionData(Struct):
        partition_index: int
        leader_id: int
        leader_epoch: int
        preferred_successors: list[int]
        preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo]
        def __init__(
            self,
            *,
            partition_index: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            preferred_successors: list[int] = ...,
            preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo] = ...,
        ) -> None: ...

    class TopicData(Struct):
        topic_name: str
        partitions: list[EndQuorumEpochRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[EndQuorumEpochRequest.PartitionData] = ...,
        ) -> None: ...

    class LeaderEndpoint(Struct):
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
        ) -> None: ...

    cluster_id: str | None
    topics: list[EndQuorumEpochRequest.TopicData]
    leader_endpoints: list[EndQuorumEpochRequest.LeaderEndpoint]
    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        topics: list[EndQuorumEpochRequest.TopicData] = ...,
        leader_endpoints: list[EndQuorumEpochRequest.LeaderEndpoint] = ...,
    ) -> None: ...

class EndQuorumEpochResponse(Message):
    # response v0-1, flexible from 1
    API_KEY: ClassVar[Literal[54]]
    class PartitionData(Struct):
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
        ) -> None: ...

    class TopicData(Struct):
        topic_name: str
        partitions: list[EndQuorumEpochResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[EndQuorumEpochResponse.PartitionData] = ...,
        ) -> None: ...

    class NodeEndpoint(Struct):
        node_id: int
        host: str
        port: int
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
        ) -> None: ...

    error_code: int
    topics: list[EndQuorumEpochResponse.TopicData]
    node_endpoints: list[EndQuorumEpochResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[EndQuorumEpochResponse.TopicData] = ...,
        node_endpoints: list[EndQuorumEpochResponse.NodeEndpoint] = ...,
    ) -> None: ...

class EndTransactionRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[24]]
    def __init__(self) -> None: ...

class EndTxnMarker(Message):
    # data v0-0, flexible from None
    API_KEY: ClassVar[None]
    coordinator_epoch: int
    def __init__(
        self,
        *,
        coordinator_epoch: int = 0,
    ) -> None: ...

class EndTxnRequest(Message):
    # request v0-5, flexible from 3
    API_KEY: ClassVar[Literal[26]]
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
    ) -> None: ...

class EndTxnResponse(Message):
    # response v0-5, flexible from 3
    API_KEY: ClassVar[Literal[26]]
    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None: ...

class EnvelopeRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[58]]
    request_data: bytes
    request_principal: bytes | None
    client_host_address: bytes
    def __init__(
        self,
        *,
        request_data: bytes = b"",
        request_principal: bytes | None = b"",
        client_host_address: bytes = b"",
    ) -> None: ...

class EnvelopeResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[58]]
    response_data: bytes | None
    error_code: int
    def __init__(
        self,
        *,
        response_data: bytes | None = None,
        error_code: int = 0,
    ) -> None: ...

class ExpireDelegationTokenRequest(Message):
    # request v1-2, flexible from 2
    API_KEY: ClassVar[Literal[40]]
    hmac: bytes
    expiry_time_period_ms: int
    def __init__(
        self,
        *,
        hmac: bytes = b"",
        expiry_time_period_ms: int = 0,
    ) -> None: ...

class ExpireDelegationTokenResponse(Message):
    # response v1-2, flexible from 2
    API_KEY: ClassVar[Literal[40]]
    error_code: int
    expiry_timestamp_ms: int
    throttle_time_ms: int
    def __init__(
        self,
        *,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
    ) -> None: ...

class FeatureLevelRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[12]]
    name: str
    feature_level: int
    def __init__(
        self,
        *,
        name: str = "",
        feature_level: int = 0,
    ) -> None: ...

class FenceBrokerRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[7]]
    id: int
    epoch: int
    def __init__(
        self,
        *,
        id: int = 0,
        epoch: int = 0,
    ) -> None: ...

class FetchRequest(Message):
    # request v4-18, flexible from 12
    API_KEY: ClassVar[Literal[1]]
    class ReplicaState(Struct):
        replica_id: int
        replica_epoch: int
        def __init__(
            self,
            *,
            replica_id: int = -1,
            replica_epoch: int = -1,
        ) -> None: ...

    class FetchPartition(Struct):
        partition: int
        current_leader_epoch: int
        fetch_offset: int
        last_fetched_epoch: int
        log_start_offset: int
        partition_max_bytes: int
        replica_directory_id: bytes
        high_watermark: int
        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = -1,
            fetch_offset: int = 0,
            last_fetched_epoch: int = -1,
            log_start_offset: int = -1,
            partition_max_bytes: int = 0,
            replica_directory_id: bytes = ...,
            high_watermark: int = 9223372036854775807,
        ) -> None: ...

    class FetchTopic(Struct):
        topic: str
        topic_id: bytes
        partitions: list[FetchRequest.FetchPartition]
        def __init__(
            self,
            *,
            topic: str = "",
            topic_id: bytes = ...,
            partitions: list[FetchRequest.FetchPartition] = ...,
        ) -> None: ...

    class ForgottenTopic(Struct):
        topic: str
        topic_id: bytes
        partitions: list[int]
        def __init__(
            self,
            *,
            topic: str = "",
            topic_id: bytes = ...,
            partitions: list[int] = ...,
        ) -> None: ...

    cluster_id: str | None
    replica_id: int
    replica_state: FetchRequest.ReplicaState
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[FetchRequest.FetchTopic]
    forgotten_topics_data: list[FetchRequest.ForgottenTopic]
    rack_id: str
    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: FetchRequest.ReplicaState = ...,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchRequest.FetchTopic] = ...,
        forgotten_topics_data: list[FetchRequest.ForgottenTopic] = ...,
        rack_id: str = "",
    ) -> None: ...

class FetchResponse(Message):
    # response v4-18, flexible from 12
    API_KEY: ClassVar[Literal[1]]
    class EpochEndOffset(Struct):
        epoch: int
        end_offset: int
        def __init__(
            self,
            *,
            epoch: int = -1,
            end_offset: int = -1,
        ) -> None: ...

    class LeaderIdAndEpoch(Struct):
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            leader_id: int = -1,
            leader_epoch: int = -1,
        ) -> None: ...

    class SnapshotId(Struct):
        end_offset: int
        epoch: int
        def __init__(
            self,
            *,
            end_offset: int = -1,
            epoch: int = -1,
        ) -> None: ...

    class AbortedTransaction(Struct):
        producer_id: int
        first_offset: int
        def __init__(
            self,
            *,
            producer_id: int = 0,
            first_offset: int = 0,
        ) -> None: ...

    class PartitionData(Struct):
        partition_index: int
        error_code: int
        high_watermark: int
        last_stable_offset: int
        log_start_offset: int
        diverging_epoch: FetchResponse.EpochEndOffset
        current_leader: FetchResponse.LeaderIdAndEpoch
        snapshot_id: FetchResponse.SnapshotId
        aborted_transactions: list[FetchResponse.AbortedTransaction] | None
        preferred_read_replica: int
        records: Records | None
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            high_watermark: int = 0,
            last_stable_offset: int = -1,
            log_start_offset: int = -1,
            diverging_epoch: FetchResponse.EpochEndOffset = ...,
            current_leader: FetchResponse.LeaderIdAndEpoch = ...,
            snapshot_id: FetchResponse.SnapshotId = ...,
            aborted_transactions: list[FetchResponse.AbortedTransaction] | None = ...,
            preferred_read_replica: int = -1,
            records: Records | None = None,
        ) -> None: ...

    class FetchableTopicResponse(Struct):
        topic: str
        topic_id: bytes
        partitions: list[FetchResponse.PartitionData]
        def __init__(
            self,
            *,
            topic: str = "",
            topic_id: bytes = ...,
            partitions: list[FetchResponse.PartitionData] = ...,
        ) -> None: ...

    class NodeEndpoint(Struct):
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    session_id: int
    responses: list[FetchResponse.FetchableTopicResponse]
    node_endpoints: list[FetchResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchResponse.FetchableTopicResponse] = ...,
        node_endpoints: list[FetchResponse.NodeEndpoint] = ...,
    ) -> None: ...

class FetchSnapshotRequest(Message):
    # request v0-1, flexible from 0
    API_KEY: ClassVar[Literal[59]]
    class SnapshotId(Struct):
        end_offset: int
        epoch: int
        def __init__(
            self,
            *,
            end_offset: int = 0,
            epoch: int = 0,
        ) -> None: ...

    class PartitionSnapshot(Struct):
        partition: int
        current_leader_epoch: int
        snapshot_id: FetchSnapshotRequest.SnapshotId
        position: int
        replica_directory_id: bytes
        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = 0,
            snapshot_id: FetchSnapshotRequest.SnapshotId = ...,
            position: int = 0,
            replica_directory_id: bytes = ...,
        ) -> None: ...

    class TopicSnapshot(Struct):
        name: str
        partitions: list[FetchSnapshotRequest.PartitionSnapshot]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[FetchSnapshotRequest.PartitionSnapshot] = ...,
        ) -> None: ...

    cluster_id: str | None
    replica_id: int
    max_bytes: int
    topics: list[FetchSnapshotRequest.TopicSnapshot]
    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        max_bytes: int = 2147483647,
        topics: list[FetchSnapshotRequest.TopicSnapshot] = ...,
    ) -> None: ...

class FetchSnapshotResponse(Message):
    # response v0-1, flexible from 0
    API_KEY: ClassVar[Literal[59]]
    class SnapshotId(Struct):
        end_offset: int
        epoch: int
        def __init__(
            self,
            *,
            end_offset: int = 0,
            epoch: int = 0,
        ) -> None: ...

    class LeaderIdAndEpoch(Struct):
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            leader_id: int = 0,
            leader_epoch: int = 0,
        ) -> None: ...

    class PartitionSnapshot(Struct):
        index: int
        error_code: int
        snapshot_id: FetchSnapshotResponse.SnapshotId
        current_leader: FetchSnapshotResponse.LeaderIdAndEpoch
        size: int
        position: int
        unaligned_records: Records | None
        def __init__(
            self,
            *,
            index: int = 0,
            error_code: int = 0,
            snapshot_id: FetchSnapshotResponse.SnapshotId = ...,
            current_leader: FetchSnapshotResponse.LeaderIdAndEpoch = ...,
            size: int = 0,
            position: int = 0,
            unaligned_records: Records | None = None,
        ) -> None: ...

    class TopicSnapshot(Struct):
        name: str
        partitions: list[FetchSnapshotResponse.PartitionSnapshot]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[FetchSnapshotResponse.PartitionSnapshot] = ...,
        ) -> None: ...

    class NodeEndpoint(Struct):
        node_id: int
        host: str
        port: int
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    topics: list[FetchSnapshotResponse.TopicSnapshot]
    node_endpoints: list[FetchSnapshotResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[FetchSnapshotResponse.TopicSnapshot] = ...,
        node_endpoints: list[FetchSnapshotResponse.NodeEndpoint] = ...,
    ) -> None: ...

class FindCoordinatorRequest(Message):
    # request v0-6, flexible from 3
    API_KEY: ClassVar[Literal[10]]
    key: str
    key_type: int
    coordinator_keys: list[str]
    def __init__(
        self,
        *,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: list[str] = ...,
    ) -> None: ...

class FindCoordinatorResponse(Message):
    # response v0-6, flexible from 3
    API_KEY: ClassVar[Literal[10]]
    class Coordinator(Struct):
        key: str
        node_id: int
        host: str
        port: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            key: str = "",
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            error_code: int = 0,
            error_message: str | None = "",
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    node_id: int
    host: str
    port: int
    coordinators: list[FindCoordinatorResponse.Coordinator]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: list[FindCoordinatorResponse.Coordinator] = ...,
    ) -> None: ...

class GetTelemetrySubscriptionsRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[71]]
    client_instance_id: bytes
    def __init__(
        self,
        *,
        client_instance_id: bytes = ...,
    ) -> None: ...

class GetTelemetrySubscriptionsResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[71]]
    throttle_time_ms: int
    error_code: int
    client_instance_id: bytes
    subscription_id: int
    accepted_compression_types: list[int]
    push_interval_ms: int
    telemetry_max_bytes: int
    delta_temporality: bool
    requested_metrics: list[str]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: bytes = ...,
        subscription_id: int = 0,
        accepted_compression_types: list[int] = ...,
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: list[str] = ...,
    ) -> None: ...

class GroupMetadataKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[2]]
    group: str
    def __init__(
        self,
        *,
        group: str = "",
    ) -> None: ...

class GroupMetadataValue(Message):
    # coordinator-value v0-4, flexible from 4
    API_KEY: ClassVar[Literal[2]]
    class MemberMetadata(Struct):
        member_id: str
        group_instance_id: str | None
        client_id: str
        client_host: str
        rebalance_timeout: int
        session_timeout: int
        subscription: bytes
        assignment: bytes
        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            client_id: str = "",
            client_host: str = "",
            rebalance_timeout: int = -1,
            session_timeout: int = 0,
            subscription: bytes = b"",
            assignment: bytes = b"",
        ) -> None: ...

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int
    members: list[GroupMetadataValue.MemberMetadata]
    def __init__(
        self,
        *,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = "",
        leader: str | None = "",
        current_state_timestamp: int = -1,
        members: list[GroupMetadataValue.MemberMetadata] = ...,
    ) -> None: ...

class HeartbeatRequest(Message):
    # request v0-4, flexible from 4
    API_KEY: ClassVar[Literal[12]]
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None: ...

class HeartbeatResponse(Message):
    # response v0-4, flexible from 4
    API_KEY: ClassVar[Literal[12]]
    throttle_time_ms: int
    error_code: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None: ...

class IncrementalAlterConfigsRequest(Message):
    # request v0-1, flexible from 1
    API_KEY: ClassVar[Literal[44]]
    class AlterableConfig(Struct):
        name: str
        config_operation: int
        value: str | None
        def __init__(
            self,
            *,
            name: str = "",
            config_operation: int = 0,
            value: str | None = "",
        ) -> None: ...

    class AlterConfigsResource(Struct):
        resource_type: int
        resource_name: str
        configs: list[IncrementalAlterConfigsRequest.AlterableConfig]
        def __init__(
            self,
            *,
            resource_type: int = 0,
            resource_name: str = "",
            configs: list[IncrementalAlterConfigsRequest.AlterableConfig] = ...,
        ) -> None: ...

    resources: list[IncrementalAlterConfigsRequest.AlterConfigsResource]
    validate_only: bool
    def __init__(
        self,
        *,
        resources: list[IncrementalAlterConfigsRequest.AlterConfigsResource] = ...,
        validate_only: bool = False,
    ) -> None: ...

class IncrementalAlterConfigsResponse(Message):
    # response v0-1, flexible from 1
    API_KEY: ClassVar[Literal[44]]
    class AlterConfigsResourceResponse(Struct):
        error_code: int
        error_message: str | None
        resource_type: int
        resource_name: str
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = "",
            resource_type: int = 0,
            resource_name: str = "",
        ) -> None: ...

    throttle_time_ms: int
    responses: list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse] = ...,
    ) -> None: ...

class InitProducerIdRequest(Message):
    # request v0-6, flexible from 2
    API_KEY: ClassVar[Literal[22]]
    transactional_id: str | None
    transaction_timeout_ms: int
    producer_id: int
    producer_epoch: int
    enable2_pc: bool
    keep_prepared_txn: bool
    def __init__(
        self,
        *,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        enable2_pc: bool = False,
        keep_prepared_txn: bool = False,
    ) -> None: ...

class InitProducerIdResponse(Message):
    # response v0-6, flexible from 2
    API_KEY: ClassVar[Literal[22]]
    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int
    ongoing_txn_producer_id: int
    ongoing_txn_producer_epoch: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1,
        ongoing_txn_producer_epoch: int = -1,
    ) -> None: ...

class InitializeShareGroupStateRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[83]]
    class PartitionData(Struct):
        partition: int
        state_epoch: int
        start_offset: int
        def __init__(
            self,
            *,
            partition: int = 0,
            state_epoch: int = 0,
            start_offset: int = 0,
        ) -> None: ...

    class InitializeStateData(Struct):
        topic_id: bytes
        partitions: list[InitializeShareGroupStateRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[InitializeShareGroupStateRequest.PartitionData] = ...,
        ) -> None: ...

    group_id: str
    topics: list[InitializeShareGroupStateRequest.InitializeStateData]
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[InitializeShareGroupStateRequest.InitializeStateData] = ...,
    ) -> None: ...

class InitializeShareGroupStateResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[83]]
    class PartitionResult(Struct):
        partition: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None: ...

    class InitializeStateResult(Struct):
        topic_id: bytes
        partitions: list[InitializeShareGroupStateResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[InitializeShareGroupStateResponse.PartitionResult] = ...,
        ) -> None: ...

    results: list[InitializeShareGroupStateResponse.InitializeStateResult]
    def __init__(
        self,
        *,
        results: list[InitializeShareGroupStateResponse.InitializeStateResult] = ...,
    ) -> None: ...

class JoinGroupRequest(Message):
    # request v0-9, flexible from 6
    API_KEY: ClassVar[Literal[11]]
    class JoinGroupRequestProtocol(Struct):
        name: str
        metadata: bytes
        def __init__(
            self,
            *,
            name: str = "",
            metadata: bytes = b"",
        ) -> None: ...

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: list[JoinGroupRequest.JoinGroupRequestProtocol]
    reason: str | None
    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequest.JoinGroupRequestProtocol] = ...,
        reason: str | None = None,
    ) -> None: ...

class JoinGroupResponse(Message):
    # response v0-9, flexible from 6
    API_KEY: ClassVar[Literal[11]]
    class JoinGroupResponseMember(Struct):
        member_id: str
        group_instance_id: str | None
        metadata: bytes
        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            metadata: bytes = b"",
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    skip_assignment: bool
    member_id: str
    members: list[JoinGroupResponse.JoinGroupResponseMember]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponse.JoinGroupResponseMember] = ...,
    ) -> None: ...

class KRaftVersionRecord(Message):
    # data v0-0, flexible from 0
    API_KEY: ClassVar[None]
    version: int
    k_raft_version: int
    def __init__(
        self,
        *,
        version: int = 0,
        k_raft_version: int = 0,
    ) -> None: ...

class LeaderChangeMessage(Message):
    # data v0-1, flexible from 0
    API_KEY: ClassVar[None]
    class Voter(Struct):
        voter_id: int
        voter_directory_id: bytes
        def __init__(
            self,
            *,
            voter_id: int = 0,
            voter_directory_id: bytes = ...,
        ) -> None: ...

    version: int
    leader_id: int
    voters: list[LeaderChangeMessage.Voter]
    granting_voters: list[LeaderChangeMessage.Voter]
    def __init__(
        self,
        *,
        version: int = 0,
        leader_id: int = 0,
        voters: list[LeaderChangeMessage.Voter] = ...,
        granting_voters: list[LeaderChangeMessage.Voter] = ...,
    ) -> None: ...

class LeaveGroupRequest(Message):
    # request v0-5, flexible from 4
    API_KEY: ClassVar[Literal[13]]
    class MemberIdentity(Struct):
        member_id: str
        group_instance_id: str | None
        reason: str | None
        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = None,
            reason: str | None = None,
        ) -> None: ...

    group_id: str
    member_id: str
    members: list[LeaveGroupRequest.MemberIdentity]
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        members: list[LeaveGroupRequest.MemberIdentity] = ...,
    ) -> None: ...

class LeaveGroupResponse(Message):
    # response v0-5, flexible from 4
    API_KEY: ClassVar[Literal[13]]
    class MemberResponse(Struct):
        member_id: str
        group_instance_id: str | None
        error_code: int
        def __init__(
            self,
            *,
            member_id: str = "",
            group_instance_id: str | None = "",
            error_code: int = 0,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    members: list[LeaveGroupResponse.MemberResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[LeaveGroupResponse.MemberResponse] = ...,
    ) -> None: ...

class LegacyOffsetCommitKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[0]]
    group: str
    topic: str
    partition: int
    def __init__(
        self,
        *,
        group: str = "",
        topic: str = "",
        partition: int = 0,
    ) -> None: ...

class LegacyOffsetCommitValue(Message):
    # coordinator-value v0-0, flexible from None
    API_KEY: ClassVar[Literal[0]]
    offset: int
    metadata: str
    commit_timestamp: int
    def __init__(
        self,
        *,
        offset: int = 0,
        metadata: str = "",
        commit_timestamp: int = 0,
    ) -> None: ...

class ListConfigResourcesRequest(Message):
    # request v0-1, flexible from 0
    API_KEY: ClassVar[Literal[74]]
    resource_types: list[int]
    def __init__(
        self,
        *,
        resource_types: list[int] = ...,
    ) -> None: ...

class ListConfigResourcesResponse(Message):
    # response v0-1, flexible from 0
    API_KEY: ClassVar[Literal[74]]
    class ConfigResource(Struct):
        resource_name: str
        resource_type: int
        def __init__(
            self,
            *,
            resource_name: str = "",
            resource_type: int = 16,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    config_resources: list[ListConfigResourcesResponse.ConfigResource]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ListConfigResourcesResponse.ConfigResource] = ...,
    ) -> None: ...

class ListGroupsRequest(Message):
    # request v0-5, flexible from 3
    API_KEY: ClassVar[Literal[16]]
    states_filter: list[str]
    types_filter: list[str]
    def __init__(
        self,
        *,
        states_filter: list[str] = ...,
        types_filter: list[str] = ...,
    ) -> None: ...

class ListGroupsResponse(Message):
    # response v0-5, flexible from 3
    API_KEY: ClassVar[Literal[16]]
    class ListedGroup(Struct):
        group_id: str
        protocol_type: str
        group_state: str
        group_type: str
        def __init__(
            self,
            *,
            group_id: str = "",
            protocol_type: str = "",
            group_state: str = "",
            group_type: str = "",
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    groups: list[ListGroupsResponse.ListedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListGroupsResponse.ListedGroup] = ...,
    ) -> None: ...

class ListOffsetsRequest(Message):
    # request v1-11, flexible from 6
    API_KEY: ClassVar[Literal[2]]
    class ListOffsetsPartition(Struct):
        partition_index: int
        current_leader_epoch: int
        timestamp: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            current_leader_epoch: int = -1,
            timestamp: int = 0,
        ) -> None: ...

    class ListOffsetsTopic(Struct):
        name: str
        partitions: list[ListOffsetsRequest.ListOffsetsPartition]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[ListOffsetsRequest.ListOffsetsPartition] = ...,
        ) -> None: ...

    replica_id: int
    isolation_level: int
    topics: list[ListOffsetsRequest.ListOffsetsTopic]
    timeout_ms: int
    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsRequest.ListOffsetsTopic] = ...,
        timeout_ms: int = 0,
    ) -> None: ...

class ListOffsetsResponse(Message):
    # response v1-11, flexible from 6
    API_KEY: ClassVar[Literal[2]]
    class ListOffsetsPartitionResponse(Struct):
        partition_index: int
        error_code: int
        timestamp: int
        offset: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            timestamp: int = -1,
            offset: int = -1,
            leader_epoch: int = -1,
        ) -> None: ...

    class ListOffsetsTopicResponse(Struct):
        name: str
        partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = ...,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[ListOffsetsResponse.ListOffsetsTopicResponse]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsResponse.ListOffsetsTopicResponse] = ...,
    ) -> None: ...

class ListPartitionReassignmentsRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[46]]
    class ListPartitionReassignmentsTopics(Struct):
        name: str
        partition_indexes: list[int]
        def __init__(
            self,
            *,
            name: str = "",
            partition_indexes: list[int] = ...,
        ) -> None: ...

    timeout_ms: int
    topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None
    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None = None,
    ) -> None: ...

class ListPartitionReassignmentsResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[46]]
    class OngoingPartitionReassignment(Struct):
        partition_index: int
        replicas: list[int]
        adding_replicas: list[int]
        removing_replicas: list[int]
        def __init__(
            self,
            *,
            partition_index: int = 0,
            replicas: list[int] = ...,
            adding_replicas: list[int] = ...,
            removing_replicas: list[int] = ...,
        ) -> None: ...

    class OngoingTopicReassignment(Struct):
        name: str
        partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment] = ...,
    ) -> None: ...

class ListTransactionsRequest(Message):
    # request v0-2, flexible from 0
    API_KEY: ClassVar[Literal[66]]
    state_filters: list[str]
    producer_id_filters: list[int]
    duration_filter: int
    transactional_id_pattern: str | None
    def __init__(
        self,
        *,
        state_filters: list[str] = ...,
        producer_id_filters: list[int] = ...,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None: ...

class ListTransactionsResponse(Message):
    # response v0-2, flexible from 0
    API_KEY: ClassVar[Literal[66]]
    class TransactionState(Struct):
        transactional_id: str
        producer_id: int
        transaction_state: str
        def __init__(
            self,
            *,
            transactional_id: str = "",
            producer_id: int = 0,
            transaction_state: str = "",
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    unknown_state_filters: list[str]
    transaction_states: list[ListTransactionsResponse.TransactionState]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] = ...,
        transaction_states: list[ListTransactionsResponse.TransactionState] = ...,
    ) -> None: ...

class MetadataRequest(Message):
    # request v0-13, flexible from 9
    API_KEY: ClassVar[Literal[3]]
    class MetadataRequestTopic(Struct):
        topic_id: bytes
        name: str | None
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            name: str | None = "",
        ) -> None: ...

    topics: list[MetadataRequest.MetadataRequestTopic] | None
    allow_auto_topic_creation: bool
    include_cluster_authorized_operations: bool
    include_topic_authorized_operations: bool
    def __init__(
        self,
        *,
        topics: list[MetadataRequest.MetadataRequestTopic] | None = ...,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None: ...

class MetadataResponse(Message):
    # response v0-13, flexible from 9
    API_KEY: ClassVar[Literal[3]]
    class MetadataResponseBroker(Struct):
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
        ) -> None: ...

    class MetadataResponsePartition(Struct):
        error_code: int
        partition_index: int
        leader_id: int
        leader_epoch: int
        replica_nodes: list[int]
        isr_nodes: list[int]
        offline_replicas: list[int]
        def __init__(
            self,
            *,
            error_code: int = 0,
            partition_index: int = 0,
            leader_id: int = 0,
            leader_epoch: int = -1,
            replica_nodes: list[int] = ...,
            isr_nodes: list[int] = ...,
            offline_replicas: list[int] = ...,
        ) -> None: ...

    class MetadataResponseTopic(Struct):
        error_code: int
        name: str | None
        topic_id: bytes
        is_internal: bool
        partitions: list[MetadataResponse.MetadataResponsePartition]
        topic_authorized_operations: int
        def __init__(
            self,
            *,
            error_code: int = 0,
            name: str | None = "",
            topic_id: bytes = ...,
            is_internal: bool = False,
            partitions: list[MetadataResponse.MetadataResponsePartition] = ...,
            topic_authorized_operations: int = -2147483648,
        ) -> None: ...

    throttle_time_ms: int
    brokers: list[MetadataResponse.MetadataResponseBroker]
    cluster_id: str | None
    controller_id: int
    topics: list[MetadataResponse.MetadataResponseTopic]
    cluster_authorized_operations: int
    error_code: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponse.MetadataResponseBroker] = ...,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponse.MetadataResponseTopic] = ...,
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
    ) -> None: ...

class NoOpRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[20]]
    def __init__(self) -> None: ...

class OffsetCommitKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[1]]
    group: str
    topic: str
    partition: int
    def __init__(
        self,
        *,
        group: str = "",
        topic: str = "",
        partition: int = 0,
    ) -> None: ...

class OffsetCommitRequest(Message):
    # request v2-10, flexible from 8
    API_KEY: ClassVar[Literal[8]]
    class OffsetCommitRequestPartition(Struct):
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        committed_metadata: str | None
        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            committed_metadata: str | None = "",
        ) -> None: ...

    class OffsetCommitRequestTopic(Struct):
        name: str
        topic_id: bytes
        partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition]
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ...,
            partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = ...,
        ) -> None: ...

    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    retention_time_ms: int
    topics: list[OffsetCommitRequest.OffsetCommitRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: list[OffsetCommitRequest.OffsetCommitRequestTopic] = ...,
    ) -> None: ...

class OffsetCommitResponse(Message):
    # response v2-10, flexible from 8
    API_KEY: ClassVar[Literal[8]]
    class OffsetCommitResponsePartition(Struct):
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
        ) -> None: ...

    class OffsetCommitResponseTopic(Struct):
        name: str
        topic_id: bytes
        partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition]
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ...,
            partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = ...,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[OffsetCommitResponse.OffsetCommitResponseTopic]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetCommitResponse.OffsetCommitResponseTopic] = ...,
    ) -> None: ...

class OffsetCommitValue(Message):
    # coordinator-value v0-4, flexible from 4
    API_KEY: ClassVar[Literal[1]]
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: bytes
    def __init__(
        self,
        *,
        offset: int = 0,
        leader_epoch: int = -1,
        metadata: str = "",
        commit_timestamp: int = 0,
        expire_timestamp: int = -1,
        topic_id: bytes = ...,
    ) -> None: ...

class OffsetDeleteRequest(Message):
    # request v0-0, flexible from None
    API_KEY: ClassVar[Literal[47]]
    class OffsetDeleteRequestPartition(Struct):
        partition_index: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
        ) -> None: ...

    class OffsetDeleteRequestTopic(Struct):
        name: str
        partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = ...,
        ) -> None: ...

    group_id: str
    topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic] = ...,
    ) -> None: ...

class OffsetDeleteResponse(Message):
    # response v0-0, flexible from None
    API_KEY: ClassVar[Literal[47]]
    class OffsetDeleteResponsePartition(Struct):
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
        ) -> None: ...

    class OffsetDeleteResponseTopic(Struct):
        name: str
        partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = ...,
        ) -> None: ...

    error_code: int
    throttle_time_ms: int
    topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic]
    def __init__(
        self,
        *,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic] = ...,
    ) -> None: ...

class OffsetFetchRequest(Message):
    # request v1-10, flexible from 6
    API_KEY: ClassVar[Literal[9]]
    class OffsetFetchRequestTopic(Struct):
        name: str
        partition_indexes: list[int]
        def __init__(
            self,
            *,
            name: str = "",
            partition_indexes: list[int] = ...,
        ) -> None: ...

    class OffsetFetchRequestTopics(Struct):
        name: str
        topic_id: bytes
        partition_indexes: list[int]
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ...,
            partition_indexes: list[int] = ...,
        ) -> None: ...

    class OffsetFetchRequestGroup(Struct):
        group_id: str
        member_id: str | None
        member_epoch: int
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None
        def __init__(
            self,
            *,
            group_id: str = "",
            member_id: str | None = None,
            member_epoch: int = -1,
            topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = ...,
        ) -> None: ...

    group_id: str
    topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None
    groups: list[OffsetFetchRequest.OffsetFetchRequestGroup]
    require_stable: bool
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None = ...,
        groups: list[OffsetFetchRequest.OffsetFetchRequestGroup] = ...,
        require_stable: bool = False,
    ) -> None: ...

class OffsetFetchResponse(Message):
    # response v1-10, flexible from 6
    API_KEY: ClassVar[Literal[9]]
    class OffsetFetchResponsePartition(Struct):
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        metadata: str | None
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            metadata: str | None = "",
            error_code: int = 0,
        ) -> None: ...

    class OffsetFetchResponseTopic(Struct):
        name: str
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = ...,
        ) -> None: ...

    class OffsetFetchResponsePartitions(Struct):
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        metadata: str | None
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            metadata: str | None = "",
            error_code: int = 0,
        ) -> None: ...

    class OffsetFetchResponseTopics(Struct):
        name: str
        topic_id: bytes
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions]
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ...,
            partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = ...,
        ) -> None: ...

    class OffsetFetchResponseGroup(Struct):
        group_id: str
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopics]
        error_code: int
        def __init__(
            self,
            *,
            group_id: str = "",
            topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = ...,
            error_code: int = 0,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[OffsetFetchResponse.OffsetFetchResponseTopic]
    error_code: int
    groups: list[OffsetFetchResponse.OffsetFetchResponseGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopic] = ...,
        error_code: int = 0,
        groups: list[OffsetFetchResponse.OffsetFetchResponseGroup] = ...,
    ) -> None: ...

class OffsetForLeaderEpochRequest(Message):
    # request v2-4, flexible from 4
    API_KEY: ClassVar[Literal[23]]
    class OffsetForLeaderPartition(Struct):
        partition: int
        current_leader_epoch: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition: int = 0,
            current_leader_epoch: int = -1,
            leader_epoch: int = 0,
        ) -> None: ...

    class OffsetForLeaderTopic(Struct):
        topic: str
        partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition]
        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = ...,
        ) -> None: ...

    replica_id: int
    topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic]
    def __init__(
        self,
        *,
        replica_id: int = -2,
        topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = ...,
    ) -> None: ...

class OffsetForLeaderEpochResponse(Message):
    # response v2-4, flexible from 4
    API_KEY: ClassVar[Literal[23]]
    class EpochEndOffset(Struct):
        error_code: int
        partition: int
        leader_epoch: int
        end_offset: int
        def __init__(
            self,
            *,
            error_code: int = 0,
            partition: int = 0,
            leader_epoch: int = -1,
            end_offset: int = -1,
        ) -> None: ...

    class OffsetForLeaderTopicResult(Struct):
        topic: str
        partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset]
        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = ...,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult] = ...,
    ) -> None: ...

class PartitionChangeRecord(Message):
    # metadata v0-2, flexible from 0
    API_KEY: ClassVar[Literal[5]]
    partition_id: int
    topic_id: bytes
    isr: list[int] | None
    leader: int
    replicas: list[int] | None
    removing_replicas: list[int] | None
    adding_replicas: list[int] | None
    leader_recovery_state: int
    directories: list[bytes] | None
    eligible_leader_replicas: list[int] | None
    last_known_elr: list[int] | None
    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: bytes = ...,
        isr: list[int] | None = None,
        leader: int = -2,
        replicas: list[int] | None = None,
        removing_replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        leader_recovery_state: int = -1,
        directories: list[bytes] | None = ...,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
    ) -> None: ...

class PartitionRecord(Message):
    # metadata v0-2, flexible from 0
    API_KEY: ClassVar[Literal[3]]
    partition_id: int
    topic_id: bytes
    replicas: list[int]
    isr: list[int]
    removing_replicas: list[int]
    adding_replicas: list[int]
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int
    directories: list[bytes]
    eligible_leader_replicas: list[int] | None
    last_known_elr: list[int] | None
    def __init__(
        self,
        *,
        partition_id: int = -1,
        topic_id: bytes = ...,
        replicas: list[int] = ...,
        isr: list[int] = ...,
        removing_replicas: list[int] = ...,
        adding_replicas: list[int] = ...,
        leader: int = -1,
        leader_recovery_state: int = 0,
        leader_epoch: int = -1,
        partition_epoch: int = -1,
        directories: list[bytes] = ...,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
    ) -> None: ...

class ProduceRequest(Message):
    # request v3-13, flexible from 9
    API_KEY: ClassVar[Literal[0]]
    class PartitionProduceData(Struct):
        index: int
        records: Records | None
        def __init__(
            self,
            *,
            index: int = 0,
            records: Records | None = None,
        ) -> None: ...

    class TopicProduceData(Struct):
        name: str
        topic_id: bytes
        partition_data: list[ProduceRequest.PartitionProduceData]
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ...,
            partition_data: list[ProduceRequest.PartitionProduceData] = ...,
        ) -> None: ...

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topic_data: list[ProduceRequest.TopicProduceData]
    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[ProduceRequest.TopicProduceData] = ...,
    ) -> None: ...

class ProduceResponse(Message):
    # response v3-13, flexible from 9
    API_KEY: ClassVar[Literal[0]]
    class BatchIndexAndErrorMessage(Struct):
        batch_index: int
        batch_index_error_message: str | None
        def __init__(
            self,
            *,
            batch_index: int = 0,
            batch_index_error_message: str | None = None,
        ) -> None: ...

    class LeaderIdAndEpoch(Struct):
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            leader_id: int = -1,
            leader_epoch: int = -1,
        ) -> None: ...

    class PartitionProduceResponse(Struct):
        index: int
        error_code: int
        base_offset: int
        log_append_time_ms: int
        log_start_offset: int
        record_errors: list[ProduceResponse.BatchIndexAndErrorMessage]
        error_message: str | None
        current_leader: ProduceResponse.LeaderIdAndEpoch
        def __init__(
            self,
            *,
            index: int = 0,
            error_code: int = 0,
            base_offset: int = 0,
            log_append_time_ms: int = -1,
            log_start_offset: int = -1,
            record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = ...,
            error_message: str | None = None,
            current_leader: ProduceResponse.LeaderIdAndEpoch = ...,
        ) -> None: ...

    class TopicProduceResponse(Struct):
        name: str
        topic_id: bytes
        partition_responses: list[ProduceResponse.PartitionProduceResponse]
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ...,
            partition_responses: list[ProduceResponse.PartitionProduceResponse] = ...,
        ) -> None: ...

    class NodeEndpoint(Struct):
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
        ) -> None: ...

    responses: list[ProduceResponse.TopicProduceResponse]
    throttle_time_ms: int
    node_endpoints: list[ProduceResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        responses: list[ProduceResponse.TopicProduceResponse] = ...,
        throttle_time_ms: int = 0,
        node_endpoints: list[ProduceResponse.NodeEndpoint] = ...,
    ) -> None: ...

class ProducerIdsRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[15]]
    broker_id: int
    broker_epoch: int
    next_producer_id: int
    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        next_producer_id: int = 0,
    ) -> None: ...

class ProducerSnapshot(Message):
    # data v1-1, flexible from None
    API_KEY: ClassVar[None]
    class ProducerEntry(Struct):
        producer_id: int
        epoch: int
        last_sequence: int
        last_offset: int
        offset_delta: int
        timestamp: int
        coordinator_epoch: int
        current_txn_first_offset: int
        def __init__(
            self,
            *,
            producer_id: int = 0,
            epoch: int = 0,
            last_sequence: int = 0,
            last_offset: int = 0,
            offset_delta: int = 0,
            timestamp: int = 0,
            coordinator_epoch: int = 0,
            current_txn_first_offset: int = 0,
        ) -> None: ...

    crc: int
    producer_entries: list[ProducerSnapshot.ProducerEntry]
    def __init__(
        self,
        *,
        crc: int = 0,
        producer_entries: list[ProducerSnapshot.ProducerEntry] = ...,
    ) -> None: ...

class PushTelemetryRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[72]]
    client_instance_id: bytes
    subscription_id: int
    terminating: bool
    compression_type: int
    metrics: bytes
    def __init__(
        self,
        *,
        client_instance_id: bytes = ...,
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: bytes = b"",
    ) -> None: ...

class PushTelemetryResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[72]]
    throttle_time_ms: int
    error_code: int
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None: ...

class QuorumStateData(Message):
    # data v0-1, flexible from 0
    API_KEY: ClassVar[None]
    class Voter(Struct):
        voter_id: int
        def __init__(
            self,
            *,
            voter_id: int = 0,
        ) -> None: ...

    cluster_id: str
    leader_id: int
    leader_epoch: int
    voted_id: int
    voted_directory_id: bytes
    applied_offset: int
    current_voters: list[QuorumStateData.Voter] | None
    def __init__(
        self,
        *,
        cluster_id: str = "",
        leader_id: int = -1,
        leader_epoch: int = -1,
        voted_id: int = -1,
        voted_directory_id: bytes = ...,
        applied_offset: int = 0,
        current_voters: list[QuorumStateData.Voter] | None = ...,
    ) -> None: ...

class ReadShareGroupStateRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[84]]
    class PartitionData(Struct):
        partition: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition: int = 0,
            leader_epoch: int = 0,
        ) -> None: ...

    class ReadStateData(Struct):
        topic_id: bytes
        partitions: list[ReadShareGroupStateRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[ReadShareGroupStateRequest.PartitionData] = ...,
        ) -> None: ...

    group_id: str
    topics: list[ReadShareGroupStateRequest.ReadStateData]
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[ReadShareGroupStateRequest.ReadStateData] = ...,
    ) -> None: ...

class ReadShareGroupStateResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[84]]
    class StateBatch(Struct):
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_state: int = 0,
            delivery_count: int = 0,
        ) -> None: ...

    class PartitionResult(Struct):
        partition: int
        error_code: int
        error_message: str | None
        state_epoch: int
        start_offset: int
        state_batches: list[ReadShareGroupStateResponse.StateBatch]
        def __init__(
            self,
            *,
            partition: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            state_epoch: int = 0,
            start_offset: int = 0,
            state_batches: list[ReadShareGroupStateResponse.StateBatch] = ...,
        ) -> None: ...

    class ReadStateResult(Struct):
        topic_id: bytes
        partitions: list[ReadShareGroupStateResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[ReadShareGroupStateResponse.PartitionResult] = ...,
        ) -> None: ...

    results: list[ReadShareGroupStateResponse.ReadStateResult]
    def __init__(
        self,
        *,
        results: list[ReadShareGroupStateResponse.ReadStateResult] = ...,
    ) -> None: ...

class ReadShareGroupStateSummaryRequest(Message):
    # request v0-1, flexible from 0
    API_KEY: ClassVar[Literal[87]]
    class PartitionData(Struct):
        partition: int
        leader_epoch: int
        def __init__(
            self,
            *,
            partition: int = 0,
            leader_epoch: int = 0,
        ) -> None: ...

    class ReadStateSummaryData(Struct):
        topic_id: bytes
        partitions: list[ReadShareGroupStateSummaryRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[ReadShareGroupStateSummaryRequest.PartitionData] = ...,
        ) -> None: ...

    group_id: str
    topics: list[ReadShareGroupStateSummaryRequest.ReadStateSummaryData]
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[ReadShareGroupStateSummaryRequest.ReadStateSummaryData] = ...,
    ) -> None: ...

class ReadShareGroupStateSummaryResponse(Message):
    # response v0-1, flexible from 0
    API_KEY: ClassVar[Literal[87]]
    class PartitionResult(Struct):
        partition: int
        error_code: int
        error_message: str | None
        state_epoch: int
        leader_epoch: int
        start_offset: int
        delivery_complete_count: int
        def __init__(
            self,
            *,
            partition: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            state_epoch: int = 0,
            leader_epoch: int = 0,
            start_offset: int = 0,
            delivery_complete_count: int = -1,
        ) -> None: ...

    class ReadStateSummaryResult(Struct):
        topic_id: bytes
        partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult] = ...,
        ) -> None: ...

    results: list[ReadShareGroupStateSummaryResponse.ReadStateSummaryResult]
    def __init__(
        self,
        *,
        results: list[ReadShareGroupStateSummaryResponse.ReadStateSummaryResult] = ...,
    ) -> None: ...

class RegisterBrokerRecord(Message):
    # metadata v0-4, flexible from 0
    API_KEY: ClassVar[Literal[0]]
    class BrokerEndpoint(Struct):
        name: str
        host: str
        port: int
        security_protocol: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            security_protocol: int = 0,
        ) -> None: ...

    class BrokerFeature(Struct):
        name: str
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            name: str = "",
            min_supported_version: int = 0,
            max_supported_version: int = 0,
        ) -> None: ...

    broker_id: int
    is_migrating_zk_broker: bool
    incarnation_id: bytes
    broker_epoch: int
    end_points: list[RegisterBrokerRecord.BrokerEndpoint]
    features: list[RegisterBrokerRecord.BrokerFeature]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: list[bytes]
    cordoned_log_dirs: list[bytes] | None
    def __init__(
        self,
        *,
        broker_id: int = 0,
        is_migrating_zk_broker: bool = False,
        incarnation_id: bytes = ...,
        broker_epoch: int = 0,
        end_points: list[RegisterBrokerRecord.BrokerEndpoint] = ...,
        features: list[RegisterBrokerRecord.BrokerFeature] = ...,
        rack: str | None = "",
        fenced: bool = True,
        in_controlled_shutdown: bool = False,
        log_dirs: list[bytes] = ...,
        cordoned_log_dirs: list[bytes] | None = ...,
    ) -> None: ...

class RegisterControllerRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[27]]
    class ControllerEndpoint(Struct):
        name: str
        host: str
        port: int
        security_protocol: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
            security_protocol: int = 0,
        ) -> None: ...

    class ControllerFeature(Struct):
        name: str
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            name: str = "",
            min_supported_version: int = 0,
            max_supported_version: int = 0,
        ) -> None: ...

    controller_id: int
    incarnation_id: bytes
    zk_migration_ready: bool
    end_points: list[RegisterControllerRecord.ControllerEndpoint]
    features: list[RegisterControllerRecord.ControllerFeature]
    def __init__(
        self,
        *,
        controller_id: int = 0,
        incarnation_id: bytes = ...,
        zk_migration_ready: bool = False,
        end_points: list[RegisterControllerRecord.ControllerEndpoint] = ...,
        features: list[RegisterControllerRecord.ControllerFeature] = ...,
    ) -> None: ...

class RemoteLogSegmentMetadataRecord(Message):
    # remote-metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[0]]
    class TopicIdPartitionEntry(Struct):
        name: str
        id: bytes
        partition: int
        def __init__(
            self,
            *,
            name: str = "",
            id: bytes = ...,
            partition: int = 0,
        ) -> None: ...

    class RemoteLogSegmentIdEntry(Struct):
        topic_id_partition: RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry
        id: bytes
        def __init__(
            self,
            *,
            topic_id_partition: RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry = ...,
            id: bytes = ...,
        ) -> None: ...

    class SegmentLeaderEpochEntry(Struct):
        leader_epoch: int
        offset: int
        def __init__(
            self,
            *,
            leader_epoch: int = 0,
            offset: int = 0,
        ) -> None: ...

    remote_log_segment_id: RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry
    start_offset: int
    end_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    segment_leader_epochs: list[RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry]
    segment_size_in_bytes: int
    custom_metadata: bytes | None
    remote_log_segment_state: int
    txn_index_empty: bool
    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry = ...,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: list[RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry] = ...,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = False,
    ) -> None: ...

class RemoteLogSegmentMetadataSnapshotRecord(Message):
    # remote-metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[3]]
    class SegmentLeaderEpochEntry(Struct):
        leader_epoch: int
        offset: int
        def __init__(
            self,
            *,
            leader_epoch: int = 0,
            offset: int = 0,
        ) -> None: ...

    segment_id: bytes
    start_offset: int
    end_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    segment_leader_epochs: list[RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry]
    segment_size_in_bytes: int
    custom_metadata: bytes | None
    remote_log_segment_state: int
    txn_index_empty: bool
    def __init__(
        self,
        *,
        segment_id: bytes = ...,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: list[RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry] = ...,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = False,
    ) -> None: ...

class RemoteLogSegmentMetadataUpdateRecord(Message):
    # remote-metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[1]]
    class TopicIdPartitionEntry(Struct):
        name: str
        id: bytes
        partition: int
        def __init__(
            self,
            *,
            name: str = "",
            id: bytes = ...,
            partition: int = 0,
        ) -> None: ...

    class RemoteLogSegmentIdEntry(Struct):
        topic_id_partition: RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry
        id: bytes
        def __init__(
            self,
            *,
            topic_id_partition: RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry = ...,
            id: bytes = ...,
        ) -> None: ...

    remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry
    broker_id: int
    event_timestamp_ms: int
    custom_metadata: bytes | None
    remote_log_segment_state: int
    def __init__(
        self,
        *,
        remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry = ...,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
    ) -> None: ...

class RemotePartitionDeleteMetadataRecord(Message):
    # remote-metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[2]]
    class TopicIdPartitionEntry(Struct):
        name: str
        id: bytes
        partition: int
        def __init__(
            self,
            *,
            name: str = "",
            id: bytes = ...,
            partition: int = 0,
        ) -> None: ...

    topic_id_partition: RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry
    broker_id: int
    event_timestamp_ms: int
    remote_partition_delete_state: int
    def __init__(
        self,
        *,
        topic_id_partition: RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry = ...,
        broker_id: int = 0,
        event_timestamp_ms: int = 0,
        remote_partition_delete_state: int = 0,
    ) -> None: ...

class RemoveAccessControlEntryRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[19]]
    id: bytes
    def __init__(
        self,
        *,
        id: bytes = ...,
    ) -> None: ...

class RemoveDelegationTokenRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[26]]
    token_id: str
    def __init__(
        self,
        *,
        token_id: str = "",
    ) -> None: ...

class RemoveRaftVoterRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[81]]
    cluster_id: str | None
    voter_id: int
    voter_directory_id: bytes
    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        voter_id: int = 0,
        voter_directory_id: bytes = ...,
    ) -> None: ...

class RemoveRaftVoterResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[81]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None: ...

class RemoveTopicRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[9]]
    topic_id: bytes
    def __init__(
        self,
        *,
        topic_id: bytes = ...,
    ) -> None: ...

class RemoveUserScramCredentialRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[22]]
    name: str
    mechanism: int
    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
    ) -> None: ...

class RenewDelegationTokenRequest(Message):
    # request v1-2, flexible from 2
    API_KEY: ClassVar[Literal[39]]
    hmac: bytes
    renew_period_ms: int
    def __init__(
        self,
        *,
        hmac: bytes = b"",
        renew_period_ms: int = 0,
    ) -> None: ...

class RenewDelegationTokenResponse(Message):
    # response v1-2, flexible from 2
    API_KEY: ClassVar[Literal[39]]
    error_code: int
    expiry_timestamp_ms: int
    throttle_time_ms: int
    def __init__(
        self,
        *,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
    ) -> None: ...

class RequestHeader(Message):
    # header v1-2, flexible from 2
    API_KEY: ClassVar[None]
    request_api_key: int
    request_api_version: int
    correlation_id: int
    client_id: str | None
    def __init__(
        self,
        *,
        request_api_key: int = 0,
        request_api_version: int = 0,
        correlation_id: int = 0,
        client_id: str | None = "",
    ) -> None: ...

class ResponseHeader(Message):
    # header v0-1, flexible from 1
    API_KEY: ClassVar[None]
    correlation_id: int
    def __init__(
        self,
        *,
        correlation_id: int = 0,
    ) -> None: ...

class SaslAuthenticateRequest(Message):
    # request v0-2, flexible from 2
    API_KEY: ClassVar[Literal[36]]
    auth_bytes: bytes
    def __init__(
        self,
        *,
        auth_bytes: bytes = b"",
    ) -> None: ...

class SaslAuthenticateResponse(Message):
    # response v0-2, flexible from 2
    API_KEY: ClassVar[Literal[36]]
    error_code: int
    error_message: str | None
    auth_bytes: bytes
    session_lifetime_ms: int
    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,
    ) -> None: ...

class SaslHandshakeRequest(Message):
    # request v0-1, flexible from None
    API_KEY: ClassVar[Literal[17]]
    mechanism: str
    def __init__(
        self,
        *,
        mechanism: str = "",
    ) -> None: ...

class SaslHandshakeResponse(Message):
    # response v0-1, flexible from None
    API_KEY: ClassVar[Literal[17]]
    error_code: int
    mechanisms: list[str]
    def __init__(
        self,
        *,
        error_code: int = 0,
        mechanisms: list[str] = ...,
    ) -> None: ...

class ShareAcknowledgeRequest(Message):
    # request v1-2, flexible from 1
    API_KEY: ClassVar[Literal[79]]
    class AcknowledgementBatch(Struct):
        first_offset: int
        last_offset: int
        acknowledge_types: list[int]
        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            acknowledge_types: list[int] = ...,
        ) -> None: ...

    class AcknowledgePartition(Struct):
        partition_index: int
        acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch]
        def __init__(
            self,
            *,
            partition_index: int = 0,
            acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = ...,
        ) -> None: ...

    class AcknowledgeTopic(Struct):
        topic_id: bytes
        partitions: list[ShareAcknowledgeRequest.AcknowledgePartition]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[ShareAcknowledgeRequest.AcknowledgePartition] = ...,
        ) -> None: ...

    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    is_renew_ack: bool
    topics: list[ShareAcknowledgeRequest.AcknowledgeTopic]
    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        is_renew_ack: bool = False,
        topics: list[ShareAcknowledgeRequest.AcknowledgeTopic] = ...,
    ) -> None: ...

class ShareAcknowledgeResponse(Message):
    # response v1-2, flexible from 1
    API_KEY: ClassVar[Literal[79]]
    class LeaderIdAndEpoch(Struct):
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            leader_id: int = 0,
            leader_epoch: int = 0,
        ) -> None: ...

    class PartitionData(Struct):
        partition_index: int
        error_code: int
        error_message: str | None
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = ...,
        ) -> None: ...

    class ShareAcknowledgeTopicResponse(Struct):
        topic_id: bytes
        partitions: list[ShareAcknowledgeResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[ShareAcknowledgeResponse.PartitionData] = ...,
        ) -> None: ...

    class NodeEndpoint(Struct):
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: list[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse]
    node_endpoints: list[ShareAcknowledgeResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = ...,
        node_endpoints: list[ShareAcknowledgeResponse.NodeEndpoint] = ...,
    ) -> None: ...

class ShareFetchRequest(Message):
    # request v1-2, flexible from 1
    API_KEY: ClassVar[Literal[78]]
    class AcknowledgementBatch(Struct):
        first_offset: int
        last_offset: int
        acknowledge_types: list[int]
        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            acknowledge_types: list[int] = ...,
        ) -> None: ...

    class FetchPartition(Struct):
        partition_index: int
        partition_max_bytes: int
        acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch]
        def __init__(
            self,
            *,
            partition_index: int = 0,
            partition_max_bytes: int = 0,
            acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch] = ...,
        ) -> None: ...

    class FetchTopic(Struct):
        topic_id: bytes
        partitions: list[ShareFetchRequest.FetchPartition]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[ShareFetchRequest.FetchPartition] = ...,
        ) -> None: ...

    class ForgottenTopic(Struct):
        topic_id: bytes
        partitions: list[int]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[int] = ...,
        ) -> None: ...

    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    share_acquire_mode: int
    is_renew_ack: bool
    topics: list[ShareFetchRequest.FetchTopic]
    forgotten_topics_data: list[ShareFetchRequest.ForgottenTopic]
    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,
        is_renew_ack: bool = False,
        topics: list[ShareFetchRequest.FetchTopic] = ...,
        forgotten_topics_data: list[ShareFetchRequest.ForgottenTopic] = ...,
    ) -> None: ...

class ShareFetchResponse(Message):
    # response v1-2, flexible from 1
    API_KEY: ClassVar[Literal[78]]
    class LeaderIdAndEpoch(Struct):
        leader_id: int
        leader_epoch: int
        def __init__(
            self,
            *,
            leader_id: int = 0,
            leader_epoch: int = 0,
        ) -> None: ...

    class AcquiredRecords(Struct):
        first_offset: int
        last_offset: int
        delivery_count: int
        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_count: int = 0,
        ) -> None: ...

    class PartitionData(Struct):
        partition_index: int
        error_code: int
        error_message: str | None
        acknowledge_error_code: int
        acknowledge_error_message: str | None
        current_leader: ShareFetchResponse.LeaderIdAndEpoch
        records: Records | None
        acquired_records: list[ShareFetchResponse.AcquiredRecords]
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
            acknowledge_error_code: int = 0,
            acknowledge_error_message: str | None = None,
            current_leader: ShareFetchResponse.LeaderIdAndEpoch = ...,
            records: Records | None = None,
            acquired_records: list[ShareFetchResponse.AcquiredRecords] = ...,
        ) -> None: ...

    class ShareFetchableTopicResponse(Struct):
        topic_id: bytes
        partitions: list[ShareFetchResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[ShareFetchResponse.PartitionData] = ...,
        ) -> None: ...

    class NodeEndpoint(Struct):
        node_id: int
        host: str
        port: int
        rack: str | None
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
            rack: str | None = None,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: list[ShareFetchResponse.ShareFetchableTopicResponse]
    node_endpoints: list[ShareFetchResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareFetchResponse.ShareFetchableTopicResponse] = ...,
        node_endpoints: list[ShareFetchResponse.NodeEndpoint] = ...,
    ) -> None: ...

class ShareGroupCurrentMemberAssignmentKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[14]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None: ...

class ShareGroupCurrentMemberAssignmentValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[14]]
    class TopicPartitions(Struct):
        topic_id: bytes
        partitions: list[int]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[int] = ...,
        ) -> None: ...

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: list[ShareGroupCurrentMemberAssignmentValue.TopicPartitions]
    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[ShareGroupCurrentMemberAssignmentValue.TopicPartitions] = ...,
    ) -> None: ...

class ShareGroupDescribeRequest(Message):
    # request v1-1, flexible from 1
    API_KEY: ClassVar[Literal[77]]
    group_ids: list[str]
    include_authorized_operations: bool
    def __init__(
        self,
        *,
        group_ids: list[str] = ...,
        include_authorized_operations: bool = False,
    ) -> None: ...

class ShareGroupDescribeResponse(Message):
    # response v1-1, flexible from 1
    API_KEY: ClassVar[Literal[77]]
    class TopicPartitions(Struct):
        topic_id: bytes
        topic_name: str
        partitions: list[int]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            topic_name: str = "",
            partitions: list[int] = ...,
        ) -> None: ...

    class Assignment(Struct):
        topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions]
        def __init__(
            self,
            *,
            topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = ...,
        ) -> None: ...

    class Member(Struct):
        member_id: str
        rack_id: str | None
        member_epoch: int
        client_id: str
        client_host: str
        subscribed_topic_names: list[str]
        assignment: ShareGroupDescribeResponse.Assignment
        def __init__(
            self,
            *,
            member_id: str = "",
            rack_id: str | None = None,
            member_epoch: int = 0,
            client_id: str = "",
            client_host: str = "",
            subscribed_topic_names: list[str] = ...,
            assignment: ShareGroupDescribeResponse.Assignment = ...,
        ) -> None: ...

    class DescribedGroup(Struct):
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        assignor_name: str
        members: list[ShareGroupDescribeResponse.Member]
        authorized_operations: int
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            group_id: str = "",
            group_state: str = "",
            group_epoch: int = 0,
            assignment_epoch: int = 0,
            assignor_name: str = "",
            members: list[ShareGroupDescribeResponse.Member] = ...,
            authorized_operations: int = -2147483648,
        ) -> None: ...

    throttle_time_ms: int
    groups: list[ShareGroupDescribeResponse.DescribedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[ShareGroupDescribeResponse.DescribedGroup] = ...,
    ) -> None: ...

class ShareGroupHeartbeatRequest(Message):
    # request v1-1, flexible from 1
    API_KEY: ClassVar[Literal[76]]
    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    subscribed_topic_names: list[str] | None
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
    ) -> None: ...

class ShareGroupHeartbeatResponse(Message):
    # response v1-1, flexible from 1
    API_KEY: ClassVar[Literal[76]]
    class TopicPartitions(Struct):
        topic_id: bytes
        partitions: list[int]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[int] = ...,
        ) -> None: ...

    class Assignment(Struct):
        topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions]
        def __init__(
            self,
            *,
            topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions] = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: ShareGroupHeartbeatResponse.Assignment | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: ShareGroupHeartbeatResponse.Assignment | None = None,
    ) -> None: ...

class ShareGroupMemberMetadataKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[10]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None: ...

class ShareGroupMemberMetadataValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[10]]
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    def __init__(
        self,
        *,
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = ...,
    ) -> None: ...

class ShareGroupMetadataKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[11]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None: ...

class ShareGroupMetadataValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[11]]
    epoch: int
    metadata_hash: int
    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
    ) -> None: ...

class ShareGroupStatePartitionMetadataKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[15]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None: ...

class ShareGroupStatePartitionMetadataValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[15]]
    class TopicPartitionsInfo(Struct):
        topic_id: bytes
        topic_name: str
        partitions: list[int]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            topic_name: str = "",
            partitions: list[int] = ...,
        ) -> None: ...

    class TopicInfo(Struct):
        topic_id: bytes
        topic_name: str
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            topic_name: str = "",
        ) -> None: ...

    initializing_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]
    initialized_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]
    deleting_topics: list[ShareGroupStatePartitionMetadataValue.TopicInfo]
    def __init__(
        self,
        *,
        initializing_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo] = ...,
        initialized_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo] = ...,
        deleting_topics: list[ShareGroupStatePartitionMetadataValue.TopicInfo] = ...,
    ) -> None: ...

class ShareGroupTargetAssignmentMemberKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[13]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None: ...

class ShareGroupTargetAssignmentMemberValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[13]]
    class TopicPartition(Struct):
        topic_id: bytes
        partitions: list[int]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[int] = ...,
        ) -> None: ...

    topic_partitions: list[ShareGroupTargetAssignmentMemberValue.TopicPartition]
    def __init__(
        self,
        *,
        topic_partitions: list[ShareGroupTargetAssignmentMemberValue.TopicPartition] = ...,
    ) -> None: ...

class ShareGroupTargetAssignmentMetadataKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[12]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None: ...

class ShareGroupTargetAssignmentMetadataValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[12]]
    assignment_epoch: int
    assignment_timestamp: int
    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None: ...

class ShareSnapshotKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[0]]
    group_id: str
    topic_id: bytes
    partition: int
    def __init__(
        self,
        *,
        group_id: str = "",
        topic_id: bytes = ...,
        partition: int = 0,
    ) -> None: ...

class ShareSnapshotValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[0]]
    class StateBatch(Struct):
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_state: int = 0,
            delivery_count: int = 0,
        ) -> None: ...

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    create_timestamp: int
    write_timestamp: int
    state_batches: list[ShareSnapshotValue.StateBatch]
    def __init__(
        self,
        *,
        snapshot_epoch: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        create_timestamp: int = 0,
        write_timestamp: int = 0,
        state_batches: list[ShareSnapshotValue.StateBatch] = ...,
    ) -> None: ...

class ShareUpdateKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[1]]
    group_id: str
    topic_id: bytes
    partition: int
    def __init__(
        self,
        *,
        group_id: str = "",
        topic_id: bytes = ...,
        partition: int = 0,
    ) -> None: ...

class ShareUpdateValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[1]]
    class StateBatch(Struct):
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_state: int = 0,
            delivery_count: int = 0,
        ) -> None: ...

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: list[ShareUpdateValue.StateBatch]
    def __init__(
        self,
        *,
        snapshot_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        state_batches: list[ShareUpdateValue.StateBatch] = ...,
    ) -> None: ...

class SnapshotFooterRecord(Message):
    # data v0-0, flexible from 0
    API_KEY: ClassVar[None]
    version: int
    def __init__(
        self,
        *,
        version: int = 0,
    ) -> None: ...

class SnapshotHeaderRecord(Message):
    # data v0-0, flexible from 0
    API_KEY: ClassVar[None]
    version: int
    last_contained_log_timestamp: int
    def __init__(
        self,
        *,
        version: int = 0,
        last_contained_log_timestamp: int = 0,
    ) -> None: ...

class StreamsGroupCurrentMemberAssignmentKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[22]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None: ...

class StreamsGroupCurrentMemberAssignmentValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[22]]
    class TaskIds(Struct):
        subtopology_id: str
        partitions: list[int]
        assignment_epochs: list[int] | None
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partitions: list[int] = ...,
            assignment_epochs: list[int] | None = ...,
        ) -> None: ...

    member_epoch: int
    previous_member_epoch: int
    state: int
    active_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]
    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        active_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
        standby_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
        warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
        active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
        standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
        warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...,
    ) -> None: ...

class StreamsGroupDescribeRequest(Message):
    # request v0-1, flexible from 0
    API_KEY: ClassVar[Literal[89]]
    group_ids: list[str]
    include_authorized_operations: bool
    include_topology_description: bool
    def __init__(
        self,
        *,
        group_ids: list[str] = ...,
        include_authorized_operations: bool = False,
        include_topology_description: bool = False,
    ) -> None: ...

class StreamsGroupDescribeResponse(Message):
    # response v0-1, flexible from 0
    API_KEY: ClassVar[Literal[89]]
    class Endpoint(Struct):
        host: str
        port: int
        def __init__(
            self,
            *,
            host: str = "",
            port: int = 0,
        ) -> None: ...

    class TaskOffset(Struct):
        subtopology_id: str
        partition: int
        offset: int
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partition: int = 0,
            offset: int = 0,
        ) -> None: ...

    class Assignment(Struct):
        active_tasks: list[StreamsGroupDescribeResponse.TaskIds]
        standby_tasks: list[StreamsGroupDescribeResponse.TaskIds]
        warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds]
        def __init__(
            self,
            *,
            active_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ...,
            standby_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ...,
            warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ...,
        ) -> None: ...

    class TaskIds(Struct):
        subtopology_id: str
        partitions: list[int]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partitions: list[int] = ...,
        ) -> None: ...

    class KeyValue(Struct):
        key: str
        value: str
        def __init__(
            self,
            *,
            key: str = "",
            value: str = "",
        ) -> None: ...

    class TopicInfo(Struct):
        name: str
        partitions: int
        replication_factor: int
        topic_configs: list[StreamsGroupDescribeResponse.KeyValue]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: int = 0,
            replication_factor: int = 0,
            topic_configs: list[StreamsGroupDescribeResponse.KeyValue] = ...,
        ) -> None: ...

    class TopologyDescription(Struct):
        subtopologies: list[StreamsGroupDescribeResponse.TopologyDescriptionSubtopology]
        global_stores: list[StreamsGroupDescribeResponse.TopologyDescriptionGlobalStore]
        def __init__(
            self,
            *,
            subtopologies: list[StreamsGroupDescribeResponse.TopologyDescriptionSubtopology] = ...,
            global_stores: list[StreamsGroupDescribeResponse.TopologyDescriptionGlobalStore] = ...,
        ) -> None: ...

    class TopologyDescriptionSubtopology(Struct):
        subtopology_id: str
        nodes: list[StreamsGroupDescribeResponse.TopologyDescriptionNode]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            nodes: list[StreamsGroupDescribeResponse.TopologyDescriptionNode] = ...,
        ) -> None: ...

    class TopologyDescriptionNode(Struct):
        name: str
        node_type: int
        source_topics: list[str]
        sink_topic: str | None
        stores: list[str]
        successors: list[str]
        def __init__(
            self,
            *,
            name: str = "",
            node_type: int = 0,
            source_topics: list[str] = ...,
            sink_topic: str | None = None,
            stores: list[str] = ...,
            successors: list[str] = ...,
        ) -> None: ...

    class TopologyDescriptionGlobalStore(Struct):
        source: StreamsGroupDescribeResponse.TopologyDescriptionNode
        processor: StreamsGroupDescribeResponse.TopologyDescriptionNode
        def __init__(
            self,
            *,
            source: StreamsGroupDescribeResponse.TopologyDescriptionNode = ...,
            processor: StreamsGroupDescribeResponse.TopologyDescriptionNode = ...,
        ) -> None: ...

    class Subtopology(Struct):
        subtopology_id: str
        source_topics: list[str]
        repartition_sink_topics: list[str]
        state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo]
        repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            source_topics: list[str] = ...,
            repartition_sink_topics: list[str] = ...,
            state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo] = ...,
            repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo] = ...,
        ) -> None: ...

    class Topology(Struct):
        epoch: int
        subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None
        def __init__(
            self,
            *,
            epoch: int = 0,
            subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None = None,
        ) -> None: ...

    class Member(Struct):
        member_id: str
        member_epoch: int
        instance_id: str | None
        rack_id: str | None
        client_id: str
        client_host: str
        topology_epoch: int
        process_id: str
        user_endpoint: StreamsGroupDescribeResponse.Endpoint | None
        client_tags: list[StreamsGroupDescribeResponse.KeyValue]
        task_offsets: list[StreamsGroupDescribeResponse.TaskOffset]
        task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset]
        assignment: StreamsGroupDescribeResponse.Assignment
        target_assignment: StreamsGroupDescribeResponse.Assignment
        is_classic: bool
        def __init__(
            self,
            *,
            member_id: str = "",
            member_epoch: int = 0,
            instance_id: str | None = None,
            rack_id: str | None = None,
            client_id: str = "",
            client_host: str = "",
            topology_epoch: int = 0,
            process_id: str = "",
            user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = None,
            client_tags: list[StreamsGroupDescribeResponse.KeyValue] = ...,
            task_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = ...,
            task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = ...,
            assignment: StreamsGroupDescribeResponse.Assignment = ...,
            target_assignment: StreamsGroupDescribeResponse.Assignment = ...,
            is_classic: bool = False,
        ) -> None: ...

    class DescribedGroup(Struct):
        error_code: int
        error_message: str | None
        group_id: str
        group_state: str
        group_epoch: int
        assignment_epoch: int
        topology: StreamsGroupDescribeResponse.Topology | None
        members: list[StreamsGroupDescribeResponse.Member]
        authorized_operations: int
        topology_description: StreamsGroupDescribeResponse.TopologyDescription | None
        topology_description_status: int
        assignor_name: str | None
        def __init__(
            self,
            *,
            error_code: int = 0,
            error_message: str | None = None,
            group_id: str = "",
            group_state: str = "",
            group_epoch: int = 0,
            assignment_epoch: int = 0,
            topology: StreamsGroupDescribeResponse.Topology | None = None,
            members: list[StreamsGroupDescribeResponse.Member] = ...,
            authorized_operations: int = -2147483648,
            topology_description: StreamsGroupDescribeResponse.TopologyDescription | None = None,
            topology_description_status: int = 0,
            assignor_name: str | None = None,
        ) -> None: ...

    throttle_time_ms: int
    groups: list[StreamsGroupDescribeResponse.DescribedGroup]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[StreamsGroupDescribeResponse.DescribedGroup] = ...,
    ) -> None: ...

class StreamsGroupHeartbeatRequest(Message):
    # request v0-1, flexible from 0
    API_KEY: ClassVar[Literal[88]]
    class KeyValue(Struct):
        key: str
        value: str
        def __init__(
            self,
            *,
            key: str = "",
            value: str = "",
        ) -> None: ...

    class TopicInfo(Struct):
        name: str
        partitions: int
        replication_factor: int
        topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: int = 0,
            replication_factor: int = 0,
            topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue] = ...,
        ) -> None: ...

    class Endpoint(Struct):
        host: str
        port: int
        def __init__(
            self,
            *,
            host: str = "",
            port: int = 0,
        ) -> None: ...

    class TaskOffset(Struct):
        subtopology_id: str
        partition: int
        offset: int
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partition: int = 0,
            offset: int = 0,
        ) -> None: ...

    class TaskIds(Struct):
        subtopology_id: str
        partitions: list[int]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partitions: list[int] = ...,
        ) -> None: ...

    class CopartitionGroup(Struct):
        source_topics: list[int]
        source_topic_regex: list[int]
        repartition_source_topics: list[int]
        def __init__(
            self,
            *,
            source_topics: list[int] = ...,
            source_topic_regex: list[int] = ...,
            repartition_source_topics: list[int] = ...,
        ) -> None: ...

    class Subtopology(Struct):
        subtopology_id: str
        source_topics: list[str]
        source_topic_regex: list[str]
        state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo]
        repartition_sink_topics: list[str]
        repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo]
        copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            source_topics: list[str] = ...,
            source_topic_regex: list[str] = ...,
            state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = ...,
            repartition_sink_topics: list[str] = ...,
            repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = ...,
            copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup] = ...,
        ) -> None: ...

    class Topology(Struct):
        epoch: int
        subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology]
        def __init__(
            self,
            *,
            epoch: int = 0,
            subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology] = ...,
        ) -> None: ...

    group_id: str
    member_id: str
    member_epoch: int
    endpoint_information_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    topology: StreamsGroupHeartbeatRequest.Topology | None
    active_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    standby_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    warmup_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None
    process_id: str | None
    user_endpoint: StreamsGroupHeartbeatRequest.Endpoint | None
    client_tags: list[StreamsGroupHeartbeatRequest.KeyValue] | None
    task_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None
    task_end_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None
    shutdown_application: bool
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: StreamsGroupHeartbeatRequest.Topology | None = None,
        active_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = None,
        standby_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = None,
        warmup_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = None,
        process_id: str | None = None,
        user_endpoint: StreamsGroupHeartbeatRequest.Endpoint | None = None,
        client_tags: list[StreamsGroupHeartbeatRequest.KeyValue] | None = None,
        task_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = None,
        task_end_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = None,
        shutdown_application: bool = False,
    ) -> None: ...

class StreamsGroupHeartbeatResponse(Message):
    # response v0-1, flexible from 0
    API_KEY: ClassVar[Literal[88]]
    class Status(Struct):
        status_code: int
        status_detail: str
        def __init__(
            self,
            *,
            status_code: int = 0,
            status_detail: str = "",
        ) -> None: ...

    class TopicPartition(Struct):
        topic: str
        partitions: list[int]
        def __init__(
            self,
            *,
            topic: str = "",
            partitions: list[int] = ...,
        ) -> None: ...

    class TaskIds(Struct):
        subtopology_id: str
        partitions: list[int]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partitions: list[int] = ...,
        ) -> None: ...

    class Endpoint(Struct):
        host: str
        port: int
        def __init__(
            self,
            *,
            host: str = "",
            port: int = 0,
        ) -> None: ...

    class EndpointToPartitions(Struct):
        user_endpoint: StreamsGroupHeartbeatResponse.Endpoint
        active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition]
        standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition]
        def __init__(
            self,
            *,
            user_endpoint: StreamsGroupHeartbeatResponse.Endpoint = ...,
            active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = ...,
            standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = ...,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    acceptable_recovery_lag_legacy: int
    task_offset_interval_ms: int
    acceptable_recovery_lag: int
    status: list[StreamsGroupHeartbeatResponse.Status] | None
    active_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    standby_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    warmup_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None
    topology_description_required: bool
    endpoint_information_epoch: int
    partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponse.EndpointToPartitions] | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag_legacy: int = 0,
        task_offset_interval_ms: int = 0,
        acceptable_recovery_lag: int = -1,
        status: list[StreamsGroupHeartbeatResponse.Status] | None = ...,
        active_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = None,
        standby_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = None,
        warmup_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = None,
        topology_description_required: bool = False,
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponse.EndpointToPartitions] | None = None,
    ) -> None: ...

class StreamsGroupMemberMetadataKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[19]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None: ...

class StreamsGroupMemberMetadataValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[19]]
    class Endpoint(Struct):
        host: str
        port: int
        def __init__(
            self,
            *,
            host: str = "",
            port: int = 0,
        ) -> None: ...

    class KeyValue(Struct):
        key: str
        value: str
        def __init__(
            self,
            *,
            key: str = "",
            value: str = "",
        ) -> None: ...

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    user_endpoint: StreamsGroupMemberMetadataValue.Endpoint | None
    client_tags: list[StreamsGroupMemberMetadataValue.KeyValue]
    def __init__(
        self,
        *,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout_ms: int = -1,
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: StreamsGroupMemberMetadataValue.Endpoint | None = None,
        client_tags: list[StreamsGroupMemberMetadataValue.KeyValue] = ...,
    ) -> None: ...

class StreamsGroupMetadataKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[17]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None: ...

class StreamsGroupMetadataValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[17]]
    class LastAssignmentConfig(Struct):
        key: str
        value: str
        def __init__(
            self,
            *,
            key: str = "",
            value: str = "",
        ) -> None: ...

    epoch: int
    metadata_hash: int
    validated_topology_epoch: int
    last_assignment_configs: list[StreamsGroupMetadataValue.LastAssignmentConfig] | None
    stored_description_topology_epoch: int
    failed_description_topology_epoch: int
    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
        validated_topology_epoch: int = -1,
        last_assignment_configs: list[StreamsGroupMetadataValue.LastAssignmentConfig] | None = ...,
        stored_description_topology_epoch: int = -1,
        failed_description_topology_epoch: int = -1,
    ) -> None: ...

class StreamsGroupTargetAssignmentMemberKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[21]]
    group_id: str
    member_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
    ) -> None: ...

class StreamsGroupTargetAssignmentMemberValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[21]]
    class TaskIds(Struct):
        subtopology_id: str
        partitions: list[int]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            partitions: list[int] = ...,
        ) -> None: ...

    active_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds]
    standby_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds]
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds]
    def __init__(
        self,
        *,
        active_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ...,
        standby_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ...,
        warmup_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ...,
    ) -> None: ...

class StreamsGroupTargetAssignmentMetadataKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[20]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None: ...

class StreamsGroupTargetAssignmentMetadataValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[20]]
    assignment_epoch: int
    assignment_timestamp: int
    def __init__(
        self,
        *,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None: ...

class StreamsGroupTopologyDescriptionUpdateRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[93]]
    class TopologyDescription(Struct):
        subtopologies: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionSubtopology]
        global_stores: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionGlobalStore]
        def __init__(
            self,
            *,
            subtopologies: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionSubtopology] = ...,
            global_stores: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionGlobalStore] = ...,
        ) -> None: ...

    class TopologyDescriptionSubtopology(Struct):
        subtopology_id: str
        nodes: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            nodes: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode] = ...,
        ) -> None: ...

    class TopologyDescriptionNode(Struct):
        name: str
        node_type: int
        source_topics: list[str]
        sink_topic: str | None
        stores: list[str]
        successors: list[str]
        def __init__(
            self,
            *,
            name: str = "",
            node_type: int = 0,
            source_topics: list[str] = ...,
            sink_topic: str | None = None,
            stores: list[str] = ...,
            successors: list[str] = ...,
        ) -> None: ...

    class TopologyDescriptionGlobalStore(Struct):
        source: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode
        processor: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode
        def __init__(
            self,
            *,
            source: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode = ...,
            processor: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode = ...,
        ) -> None: ...

    group_id: str
    member_id: str
    topology_epoch: int
    topology_description: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescription
    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        topology_epoch: int = 0,
        topology_description: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescription = ...,
    ) -> None: ...

class StreamsGroupTopologyDescriptionUpdateResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[93]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None: ...

class StreamsGroupTopologyKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[23]]
    group_id: str
    def __init__(
        self,
        *,
        group_id: str = "",
    ) -> None: ...

class StreamsGroupTopologyValue(Message):
    # coordinator-value v0-0, flexible from 0
    API_KEY: ClassVar[Literal[23]]
    class TopicConfig(Struct):
        key: str
        value: str
        def __init__(
            self,
            *,
            key: str = "",
            value: str = "",
        ) -> None: ...

    class TopicInfo(Struct):
        name: str
        partitions: int
        replication_factor: int
        topic_configs: list[StreamsGroupTopologyValue.TopicConfig]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: int = 0,
            replication_factor: int = 0,
            topic_configs: list[StreamsGroupTopologyValue.TopicConfig] = ...,
        ) -> None: ...

    class CopartitionGroup(Struct):
        source_topics: list[int]
        source_topic_regex: list[int]
        repartition_source_topics: list[int]
        def __init__(
            self,
            *,
            source_topics: list[int] = ...,
            source_topic_regex: list[int] = ...,
            repartition_source_topics: list[int] = ...,
        ) -> None: ...

    class Subtopology(Struct):
        subtopology_id: str
        source_topics: list[str]
        source_topic_regex: list[str]
        state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo]
        repartition_sink_topics: list[str]
        repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo]
        copartition_groups: list[StreamsGroupTopologyValue.CopartitionGroup]
        def __init__(
            self,
            *,
            subtopology_id: str = "",
            source_topics: list[str] = ...,
            source_topic_regex: list[str] = ...,
            state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo] = ...,
            repartition_sink_topics: list[str] = ...,
            repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo] = ...,
            copartition_groups: list[StreamsGroupTopologyValue.CopartitionGroup] = ...,
        ) -> None: ...

    epoch: int
    subtopologies: list[StreamsGroupTopologyValue.Subtopology]
    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: list[StreamsGroupTopologyValue.Subtopology] = ...,
    ) -> None: ...

class SyncGroupRequest(Message):
    # request v0-5, flexible from 4
    API_KEY: ClassVar[Literal[14]]
    class SyncGroupRequestAssignment(Struct):
        member_id: str
        assignment: bytes
        def __init__(
            self,
            *,
            member_id: str = "",
            assignment: bytes = b"",
        ) -> None: ...

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: list[SyncGroupRequest.SyncGroupRequestAssignment]
    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequest.SyncGroupRequestAssignment] = ...,
    ) -> None: ...

class SyncGroupResponse(Message):
    # response v0-5, flexible from 4
    API_KEY: ClassVar[Literal[14]]
    throttle_time_ms: int
    error_code: int
    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
    ) -> None: ...

class TopicRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[2]]
    name: str
    topic_id: bytes
    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ...,
    ) -> None: ...

class TransactionLogKey(Message):
    # coordinator-key v0-0, flexible from None
    API_KEY: ClassVar[Literal[0]]
    transactional_id: str
    def __init__(
        self,
        *,
        transactional_id: str = "",
    ) -> None: ...

class TransactionLogValue(Message):
    # coordinator-value v0-1, flexible from 1
    API_KEY: ClassVar[Literal[0]]
    class PartitionsSchema(Struct):
        topic: str
        partition_ids: list[int]
        def __init__(
            self,
            *,
            topic: str = "",
            partition_ids: list[int] = ...,
        ) -> None: ...

    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    next_producer_epoch: int
    transaction_timeout_ms: int
    transaction_status: int
    transaction_partitions: list[TransactionLogValue.PartitionsSchema] | None
    transaction_last_update_timestamp_ms: int
    transaction_start_timestamp_ms: int
    client_transaction_version: int
    def __init__(
        self,
        *,
        producer_id: int = 0,
        previous_producer_id: int = -1,
        next_producer_id: int = -1,
        producer_epoch: int = 0,
        next_producer_epoch: int = -1,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: list[TransactionLogValue.PartitionsSchema] | None = ...,
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0,
    ) -> None: ...

class TxnOffsetCommitRequest(Message):
    # request v0-6, flexible from 3
    API_KEY: ClassVar[Literal[28]]
    class TxnOffsetCommitRequestPartition(Struct):
        partition_index: int
        committed_offset: int
        committed_leader_epoch: int
        committed_metadata: str | None
        def __init__(
            self,
            *,
            partition_index: int = 0,
            committed_offset: int = 0,
            committed_leader_epoch: int = -1,
            committed_metadata: str | None = "",
        ) -> None: ...

    class TxnOffsetCommitRequestTopic(Struct):
        name: str
        topic_id: bytes
        partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ...,
            partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = ...,
        ) -> None: ...

    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic]
    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = ...,
    ) -> None: ...

class TxnOffsetCommitResponse(Message):
    # response v0-6, flexible from 3
    API_KEY: ClassVar[Literal[28]]
    class TxnOffsetCommitResponsePartition(Struct):
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
        ) -> None: ...

    class TxnOffsetCommitResponseTopic(Struct):
        name: str
        topic_id: bytes
        partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition]
        def __init__(
            self,
            *,
            name: str = "",
            topic_id: bytes = ...,
            partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = ...,
        ) -> None: ...

    throttle_time_ms: int
    topics: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic] = ...,
    ) -> None: ...

class UnfenceBrokerRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[8]]
    id: int
    epoch: int
    def __init__(
        self,
        *,
        id: int = 0,
        epoch: int = 0,
    ) -> None: ...

class UnregisterBrokerRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[1]]
    broker_id: int
    broker_epoch: int
    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = 0,
    ) -> None: ...

class UnregisterBrokerRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[64]]
    broker_id: int
    def __init__(
        self,
        *,
        broker_id: int = 0,
    ) -> None: ...

class UnregisterBrokerResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[64]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None: ...

class UnregisterControllerRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[29]]
    controller_id: int
    def __init__(
        self,
        *,
        controller_id: int = 0,
    ) -> None: ...

class UnregisterControllerRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[94]]
    controller_id: int
    def __init__(
        self,
        *,
        controller_id: int = 0,
    ) -> None: ...

class UnregisterControllerResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[94]]
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None: ...

class UpdateFeaturesRequest(Message):
    # request v0-2, flexible from 0
    API_KEY: ClassVar[Literal[57]]
    class FeatureUpdateKey(Struct):
        feature: str
        max_version_level: int
        allow_downgrade: bool
        upgrade_type: int
        def __init__(
            self,
            *,
            feature: str = "",
            max_version_level: int = 0,
            allow_downgrade: bool = False,
            upgrade_type: int = 1,
        ) -> None: ...

    timeout_ms: int
    feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey]
    validate_only: bool
    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey] = ...,
        validate_only: bool = False,
    ) -> None: ...

class UpdateFeaturesResponse(Message):
    # response v0-2, flexible from 0
    API_KEY: ClassVar[Literal[57]]
    class UpdatableFeatureResult(Struct):
        feature: str
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            feature: str = "",
            error_code: int = 0,
            error_message: str | None = "",
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: list[UpdateFeaturesResponse.UpdatableFeatureResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[UpdateFeaturesResponse.UpdatableFeatureResult] = ...,
    ) -> None: ...

class UpdateRaftVoterRequest(Message):
    # request v0-0, flexible from 0
    API_KEY: ClassVar[Literal[82]]
    class Listener(Struct):
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
        ) -> None: ...

    class KRaftVersionFeature(Struct):
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            min_supported_version: int = 0,
            max_supported_version: int = 0,
        ) -> None: ...

    cluster_id: str | None
    current_leader_epoch: int
    voter_id: int
    voter_directory_id: bytes
    listeners: list[UpdateRaftVoterRequest.Listener]
    k_raft_version_feature: UpdateRaftVoterRequest.KRaftVersionFeature
    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        current_leader_epoch: int = 0,
        voter_id: int = 0,
        voter_directory_id: bytes = ...,
        listeners: list[UpdateRaftVoterRequest.Listener] = ...,
        k_raft_version_feature: UpdateRaftVoterRequest.KRaftVersionFeature = ...,
    ) -> None: ...

class UpdateRaftVoterResponse(Message):
    # response v0-0, flexible from 0
    API_KEY: ClassVar[Literal[82]]
    class CurrentLeader(Struct):
        leader_id: int
        leader_epoch: int
        host: str
        port: int
        def __init__(
            self,
            *,
            leader_id: int = -1,
            leader_epoch: int = -1,
            host: str = "",
            port: int = 0,
        ) -> None: ...

    throttle_time_ms: int
    error_code: int
    current_leader: UpdateRaftVoterResponse.CurrentLeader
    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        current_leader: UpdateRaftVoterResponse.CurrentLeader = ...,
    ) -> None: ...

class UserScramCredentialRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[11]]
    name: str
    mechanism: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int
    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        salt: bytes = b"",
        stored_key: bytes = b"",
        server_key: bytes = b"",
        iterations: int = 0,
    ) -> None: ...

class VoteRequest(Message):
    # request v0-2, flexible from 0
    API_KEY: ClassVar[Literal[52]]
    class PartitionData(Struct):
        partition_index: int
        replica_epoch: int
        replica_id: int
        replica_directory_id: bytes
        voter_directory_id: bytes
        last_offset_epoch: int
        last_offset: int
        pre_vote: bool
        def __init__(
            self,
            *,
            partition_index: int = 0,
            replica_epoch: int = 0,
            replica_id: int = 0,
            replica_directory_id: bytes = ...,
            voter_directory_id: bytes = ...,
            last_offset_epoch: int = 0,
            last_offset: int = 0,
            pre_vote: bool = False,
        ) -> None: ...

    class TopicData(Struct):
        topic_name: str
        partitions: list[VoteRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[VoteRequest.PartitionData] = ...,
        ) -> None: ...

    cluster_id: str | None
    voter_id: int
    topics: list[VoteRequest.TopicData]
    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[VoteRequest.TopicData] = ...,
    ) -> None: ...

class VoteResponse(Message):
    # response v0-2, flexible from 0
    API_KEY: ClassVar[Literal[52]]
    class PartitionData(Struct):
        partition_index: int
        error_code: int
        leader_id: int
        leader_epoch: int
        vote_granted: bool
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
            leader_id: int = 0,
            leader_epoch: int = 0,
            vote_granted: bool = False,
        ) -> None: ...

    class TopicData(Struct):
        topic_name: str
        partitions: list[VoteResponse.PartitionData]
        def __init__(
            self,
            *,
            topic_name: str = "",
            partitions: list[VoteResponse.PartitionData] = ...,
        ) -> None: ...

    class NodeEndpoint(Struct):
        node_id: int
        host: str
        port: int
        def __init__(
            self,
            *,
            node_id: int = 0,
            host: str = "",
            port: int = 0,
        ) -> None: ...

    error_code: int
    topics: list[VoteResponse.TopicData]
    node_endpoints: list[VoteResponse.NodeEndpoint]
    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[VoteResponse.TopicData] = ...,
        node_endpoints: list[VoteResponse.NodeEndpoint] = ...,
    ) -> None: ...

class VotersRecord(Message):
    # data v0-0, flexible from 0
    API_KEY: ClassVar[None]
    class Endpoint(Struct):
        name: str
        host: str
        port: int
        def __init__(
            self,
            *,
            name: str = "",
            host: str = "",
            port: int = 0,
        ) -> None: ...

    class KRaftVersionFeature(Struct):
        min_supported_version: int
        max_supported_version: int
        def __init__(
            self,
            *,
            min_supported_version: int = 0,
            max_supported_version: int = 0,
        ) -> None: ...

    class Voter(Struct):
        voter_id: int
        voter_directory_id: bytes
        endpoints: list[VotersRecord.Endpoint]
        k_raft_version_feature: VotersRecord.KRaftVersionFeature
        def __init__(
            self,
            *,
            voter_id: int = 0,
            voter_directory_id: bytes = ...,
            endpoints: list[VotersRecord.Endpoint] = ...,
            k_raft_version_feature: VotersRecord.KRaftVersionFeature = ...,
        ) -> None: ...

    version: int
    voters: list[VotersRecord.Voter]
    def __init__(
        self,
        *,
        version: int = 0,
        voters: list[VotersRecord.Voter] = ...,
    ) -> None: ...

class WriteShareGroupStateRequest(Message):
    # request v0-1, flexible from 0
    API_KEY: ClassVar[Literal[85]]
    class StateBatch(Struct):
        first_offset: int
        last_offset: int
        delivery_state: int
        delivery_count: int
        def __init__(
            self,
            *,
            first_offset: int = 0,
            last_offset: int = 0,
            delivery_state: int = 0,
            delivery_count: int = 0,
        ) -> None: ...

    class PartitionData(Struct):
        partition: int
        state_epoch: int
        leader_epoch: int
        start_offset: int
        delivery_complete_count: int
        state_batches: list[WriteShareGroupStateRequest.StateBatch]
        def __init__(
            self,
            *,
            partition: int = 0,
            state_epoch: int = 0,
            leader_epoch: int = 0,
            start_offset: int = 0,
            delivery_complete_count: int = -1,
            state_batches: list[WriteShareGroupStateRequest.StateBatch] = ...,
        ) -> None: ...

    class WriteStateData(Struct):
        topic_id: bytes
        partitions: list[WriteShareGroupStateRequest.PartitionData]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[WriteShareGroupStateRequest.PartitionData] = ...,
        ) -> None: ...

    group_id: str
    topics: list[WriteShareGroupStateRequest.WriteStateData]
    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[WriteShareGroupStateRequest.WriteStateData] = ...,
    ) -> None: ...

class WriteShareGroupStateResponse(Message):
    # response v0-1, flexible from 0
    API_KEY: ClassVar[Literal[85]]
    class PartitionResult(Struct):
        partition: int
        error_code: int
        error_message: str | None
        def __init__(
            self,
            *,
            partition: int = 0,
            error_code: int = 0,
            error_message: str | None = None,
        ) -> None: ...

    class WriteStateResult(Struct):
        topic_id: bytes
        partitions: list[WriteShareGroupStateResponse.PartitionResult]
        def __init__(
            self,
            *,
            topic_id: bytes = ...,
            partitions: list[WriteShareGroupStateResponse.PartitionResult] = ...,
        ) -> None: ...

    results: list[WriteShareGroupStateResponse.WriteStateResult]
    def __init__(
        self,
        *,
        results: list[WriteShareGroupStateResponse.WriteStateResult] = ...,
    ) -> None: ...

class WriteTxnMarkersRequest(Message):
    # request v1-2, flexible from 1
    API_KEY: ClassVar[Literal[27]]
    class WritableTxnMarkerTopic(Struct):
        name: str
        partition_indexes: list[int]
        def __init__(
            self,
            *,
            name: str = "",
            partition_indexes: list[int] = ...,
        ) -> None: ...

    class WritableTxnMarker(Struct):
        producer_id: int
        producer_epoch: int
        transaction_result: bool
        topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic]
        coordinator_epoch: int
        transaction_version: int
        def __init__(
            self,
            *,
            producer_id: int = 0,
            producer_epoch: int = 0,
            transaction_result: bool = False,
            topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = ...,
            coordinator_epoch: int = 0,
            transaction_version: int = 0,
        ) -> None: ...

    markers: list[WriteTxnMarkersRequest.WritableTxnMarker]
    def __init__(
        self,
        *,
        markers: list[WriteTxnMarkersRequest.WritableTxnMarker] = ...,
    ) -> None: ...

class WriteTxnMarkersResponse(Message):
    # response v1-2, flexible from 1
    API_KEY: ClassVar[Literal[27]]
    class WritableTxnMarkerPartitionResult(Struct):
        partition_index: int
        error_code: int
        def __init__(
            self,
            *,
            partition_index: int = 0,
            error_code: int = 0,
        ) -> None: ...

    class WritableTxnMarkerTopicResult(Struct):
        name: str
        partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult]
        def __init__(
            self,
            *,
            name: str = "",
            partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = ...,
        ) -> None: ...

    class WritableTxnMarkerResult(Struct):
        producer_id: int
        topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult]
        def __init__(
            self,
            *,
            producer_id: int = 0,
            topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = ...,
        ) -> None: ...

    markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult]
    def __init__(
        self,
        *,
        markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult] = ...,
    ) -> None: ...

class ZkMigrationStateRecord(Message):
    # metadata v0-0, flexible from 0
    API_KEY: ClassVar[Literal[21]]
    zk_migration_state: int
    def __init__(
        self,
        *,
        zk_migration_state: int = 0,
    ) -> None: ...
