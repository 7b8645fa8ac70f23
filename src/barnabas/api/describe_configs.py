"""DescribeConfigs (API key 32, versions 1-4): settings, their values and where those come from.

- Of topics, this broker, the cluster-wide broker defaults (a broker with an empty name), this broker's loggers, groups and client
  metrics subscriptions. Every setting is listed, because clients expect Kafka's defaults too (`kafka-configs --describe --all`,
  librdkafka's test 0092).
- Synonyms and documentation only on request. Secret values are null.
- Each node describes only itself: the name of another one is INVALID_REQUEST, in Kafka's words. Errors are per resource.
- Loggers are this program's own, with Python's levels under Kafka's names.
- A group has one more entry, listed only for a request that names it: `barnabas.rebalances`, the rebalances that its coordinator has
  seen, as JSON (decision 7). Other brokers return NOT_COORDINATOR.

Version 1 adds synonyms and sources (KIP-226), 3 types and documentation (KIP-569), 4 is flexible. Loggers: KIP-412.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from barnabas.api.serving.context import AnyContext, RequestContext
from barnabas.coordinator.append_error import append_error
from barnabas.metadata.config_entries import ConfigEntry
from barnabas.metadata.config_schema import ConfigResourceType, ConfigSource, ConfigType
from barnabas.protocol import topic_names
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DescribeConfigsRequest, DescribeConfigsResponse
from barnabas.turns import RECORD, pace

_BROKER_LOGGER = 8
RESOURCE = 1_000
"""The cost to describe one resource: the settings of a topic take a millisecond."""

REBALANCES = "barnabas.rebalances"
_REBALANCES_DOC = "The last rebalances of the group that its coordinator has seen, as JSON."
_LEVELS = {"CRITICAL": "FATAL", "WARNING": "WARN", "NOTSET": "TRACE"}

_Asked = DescribeConfigsRequest.DescribeConfigsResource
_Result = DescribeConfigsResponse.DescribeConfigsResult
_Row = DescribeConfigsResponse.DescribeConfigsResourceResult


async def handle(context: AnyContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    response = DescribeConfigsResponse()
    for asked in request.resources:
        await pace(RESOURCE)
        wanted = await _distinct(asked.configuration_keys)
        result = _Result(resource_type=asked.resource_type, resource_name=asked.resource_name)
        response.results.append(result)
        try:
            result.configs = [_row(entry, request) for entry in _entries(context, asked, wanted)]
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = error.message
        is_of_group = asked.resource_type == ConfigResourceType.GROUP and REBALANCES in (wanted or ())
        # A controller has no groups.
        if is_of_group and isinstance(context, RequestContext):
            await _add_rebalances(context, request, result)
    return response


async def _distinct(names: Sequence[str] | None) -> dict[str, None] | None:
    """Return the names of the settings that are asked for; None for all."""
    if names is None:
        return None
    distinct: dict[str, None] = {}
    for name in names:
        await pace(RECORD)
        distinct[name] = None
    return distinct


async def _add_rebalances(context: RequestContext, request: DescribeConfigsRequest, result: _Result) -> None:
    """Add the rebalances of a group to its result, or the error."""
    # A broker without groups does not import their code.
    from barnabas.group.rebalance_history import to_json

    group_id = result.resource_name
    try:
        rebalances = await context.services.group_coordinator.read(group_id, lambda shard: shard.rebalances(group_id))
    except KafkaError as error:
        result.error_code, result.error_message = append_error(error), error.message
        return
    source = ConfigSource.DEFAULT_CONFIG
    entry = ConfigEntry(REBALANCES, to_json(rebalances), source, ConfigType.STRING, True, False, (), _REBALANCES_DOC)
    result.configs.append(_row(entry, request))


def _entries(context: AnyContext, asked: _Asked, wanted: Collection[str] | None) -> Sequence[ConfigEntry]:
    name = asked.resource_name
    resolver, image = context.services.config_resolver, context.services.image()
    kind = asked.resource_type
    if kind == ConfigResourceType.TOPIC:
        fault = topic_names.fault(name)
        if fault is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        if name not in image.topics.by_name:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        return resolver.describe_topic(image.configs, name, wanted)
    if kind == ConfigResourceType.BROKER:
        if not name:
            return resolver.describe_cluster_defaults(image.configs, wanted)
        _check_broker(context, name, "or empty string, but")
        return resolver.describe_broker(image.configs, wanted)
    if kind == _BROKER_LOGGER:
        if not name:
            raise _invalid("Broker id must not be empty")
        _check_broker(context, name, "but")
        return [entry for entry in _loggers() if not wanted or entry.name in wanted]
    if kind == ConfigResourceType.CLIENT_METRICS:
        if not name:
            raise _invalid("Client metrics subscription name must not be empty")
        return resolver.describe_client_metrics(image.configs, name, wanted)
    if kind == ConfigResourceType.GROUP:
        if not name:
            raise _invalid("Group name must not be empty")
        return resolver.describe_group(image.configs, name, wanted)
    raise _invalid(f"Unsupported resource type: {kind}")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _check_broker(context: AnyContext, name: str, conjunction: str) -> None:
    try:
        broker_id = int(name)
    except ValueError:
        raise _invalid(f"Broker id must be an integer, but it is: {name}") from None
    if broker_id != context.services.node_id:
        raise _invalid(f"Unexpected broker id, expected {context.services.node_id} {conjunction} received {name}")


def _loggers() -> list[ConfigEntry]:
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "barnabas"]
    loggers = {"root": logging.root, **{name: logging.getLogger(name) for name in sorted(names)}}
    found = []
    for name, logger in loggers.items():
        level = logging.getLevelName(logger.getEffectiveLevel())
        source = ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
        found.append(ConfigEntry(name, _LEVELS.get(level, level), source, ConfigType.UNKNOWN, False, False, (), None))
    return found


def _row(entry: ConfigEntry, request: DescribeConfigsRequest) -> _Row:
    synonyms = [
        DescribeConfigsResponse.DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
        for synonym in (entry.synonyms if request.include_synonyms else ())
    ]
    return _Row(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=synonyms,
        config_type=entry.kind,
        documentation=entry.documentation if request.include_documentation else None,
    )
