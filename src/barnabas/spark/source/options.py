"""The options of `format("barnabas")`, checked once and parsed into values.

The names are those of Spark's own Kafka source, compared without regard to case, as Spark does. Options that Spark's
source rejects are rejected here with the same message, so a job that moves from one source to the other fails in the
same place.

Options that begin with `kafka.` configure the consumer. Those of TLS and login are in `security_options`. Settings that
this source does not use are accepted without effect, because jobs bring them from Spark's source.
`kafka.max.partition.fetch.bytes` is 8 MB by default: a task reads one partition, and small fetches are slow.
`kafka.isolation.level` is `read_committed` by default, unlike Kafka's: the rows of a transaction that was aborted are
rows that its writer took back.

The table in `docs/spark.md` has each option with its default and meaning; a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from barnabas.spark.given_options import GivenOptions, addresses
from barnabas.spark.option_names import SOURCE_OPTIONS, check_names
from barnabas.spark.security_options import NO_SECURITY, SecurityOptions, security_options
from barnabas.spark.source.columns import chosen_columns, schema
from barnabas.spark.source.offsets import (
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    ByPartitionTimestamp,
    ByTimestamp,
    Earliest,
    Latest,
    OffsetLimit,
    Specific,
    TopicPartition,
    assignment_from_json,
    check_order,
    limit_from_text,
    timestamp_ms,
    timestamps_from_json,
)
from barnabas.spark.source.option_words import SPARK, OptionWords
from barnabas.words.printable import printable

_STRATEGIES = ("subscribe", "subscribepattern", "assign")
_STRATEGY_NAMES = "subscribe, subscribePattern, assign"
_DURATION = re.compile(r"(\d+)\s*(us|ms|s|m|min|h|d)?", re.IGNORECASE)
_DURATION_MS = {"us": 0.001, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class IsolationLevel(Enum):
    """Whether to read records of transactions that are not committed; the value is that of the protocol."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class TimestampStrategy(Enum):
    """The behaviour of a query if a partition has no record at or after its starting timestamp."""

    ERROR = "error"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Whole topics by name."""

    topics: tuple[str, ...]

    def __str__(self) -> str:
        return ", ".join(self.topics)

    def includes(self, at: TopicPartition) -> bool:
        """Return whether the query reads a partition, if it exists."""
        return at[0] in self.topics


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """Every topic whose whole name matches a regular expression, also those created later."""

    pattern: str

    def __str__(self) -> str:
        return f"topics that match {self.pattern}"

    def includes(self, at: TopicPartition) -> bool:
        """Return whether the query reads a partition, if it exists."""
        return re.fullmatch(self.pattern, at[0]) is not None


@dataclass(frozen=True, slots=True)
class Assign:
    """Exactly these partitions."""

    partitions: tuple[TopicPartition, ...]

    def __str__(self) -> str:
        return ", ".join(f"{topic}-{partition}" for topic, partition in self.partitions)

    def includes(self, at: TopicPartition) -> bool:
        """Return whether the query reads a partition, if it exists."""
        return at in self.partitions


TopicSelection: TypeAlias = Subscribe | SubscribePattern | Assign


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """The `kafka.` settings that this source uses, with Kafka's names."""

    client_id: str
    isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED
    request_timeout_ms: int = 30_000
    # A task reads one partition over its own connection, so the limit of the partition is the limit of the fetch.
    fetch_max_bytes: int = 8 << 20
    fetch_max_wait_ms: int = 500
    check_crcs: bool = True


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """A query's options as values; a stream does not use `ending`."""

    bootstrap_servers: str
    topics: TopicSelection
    starting: OffsetLimit
    ending: OffsetLimit
    timestamp_strategy: TimestampStrategy
    fail_on_data_loss: bool
    losses_topic: str | None
    min_partitions: int | None
    max_records_per_partition: int | None
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    min_record_age_ms: int
    columns: tuple[str, ...]
    group_id: str | None
    poll_timeout_ms: int
    fetch_offset_retries: int
    fetch_offset_retry_interval_ms: int
    api_timeout_ms: int
    consumer: ConsumerSettings
    words: OptionWords = SPARK
    security: SecurityOptions = NO_SECURITY


def schema_of(options: Mapping[str, str]) -> str:
    """Return the source's columns as Spark's schema text.

    Raises:
        ValueError: as `check_options`.
    """
    check_options(options)
    return schema(chosen_columns(GivenOptions(options)))


def check_options(options: Mapping[str, str]) -> None:
    """Check what can be checked before it is known whether the query is a batch or a stream.

    Raises:
        ValueError: a name is nearly that of an option, an address is not valid, or TLS and login cannot be set up; the
            message is for the user.
    """
    given = GivenOptions(options)
    check_names(options, SOURCE_OPTIONS)
    addresses(given)
    chosen_columns(given)
    security_options(given)


def parse_batch_options(options: Mapping[str, str], now_ms: int) -> SourceOptions:
    """Parse the options of `spark.read`.

    Args:
        options: as Spark passes them; keys in any case.
        now_ms: the current time, for timestamps such as `-2h`.

    Raises:
        ValueError: an option is missing, invalid, not supported or contradicts another; the message is for the user.
    """
    given = GivenOptions(options)
    parsed = _parse(given, now_ms, default_start=Earliest())
    if parsed.starting == Latest():
        raise ValueError("starting offset can't be latest for batch queries on Kafka")
    if isinstance(parsed.starting, Specific):
        _refuse_offset(
            parsed.starting, LATEST_OFFSET, "startingOffsets for {} can't be latest for batch queries on Kafka"
        )
    if parsed.ending == Earliest():
        raise ValueError("ending offset can't be earliest for batch queries on Kafka")
    if isinstance(parsed.ending, Specific):
        _refuse_offset(
            parsed.ending, EARLIEST_OFFSET, "ending offset for {} can't be earliest for batch queries on Kafka"
        )
    check_order(parsed.starting, parsed.ending)
    return parsed


def parse_stream_options(options: Mapping[str, str], now_ms: int) -> SourceOptions:
    """Parse the options of `spark.readStream`; arguments and errors as in `parse_batch_options`."""
    given = GivenOptions(options)
    for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
        if given.text(name) is not None:
            raise ValueError("ending offset not valid in streaming queries")
    parsed = _parse(given, now_ms, default_start=Latest())
    least, most = parsed.min_offsets_per_trigger, parsed.max_offsets_per_trigger
    if least is not None and most is not None and least > most:
        raise ValueError(f"The value of minOffsetPerTrigger({least}) is higher than the maxOffsetsPerTrigger({most}).")
    return parsed


def isolation_level(option: str, text: str) -> IsolationLevel:
    """Return the level that a user names.

    Raises:
        ValueError: there is no such level; the message names the option.
    """
    level = text.strip().upper()
    if level not in IsolationLevel.__members__:
        raise ValueError(f"{option} must be read_uncommitted or read_committed, not '{printable(level.lower())}'")
    return IsolationLevel[level]


def duration_ms(text: str) -> int:
    """Return a duration in Spark's form (`15m`, `30s`, `500` for milliseconds) as milliseconds."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is not a valid duration: write for example 500ms, 30s, 15m or 2h")
    return int(int(match[1]) * _DURATION_MS[(match[2] or "ms").lower()])


def _parse(given: GivenOptions, now_ms: int, default_start: OffsetLimit) -> SourceOptions:
    check_names(given.names(), SOURCE_OPTIONS)
    topics = _topics(given)
    min_partitions = given.positive("minPartitions")
    max_records = given.positive("maxRecordsPerPartition")
    _refuse_consumer_settings(given)
    servers = addresses(given)
    if not servers:
        raise ValueError("Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer")
    strategy = (given.text("startingOffsetsByTimestampStrategy") or "error").strip().lower()
    if strategy not in ("error", "latest"):
        raise ValueError(f"startingOffsetsByTimestampStrategy must be error or latest, not '{strategy}'")
    retries = given.not_negative("fetchOffset.numRetries", 3)
    return SourceOptions(
        bootstrap_servers=servers,
        topics=topics,
        starting=_limit(given, "starting", default_start, now_ms),
        ending=_limit(given, "ending", Latest(), now_ms),
        timestamp_strategy=TimestampStrategy(strategy),
        fail_on_data_loss=given.boolean("failOnDataLoss", True),
        losses_topic=given.text("lossesTopic") or None,
        min_partitions=min_partitions,
        max_records_per_partition=max_records,
        max_offsets_per_trigger=given.positive("maxOffsetsPerTrigger"),
        min_offsets_per_trigger=given.positive("minOffsetsPerTrigger"),
        max_trigger_delay_ms=duration_ms(given.text("maxTriggerDelay") or "15m"),
        min_record_age_ms=duration_ms(given.text("minRecordAge") or "0"),
        columns=chosen_columns(given),
        group_id=given.text("kafka.group.id") or None,
        poll_timeout_ms=given.positive("kafkaConsumer.pollTimeoutMs") or 120_000,
        fetch_offset_retries=retries,
        fetch_offset_retry_interval_ms=given.not_negative("fetchOffset.retryIntervalMs", 1000),
        api_timeout_ms=given.not_negative("kafka.default.api.timeout.ms", 60_000),
        consumer=_consumer(given),
        security=security_options(given),
    )


def _topics(given: GivenOptions) -> TopicSelection:
    chosen = [name for name in _STRATEGIES if given.text(name) is not None]
    if not chosen:
        raise ValueError(
            f"One of the following options must be specified for Kafka source: {_STRATEGY_NAMES}. "
            "See the docs for more details."
        )
    if len(chosen) > 1:
        raise ValueError(
            f"Only one of the following options can be specified for Kafka source: {_STRATEGY_NAMES}. "
            "See the docs for more details."
        )
    value = given.text(chosen[0]) or ""
    if chosen[0] == "assign":
        if not value.strip().startswith("{"):
            raise ValueError(f"No topicpartitions to assign as specified value for option 'assign' is '{value}'")
        return Assign(tuple(assignment_from_json(value)))
    if chosen[0] == "subscribe":
        names = sorted({name.strip() for name in value.split(",")} - {""})
        if not names:
            raise ValueError(f"No topics to subscribe to as specified value for option 'subscribe' is '{value}'")
        return Subscribe(tuple(names))
    pattern = value.strip()
    if not pattern:
        raise ValueError(f"Pattern to subscribe is empty as specified value for option 'subscribePattern' is '{value}'")
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"subscribePattern '{pattern}' is not a valid regular expression: {error}") from None
    return SubscribePattern(pattern)


def _limit(given: GivenOptions, side: str, default: OffsetLimit, now_ms: int) -> OffsetLimit:
    if (moment := given.text(f"{side}Timestamp")) is not None:
        return ByTimestamp(timestamp_ms(moment, now_ms))
    if (moments := given.text(f"{side}OffsetsByTimestamp")) is not None:
        return ByPartitionTimestamp(timestamps_from_json(moments, now_ms))
    offsets = given.text(f"{side}Offsets")
    return default if offsets is None else limit_from_text(offsets, now_ms)


def _consumer(given: GivenOptions) -> ConsumerSettings:
    default = ConsumerSettings(client_id="")
    level = given.text("kafka.isolation.level") or default.isolation_level.name
    partition_bytes = given.positive("kafka.max.partition.fetch.bytes") or default.fetch_max_bytes
    return ConsumerSettings(
        client_id=given.text("kafka.client.id") or given.text("groupIdPrefix") or "spark-kafka-source",
        isolation_level=isolation_level("kafka.isolation.level", level),
        request_timeout_ms=given.positive("kafka.request.timeout.ms") or default.request_timeout_ms,
        fetch_max_bytes=min(partition_bytes, given.positive("kafka.fetch.max.bytes") or partition_bytes),
        fetch_max_wait_ms=given.not_negative("kafka.fetch.max.wait.ms", default.fetch_max_wait_ms),
        check_crcs=given.boolean("kafka.check.crcs", default.check_crcs),
    )


_REFUSED = {
    "kafka.auto.offset.reset": (
        "Kafka option 'auto.offset.reset' is not supported. Instead set the source option 'startingOffsets' to "
        "'earliest' or 'latest' to specify where to start. It applies when a new query is started; resuming always "
        "picks up from where the query left off."
    ),
    "kafka.key.deserializer": (
        "Kafka option 'key.deserializer' is not supported as keys are read as byte arrays. "
        "Use DataFrame operations to explicitly deserialize the keys."
    ),
    "kafka.value.deserializer": (
        "Kafka option 'value.deserializer' is not supported as values are read as byte arrays. "
        "Use DataFrame operations to explicitly deserialize the values."
    ),
    "kafka.enable.auto.commit": "Kafka option 'enable.auto.commit' is not supported",
    "kafka.interceptor.classes": "Kafka option 'interceptor.classes' is not supported",
}


def _refuse_consumer_settings(given: GivenOptions) -> None:
    for name, sentence in _REFUSED.items():
        if given.text(name) is not None:
            raise ValueError(sentence)


def _refuse_offset(limit: Specific, offset: int, sentence: str) -> None:
    for topic, partition in sorted(limit.offsets):
        if limit.offsets[topic, partition] == offset:
            raise ValueError(sentence.format(f"{topic}-{partition}"))
