"""The options of `df.writeStream.format("barnabas")` and `df.write.format("barnabas")`, checked once.

The names are those of Spark's own Kafka sink, compared without regard to case, and more. Options that begin with
`kafka.` configure the producer. Those that would break the guarantee are rejected; those of TLS and login are in
`security_options`; others that this sink does not use are accepted without effect, because jobs bring them from Spark's sink.

The table in `docs/spark-sink.md` has each option with its default and meaning; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from barnabas.client.topics import NewTopic
from barnabas.records.compression import Compression
from barnabas.spark.given_options import GivenOptions, addresses
from barnabas.spark.option_names import SINK_OPTIONS, check_names
from barnabas.spark.security_options import NO_SECURITY, SecurityOptions, security_options
from barnabas.spark.sink.new_topics import parse_new_topics
from barnabas.words.printable import printable

DEFAULT_PREFIX = "barnabas-sink"


class Delivery(Enum):
    """The guarantee of the sink."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """A query's options as values.

    Attributes:
        topic: where every row goes; None if the column `topic` says so.
        query: names a batch write's sequence of batches; None in streams.
        batch: the number of a batch write; None in streams.
        chooses_timeout: whether the user chose the transaction timeout.
        fail_on_different: whether a repeated batch with other rows is an error.
        checkpoint: where Spark keeps a stream's ids, if the option says so.
        new_topics: topics that are created if they do not exist.
    """

    bootstrap_servers: str
    delivery: Delivery
    topic: str | None = None
    prefix: str = DEFAULT_PREFIX
    query: str | None = None
    batch: int | None = None
    compression: Compression = Compression.NONE
    client_id: str = "barnabas-spark-sink"
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: int = 120_000
    transaction_timeout_ms: int = 900_000
    chooses_timeout: bool = False
    max_request_bytes: int = 1_000_000
    fail_on_different: bool = True
    checkpoint: str | None = None
    new_topics: tuple[NewTopic, ...] = ()
    security: SecurityOptions = NO_SECURITY

    def sink_name(self, query: str) -> str:
        """Return the name under which a query's decisions are kept, and its transactional ids begin.

        Neither part has a slash, so that two sinks never have one name.
        """
        return f"{self.prefix}/{query}"


def parse_stream_options(options: Mapping[str, str]) -> SinkOptions:
    """Parse the options of `df.writeStream`.

    Raises:
        ValueError: an option is missing, invalid, not supported or contradicts another; the message is for the user.
    """
    given = GivenOptions(options)
    for name in ("queryId", "batchId"):
        if given.text(name) is not None:
            raise ValueError(f"{name} is for batch writes: a stream's query and batch have ids of their own")
    return _parse(given, _delivery(given) or Delivery.EXACTLY_ONCE, None, None)


def parse_batch_options(options: Mapping[str, str]) -> SinkOptions:
    """Parse the options of `df.write`; raises as `parse_stream_options`."""
    given = GivenOptions(options)
    query, batch = given.text("queryId"), given.integer("batchId")
    delivery = _delivery(given)
    if (query is None) != (batch is None):
        raise ValueError(
            "queryId and batchId belong together: the name of a sequence of writes, and the write's number"
        )
    if query is None and delivery is Delivery.EXACTLY_ONCE:
        raise ValueError(
            "exactly-once delivery of a batch write needs the options queryId and batchId: a name, and a number that"
            " grows with every write and is the same when a write is repeated. In foreachBatch, pass its batch id"
        )
    if query is not None and (not query.strip() or "/" in query):
        raise ValueError(f"queryId '{printable(query)}' is not a valid name: it is empty, or has a slash")
    if batch is not None and batch < 0:
        raise ValueError("batchId must not be negative")
    if delivery is None:
        delivery = Delivery.AT_LEAST_ONCE if query is None else Delivery.EXACTLY_ONCE
    return _parse(given, delivery, query, batch)


def _delivery(given: GivenOptions) -> Delivery | None:
    text = given.text("delivery")
    if text is None:
        return None
    try:
        return Delivery(text.strip().lower())
    except ValueError:
        raise ValueError(f"delivery must be exactly-once or at-least-once, not '{printable(text)}'") from None


def _parse(given: GivenOptions, delivery: Delivery, query: str | None, batch: int | None) -> SinkOptions:
    check_names(given.names(), SINK_OPTIONS)
    _refuse_producer_settings(given)
    servers = addresses(given)
    if not servers:
        raise ValueError("Option 'kafka.bootstrap.servers' must be specified for configuring Kafka producer")
    prefix = (given.text("transactionalIdPrefix") or DEFAULT_PREFIX).strip()
    if "/" in prefix:
        raise ValueError(f"transactionalIdPrefix '{printable(prefix)}' has a slash: choose a name without one")
    default = SinkOptions("", delivery)
    timeout = given.positive("kafka.transaction.timeout.ms")
    return SinkOptions(
        bootstrap_servers=servers,
        delivery=delivery,
        topic=given.text("topic") or None,
        prefix=prefix,
        query=query,
        batch=batch,
        compression=_compression(given),
        client_id=given.text("kafka.client.id") or default.client_id,
        request_timeout_ms=given.positive("kafka.request.timeout.ms") or default.request_timeout_ms,
        delivery_timeout_ms=given.positive("kafka.delivery.timeout.ms") or default.delivery_timeout_ms,
        transaction_timeout_ms=timeout or default.transaction_timeout_ms,
        chooses_timeout=timeout is not None,
        max_request_bytes=given.positive("kafka.max.request.size") or default.max_request_bytes,
        fail_on_different=given.boolean("failOnDifferentBatch", default.fail_on_different),
        checkpoint=given.text("checkpointLocation"),
        new_topics=parse_new_topics(given.text("createTopics") or ""),
        security=security_options(given),
    )


def _compression(given: GivenOptions) -> Compression:
    try:
        return Compression.from_name((given.text("kafka.compression.type") or "none").strip())
    except ValueError as error:
        raise ValueError(f"kafka.compression.type: {error}") from None


_REFUSED = {
    "kafka.key.serializer": (
        "Kafka option 'key.serializer' is not supported as keys are serialized with ByteArraySerializer."
    ),
    "kafka.value.serializer": (
        "Kafka option 'value.serializer' is not supported as values are serialized with ByteArraySerializer."
    ),
    "kafka.interceptor.classes": "Kafka option 'interceptor.classes' is not supported",
    "kafka.transactional.id": (
        "Kafka option 'transactional.id' is not supported: the sink has one for each task; name them with"
        " transactionalIdPrefix"
    ),
    "kafka.partitioner.class": (
        "Kafka option 'partitioner.class' is not supported: the column partition chooses a row's partition, else its key"
    ),
}
_REQUIRED = {
    "kafka.acks": ("all", "-1"),
    "kafka.enable.idempotence": ("true",),
}


def _refuse_producer_settings(given: GivenOptions) -> None:
    for name, sentence in _REFUSED.items():
        if given.text(name) is not None:
            raise ValueError(sentence)
    for name, accepted in _REQUIRED.items():
        value = given.text(name)
        if value is not None and value.strip().lower() not in accepted:
            raise ValueError(
                f"{name} '{printable(value)}' is not supported by format(\"barnabas\"): it supports {accepted[0]} only"
            )
