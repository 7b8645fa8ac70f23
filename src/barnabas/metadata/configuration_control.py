"""AlterConfigs and IncrementalAlterConfigs: settings of topics, brokers, groups and client metrics.

- Each resource succeeds or fails as a whole: one bad value rejects all changes of its resource, and of no other.
- SET and DELETE replace a value; APPEND and SUBTRACT change a list, starting from the value in force.
- The legacy AlterConfigs replaces the whole set: settings that it does not name are removed.
- A broker resource with an empty name is the cluster-wide default; a setting that is only per broker is rejected
  there, and one that is only read at the start is rejected everywhere.
- A broker setting that asks for protection (TLS, logins, ACLs) is rejected: a node reads these at its start (`security_settings`). The
  stores of one listener of one node are not: that node has looked at them before it forwards the request (`api/serving/own_settings`).
- While eligible leader replicas are on, min.insync.replicas cannot be set for one broker or removed for the cluster, and
  a change of it forgets the eligible leader replicas that were chosen by the old value.
- A change that changes nothing writes no record, except for brokers, where a repeated record makes each broker reload
  its key stores.

Sources: KIP-133, KIP-226, KIP-339, KIP-966; Kafka's `ConfigAdminManager`, `ConfigurationControlManager`,
`ControllerConfigurationValidator`, `DynamicBrokerConfig`.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from barnabas.metadata.client_metrics_configs import check_subscription, refuse_unknown
from barnabas.metadata.config_schema import ConfigError, ConfigResourceType, ConfigType
from barnabas.metadata.configs_image import ConfigurationsImage
from barnabas.metadata.controller_view import ControllerResult, ControllerView
from barnabas.metadata.features_image import ELR_FEATURE
from barnabas.metadata.group_config_bounds import check_group_bounds
from barnabas.metadata.list_changes import changed_list
from barnabas.metadata.listener_values import check_listeners
from barnabas.metadata.partition_index import WITHOUT_LEADER
from barnabas.metadata.partition_leaders import indexed
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.metadata.security_settings import REASON, RELOADABLE, reloadable_of_listener, shown, unserved
from barnabas.protocol import messages, topic_names
from barnabas.protocol.errors import ErrorCode, KafkaError

# A config value travels as a Java short-length string.
MAX_VALUE_BYTES = 32767
MIN_ISR = "min.insync.replicas"
LISTENERS = "listeners"


class AlterOperation(enum.IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    name: str
    operation: AlterOperation
    value: str | None


_Resource = TypeVar(
    "_Resource",
    messages.IncrementalAlterConfigsRequest.AlterConfigsResource,
    messages.AlterConfigsRequest.AlterConfigsResource,
)
_Answer = TypeVar(
    "_Answer",
    messages.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse,
    messages.AlterConfigsResponse.AlterConfigsResourceResponse,
)


def incremental_alter(
    view: ControllerView, request: messages.IncrementalAlterConfigsRequest
) -> ControllerResult[messages.IncrementalAlterConfigsResponse]:
    """Answer one IncrementalAlterConfigs request."""

    def changes(resource: messages.IncrementalAlterConfigsRequest.AlterConfigsResource) -> list[Alteration]:
        return [_alteration(c.name, c.config_operation, c.value) for c in resource.configs]

    answer = messages.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    answers, records = _alter_each(view, request.resources, changes, answer)
    response = messages.IncrementalAlterConfigsResponse(responses=answers)
    return ControllerResult(response, [] if request.validate_only else records + clear_elr(view, records))


def alter_configs(
    view: ControllerView, request: messages.AlterConfigsRequest
) -> ControllerResult[messages.AlterConfigsResponse]:
    """Answer one AlterConfigs request: it replaces all values of a resource."""

    def changes(resource: messages.AlterConfigsRequest.AlterConfigsResource) -> list[Alteration]:
        given = [_alteration(config.name, AlterOperation.SET, config.value) for config in resource.configs]
        names = {change.name for change in given}
        present = view.image.configs.for_resource(resource.resource_type, resource.resource_name)
        return given + [Alteration(key, AlterOperation.DELETE, None) for key in present if key not in names]

    answer = messages.AlterConfigsResponse.AlterConfigsResourceResponse
    answers, records = _alter_each(view, request.resources, changes, answer)
    response = messages.AlterConfigsResponse(responses=answers)
    return ControllerResult(response, [] if request.validate_only else records + clear_elr(view, records))


def _alter_each(
    view: ControllerView,
    resources: Sequence[_Resource],
    changes: Callable[[_Resource], list[Alteration]],
    answer: type[_Answer],
) -> tuple[list[_Answer], list[MetadataRecord]]:
    """Alter each resource by itself: an answer for each, in their order, and the records of those that succeeded."""
    answers: list[_Answer] = []
    records: list[MetadataRecord] = []
    keys = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    for resource in resources:
        code, message = ErrorCode.NONE, None
        kind, name = resource.resource_type, resource.resource_name
        try:
            _refuse_repeats(keys, (kind, name), [config.name for config in resource.configs])
            records += alter_resource(view, kind, name, changes(resource))
        except KafkaError as error:
            code, message = error.code, error.message
        answers.append(answer(error_code=code, error_message=message, resource_type=kind, resource_name=name))
    return answers, records


def clear_elr(view: ControllerView, configs: Iterable[MetadataRecord]) -> list[MetadataRecord]:
    """Return the records that forget the eligible leader replicas of topics whose min.insync.replicas these records change.

    A partition without a leader keeps its last known leader, where Kafka forgets it too: no other broker could lead it again.
    """
    if view.image.features.level(ELR_FEATURE) == 0:
        return []
    records: list[MetadataRecord] = []
    for record in configs:
        if isinstance(record, messages.ConfigRecord) and record.name == MIN_ISR:
            # An empty name stands for all topics.
            name = record.resource_name if record.resource_type == ConfigResourceType.TOPIC else ""
            records.append(messages.ClearElrRecord(topic_name=name))
            records += _last_known_leaders(view, name)
    return records


def _last_known_leaders(view: ControllerView, name: str) -> list[MetadataRecord]:
    return [
        messages.PartitionChangeRecord(
            partition_id=at.partition_id, topic_id=at.topic.topic_id, last_known_elr=list(at.partition.last_known_elr)
        )
        for at in indexed(view, WITHOUT_LEADER)
        if name in ("", at.topic.name) and at.partition.last_known_elr and not at.partition.isr
    ]


def elr_safety_records(view: ControllerView) -> list[MetadataRecord]:
    """Return the records that give the cluster one min.insync.replicas, which eligible leader replicas need."""
    configs = view.image.configs
    records: list[MetadataRecord] = []
    if MIN_ISR not in configs.for_resource(ConfigResourceType.BROKER, ""):
        # A setting of one broker does not count: this removes it.
        key = view.configs.schema.of(ConfigResourceType.TOPIC)[MIN_ISR]
        value = view.configs.topic_default(ConfigurationsImage(), key)[0]
        records.append(_broker_min_isr("", str(value)))
    for name in configs.names_of(ConfigResourceType.BROKER):
        if name and MIN_ISR in configs.for_resource(ConfigResourceType.BROKER, name):
            records.append(_broker_min_isr(name, None))
    return records


def _broker_min_isr(name: str, value: str | None) -> MetadataRecord:
    return messages.ConfigRecord(resource_type=ConfigResourceType.BROKER, resource_name=name, name=MIN_ISR, value=value)


def _refuse_repeats(resources: Counter[tuple[int, str]], resource: tuple[int, str], names: list[str]) -> None:
    if resources[resource] > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    if len(set(names)) < len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")


def _alteration(name: str, operation: int, value: str | None) -> Alteration:
    try:
        known = AlterOperation(operation)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}") from None
    if value is None and known is not AlterOperation.DELETE:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
    return Alteration(name, known, value)


def alter_resource(view: ControllerView, kind: int, name: str, changes: Iterable[Alteration]) -> list[MetadataRecord]:
    """Return the records of changes to one resource.

    Raises:
        KafkaError: the resource does not exist, or a value is not allowed.
    """
    resource_type = _resource_type(kind)
    _check_exists(view, resource_type, name)
    before = view.image.configs.for_resource(kind, name)
    after: dict[str, str | None] = dict(before)
    changed: dict[str, str | None] = {}
    for change in changes:
        value = _changed_value(view, resource_type, after.get(change.name), change)
        if value is not None and len(value.encode()) > MAX_VALUE_BYTES:
            message = (
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{MAX_VALUE_BYTES} bytes."
            )
            raise KafkaError(ErrorCode.INVALID_CONFIG, message)
        after[change.name] = value
        if value != before.get(change.name) or resource_type is ConfigResourceType.BROKER:
            changed[change.name] = value
    kept = {key: value for key, value in after.items() if value is not None}
    _check_values(view, resource_type, name, kept, changed)
    return [
        messages.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
        for key, value in changed.items()
    ]


def _resource_type(kind: int) -> ConfigResourceType:
    try:
        resource_type = ConfigResourceType(kind)
    except ValueError:
        resource_type = ConfigResourceType.UNKNOWN
    if resource_type in (ConfigResourceType.UNKNOWN, ConfigResourceType.BROKER_LOGGER):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
    return resource_type


def _check_exists(view: ControllerView, resource_type: ConfigResourceType, name: str) -> None:
    if resource_type is ConfigResourceType.TOPIC:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        if (fault := topic_names.fault(name)) is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        if name not in view.image.topics.by_name:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    elif resource_type is ConfigResourceType.BROKER and name:
        try:
            broker_id = int(name)
        except ValueError:
            message = f"Node id must be an integer, but it is: {name}"
            raise KafkaError(ErrorCode.INVALID_REQUEST, message) from None
        if broker_id < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")
        if broker_id not in view.image.cluster.brokers and broker_id not in view.image.cluster.controllers:
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No broker with id {broker_id} found.")
    elif resource_type is ConfigResourceType.GROUP and not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    elif resource_type is ConfigResourceType.CLIENT_METRICS and not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")


def _changed_value(
    view: ControllerView, resource_type: ConfigResourceType, current: str | None, change: Alteration
) -> str | None:
    if change.operation is AlterOperation.SET:
        return change.value
    if change.operation is AlterOperation.DELETE:
        return None
    key = view.configs.schema.key(resource_type, change.name)
    if key is None or key.kind is not ConfigType.LIST:
        message = f"Can't {change.operation.name} to key {change.name} because its type is not LIST."
        raise KafkaError(ErrorCode.INVALID_CONFIG, message)
    present = key.default if current is None else current
    return changed_list(present, change.value, is_append=change.operation is AlterOperation.APPEND)


def _check_values(
    view: ControllerView,
    resource_type: ConfigResourceType,
    name: str,
    values: Mapping[str, str],
    changed: Mapping[str, str | None],
) -> None:
    schema = view.configs.schema
    try:
        if resource_type is ConfigResourceType.TOPIC:
            schema.check_topic_configs(values)
        elif resource_type is ConfigResourceType.GROUP:
            schema.check_group_configs(values)
            check_group_bounds(view.configs, view.image.configs, values)
        elif resource_type is ConfigResourceType.CLIENT_METRICS:
            refuse_unknown(schema.of(resource_type), values)
            schema.check_client_metrics_configs(values)
        else:
            _check_broker_values(view, name, values, changed)
    except ConfigError as error:
        # Kafka answers a bad broker setting with INVALID_REQUEST, and all others with INVALID_CONFIG.
        is_broker = resource_type is ConfigResourceType.BROKER
        code = ErrorCode.INVALID_REQUEST if is_broker else ErrorCode.INVALID_CONFIG
        raise KafkaError(code, str(error)) from None
    if resource_type is ConfigResourceType.CLIENT_METRICS:
        check_subscription(values)


def _check_broker_values(
    view: ControllerView, name: str, values: Mapping[str, str], changed: Mapping[str, str | None]
) -> None:
    schema = view.configs.schema
    keys = schema.of(ConfigResourceType.BROKER)
    fixed = sorted(key for key in changed if key in keys and not keys[key].dynamic)
    if fixed:
        raise ConfigError(f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    if of_all := sorted(key for key, value in changed.items() if key in RELOADABLE and value is not None):
        raise ConfigError(
            f"These security configs can be dynamically updated only per-listener using the listener prefix: [{', '.join(of_all)}]"
        )
    if not name:
        own = sorted(key for key in changed if key in schema.per_broker_names or reloadable_of_listener(key))
        if own:
            raise ConfigError(
                f"Cannot update these configs at default cluster level, broker id must be specified: [{', '.join(own)}]"
            )
    for key, text in values.items():
        if key in keys:
            keys[key].parse(text)
    if (listed := changed.get(LISTENERS)) is not None:
        listeners = keys[LISTENERS].parse(listed)
        assert isinstance(listeners, tuple)
        check_listeners(listeners)
    for key, value in changed.items():
        if value is not None and not reloadable_of_listener(key) and unserved(key, value, keys):
            raise ConfigError(f"{shown(key, value, keys)} asks for protection, but {REASON}")
    if MIN_ISR in changed and view.image.features.level(ELR_FEATURE) > 0:
        if name:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
            )
        if changed[MIN_ISR] is None:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
            )
