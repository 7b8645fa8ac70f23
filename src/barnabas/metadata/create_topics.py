"""CreateTopics: from a request to TopicRecords, ConfigRecords and PartitionRecords.

- Each topic succeeds or fails by itself; the answer keeps the request's order.
- -1 partitions or replicas mean the broker's default (KIP-464); with a manual assignment both must be -1.
- `validate_only` gives the same answer without records.
- Version 7 answers with the topic id and with the effective settings.

Sources: Kafka's `ReplicationControlManager.createTopics`, KIP-4, KIP-464, KIP-516, KIP-525.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from barnabas.metadata.config_schema import ConfigError, ConfigResourceType
from barnabas.metadata.configuration_control import clear_elr
from barnabas.metadata.controller_view import (
    MAX_RECORDS_PER_REQUEST,
    NO_ERROR,
    ApiError,
    ControllerResult,
    ControllerView,
)
from barnabas.metadata.directory_ids import default_directory
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.metadata.replica_placer import place
from barnabas.protocol import messages, topic_names
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import ZERO_UUID

USE_DEFAULT = -1


def create_topics(
    view: ControllerView, request: messages.CreateTopicsRequest
) -> ControllerResult[messages.CreateTopicsResponse]:
    """Answer one CreateTopics request."""
    errors = _name_errors(view, request.topics)
    wanted = sum(len(topic.assignments) or _count(view, topic) for topic in request.topics)
    if wanted > MAX_RECORDS_PER_REQUEST:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    response = messages.CreateTopicsResponse()
    records: list[MetadataRecord] = []
    seen: set[str] = set()
    shown = EffectiveConfigs(view)
    for topic in request.topics:
        if topic.name in seen:
            continue
        seen.add(topic.name)
        result = messages.CreateTopicsResponse.CreatableTopicResult(name=topic.name, topic_id=ZERO_UUID)
        error = errors.get(topic.name, NO_ERROR)
        topic_records: list[MetadataRecord] = []
        if error.code is ErrorCode.NONE:
            error, topic_records = _create_topic(view, topic, result, shown, validate_only=request.validate_only)
        result.error_code, result.error_message = error.code, error.message
        response.topics.append(result)
        records += topic_records
    return ControllerResult(response, [] if request.validate_only else records)


class EffectiveConfigs:
    """The settings that CreateTopics answers with; topics of one request that set the same share one list."""

    def __init__(self, view: ControllerView) -> None:
        self._view = view
        self._made: dict[tuple[tuple[str, str], ...], list[messages.CreateTopicsResponse.CreatableTopicConfigs]] = {}

    def of(self, configs: Mapping[str, str]) -> list[messages.CreateTopicsResponse.CreatableTopicConfigs]:
        key = tuple(sorted(configs.items()))
        if key not in self._made:
            self._made[key] = [
                messages.CreateTopicsResponse.CreatableTopicConfigs(
                    name=entry.name,
                    value=entry.value,
                    read_only=entry.read_only,
                    config_source=entry.source,
                    is_sensitive=entry.sensitive,
                )
                for entry in self._view.configs.effective_topic_entries(self._view.image.configs, configs)
            ]
        return self._made[key]


def _name_errors(
    view: ControllerView, topics: Iterable[messages.CreateTopicsRequest.CreatableTopic]
) -> dict[str, ApiError]:
    """Return the error of each name that is invalid, repeated in the request, or in conflict with an existing topic."""
    errors: dict[str, ApiError] = {}
    existing = view.image.topics.by_name
    names: set[str] = set()
    for topic in topics:
        name = topic.name
        if name in names:
            errors[name] = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            continue
        names.add(name)
        if name == topic_names.CLUSTER_METADATA:
            errors[name] = ApiError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
        elif (fault := topic_names.fault(name)) is not None:
            errors[name] = ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        elif name in existing:
            errors[name] = ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        elif (other := topic_names.collision(name, existing)) is not None:
            message = f"Topic '{name}' collides with existing topic: {other}"
            errors[name] = ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    return errors


def _create_topic(
    view: ControllerView,
    topic: messages.CreateTopicsRequest.CreatableTopic,
    result: messages.CreateTopicsResponse.CreatableTopicResult,
    shown: EffectiveConfigs,
    *,
    validate_only: bool,
) -> tuple[ApiError, list[MetadataRecord]]:
    configs, error = _topic_configs(view, topic)
    if error.code is not ErrorCode.NONE:
        return error, []
    if topic.assignments:
        partitions, error = _manual_partitions(view, topic)
    else:
        partitions, error = _placed_partitions(view, topic)
    if error.code is not ErrorCode.NONE:
        return error, []
    error = view.apply_partition_change_quota(len(partitions))
    if error.code is not ErrorCode.NONE:
        return error, []
    result.num_partitions = len(partitions)
    result.replication_factor = len(partitions[0].replicas)
    result.configs = shown.of(configs)
    topic_id = result.topic_id = view.new_uuid()
    if validate_only:
        return NO_ERROR, []
    records: list[MetadataRecord] = [messages.TopicRecord(name=topic.name, topic_id=topic_id)]
    records += [
        messages.ConfigRecord(
            resource_type=ConfigResourceType.TOPIC, resource_name=topic.name, name=name, value=configs[name]
        )
        for name in sorted(configs)
    ]
    # As in Kafka; a new topic has no such replicas yet.
    records += clear_elr(view, records)
    records += [partition.to_record(topic_id, index) for index, partition in enumerate(partitions)]
    return NO_ERROR, records


def _topic_configs(
    view: ControllerView, topic: messages.CreateTopicsRequest.CreatableTopic
) -> tuple[dict[str, str], ApiError]:
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        message = f"Null value not supported for topic configs: {','.join(nulls)}"
        return {}, ApiError(ErrorCode.INVALID_CONFIG, message)
    configs = {config.name: config.value for config in topic.configs if config.value is not None}
    try:
        view.configs.schema.check_topic_configs(configs)
    except ConfigError as error:
        return {}, ApiError(ErrorCode.INVALID_CONFIG, str(error))
    return configs, NO_ERROR


def _count(view: ControllerView, topic: messages.CreateTopicsRequest.CreatableTopic) -> int:
    return view.settings.num_partitions if topic.num_partitions == USE_DEFAULT else topic.num_partitions


def _placed_partitions(
    view: ControllerView, topic: messages.CreateTopicsRequest.CreatableTopic
) -> tuple[list[PartitionRegistration], ApiError]:
    count, factor = topic.num_partitions, topic.replication_factor
    if factor < USE_DEFAULT or factor == 0:
        message = "Replication factor must be larger than 0, or -1 to use the default value."
        return [], ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    if count < USE_DEFAULT or count == 0:
        message = "Number of partitions was set to an invalid non-positive value."
        return [], ApiError(ErrorCode.INVALID_PARTITIONS, message)
    brokers = list(view.image.cluster.brokers.values())
    count = _count(view, topic)
    factor = view.settings.default_replication_factor if factor == USE_DEFAULT else factor
    placement = place(brokers, count, factor, view.random)
    if placement.error is not None:
        return [], placement.error
    return register_partitions(view, placement.assignments), NO_ERROR


def register_partitions(view: ControllerView, assignments: Sequence[tuple[int, ...]]) -> list[PartitionRegistration]:
    """Registrations for new partitions: usable replicas are in sync, the first of them leads."""
    brokers = view.image.cluster.brokers
    usable = {i for i, broker in brokers.items() if not (broker.fenced or broker.in_controlled_shutdown)}
    made: dict[tuple[int, ...], PartitionRegistration] = {}
    for replicas in assignments:
        if replicas not in made:
            isr = tuple(replica for replica in replicas if replica in usable)
            directories = tuple(default_directory(brokers.get(replica)) for replica in replicas)
            made[replicas] = PartitionRegistration(
                replicas, replicas if isr == replicas else isr, isr[0], 0, 0, directories
            )
    return [made[replicas] for replicas in assignments]


def check_replicas(view: ControllerView, replicas: Sequence[int], factor: int | None) -> ApiError:
    """Return whether a partition may have these replicas; `factor` is the number that it must have, None for any."""
    brokers = view.image.cluster.brokers
    message = None
    if not replicas:
        message = "The manual partition assignment includes an empty replica list."
    for position, replica in enumerate(replicas):
        if replica in replicas[:position]:
            message = f"The manual partition assignment includes the broker {replica} more than once."
        elif replica not in brokers:
            message = f"The manual partition assignment includes broker {replica}, but no such broker is registered."
        if message is not None:
            break
    if message is None and factor is not None and len(replicas) != factor:
        message = (
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {factor} replica(s)."
        )
    return NO_ERROR if message is None else ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def check_assignment(view: ControllerView, replicas: Sequence[int], partition: int, factor: int | None) -> ApiError:
    """Return whether a client may have these replicas for a new partition of a topic with this replication factor."""
    error = check_replicas(view, replicas, factor)
    brokers = view.image.cluster.brokers
    if error is NO_ERROR and all(brokers[r].fenced or brokers[r].in_controlled_shutdown for r in replicas):
        message = (
            f"All brokers specified in the manual partition assignment for partition {partition} are fenced or in "
            "controlled shutdown."
        )
        return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return error


def _manual_partitions(
    view: ControllerView, topic: messages.CreateTopicsRequest.CreatableTopic
) -> tuple[list[PartitionRegistration], ApiError]:
    prefix = "A manual partition assignment was specified, but "
    if topic.replication_factor != USE_DEFAULT:
        return [], ApiError(ErrorCode.INVALID_REQUEST, prefix + "replication factor was not set to -1.")
    if topic.num_partitions != USE_DEFAULT:
        return [], ApiError(ErrorCode.INVALID_REQUEST, prefix + "numPartitions was not set to -1.")
    assigned: dict[int, tuple[int, ...]] = {}
    factor: int | None = None
    for assignment in topic.assignments:
        index, replicas = assignment.partition_index, tuple(assignment.broker_ids)
        if index in assigned:
            message = f"Found multiple manual partition assignments for partition {index}"
            return [], ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        error = check_assignment(view, replicas, index, factor)
        if error.code is not ErrorCode.NONE:
            return [], error
        factor = len(replicas)
        assigned[index] = replicas
    if sorted(assigned) != list(range(len(assigned))):
        message = "partitions should be a consecutive 0-based integer sequence"
        return [], ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return register_partitions(view, [assigned[index] for index in range(len(assigned))]), NO_ERROR
