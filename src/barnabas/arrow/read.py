"""`barnabas.read`: the records of topics as Arrow, without Spark.

Both ends of the range are fixed at the call. The end is the last stable offset unless open transactions are read too, so
no reading waits for a transaction.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from barnabas.arrow.positions import Place, parse_place, settle
from barnabas.client.bootstrap import parse_bootstrap
from barnabas.security.client_security import client_security
from barnabas.spark.security_options import of_client
from barnabas.spark.source.batch_range import batch_range
from barnabas.spark.source.columns import TYPES
from barnabas.spark.source.offset_reader import OffsetReader
from barnabas.spark.source.offsets import Earliest, Latest, Position
from barnabas.spark.source.option_words import OptionWords
from barnabas.spark.source.options import (
    Assign,
    ConsumerSettings,
    SourceOptions,
    Subscribe,
    TimestampStrategy,
    isolation_level,
)
from barnabas.spark.source.ranges import OffsetRange
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable
from barnabas.words.requirements import needed_by

with needed_by("barnabas.read", "read"):
    from barnabas.arrow.records import LedRange, Records

DEFAULT_BOOTSTRAP = "localhost:9092"
CLIENT_ID = "barnabas-read"
_FETCH_WAIT_MS = 500
READ_WORDS = OptionWords(
    starting="from_",
    ending="to",
    patience="timeout_ms",
    uncommitted='isolation="read_uncommitted"',
    skips="fail_on_data_loss is False",
    gone=(
        "Retention or an administrator removed them, or the topic was created again. fail_on_data_loss=False reads what "
        "is left."
    ),
)


def read(
    topics: str | Sequence[str],
    *,
    from_: Place = "earliest",
    to: Place = "latest",
    bootstrap: str = DEFAULT_BOOTSTRAP,
    partitions: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    key: str = "binary",
    value: str = "binary",
    isolation: str = "read_committed",
    fail_on_data_loss: bool = True,
    timeout_ms: int = 30_000,
    security: Mapping[str, str] | None = None,
) -> Records:
    """Return the records of topics between two positions, as Arrow.

    Both positions are fixed now. The records are fetched when the result is read, a few megabytes at a time, and again
    each time that it is read. It needs the extra `read`, and neither Spark nor Java.

    Args:
        topics: a name, or several.
        from_, to: `"earliest"`, `"latest"`, a time (`"-1h"`, ISO 8601, a `datetime`), `"group:NAME"`, `"cut:NAME"`, an
            offset, `"+2"` after the start, `"-3"` before the end, or offsets by partition. The record at `to` is not read.
        bootstrap: addresses of brokers.
        partitions: only these.
        columns: only these of key, value, topic, partition, offset, timestamp, timestampType and headers, in this order.
        key, value: `"binary"`, or `"text"` for UTF-8.
        isolation: `"read_committed"` or `"read_uncommitted"`.
        fail_on_data_loss: whether records of the range that are gone are an error; otherwise a warning is logged.
        timeout_ms: how long the cluster may not answer, or no record arrive.
        security: TLS and login, in the names of Kafka's Java client: `{"security.protocol": "SASL_SSL", …}`; others are ignored.

    Raises:
        ValueError: an argument is not valid; the cluster does not know the group or the cut; `from_` is after `to`.
        KafkaError: a topic does not exist, or no broker responds.
        DataLoss: the log does not reach `to`; reading raises it, too.
        NotInstalled: pyarrow or numpy is missing.
    """
    texts = [name for name, kind in {"key": key, "value": value}.items() if _is_text(name, kind)]
    names = [topics] if isinstance(topics, str) else list(topics)
    options = reading_options(names, bootstrap, timeout_ms, isolation, READ_WORDS, partitions, security)
    options = replace(options, columns=_columns(columns), fail_on_data_loss=fail_on_data_loss)
    return fixed(options, from_, to, texts)


def reading_options(
    topics: Sequence[str],
    bootstrap: str,
    timeout_ms: int,
    isolation: str,
    words: OptionWords,
    partitions: Sequence[int] | None = None,
    security: Mapping[str, str] | None = None,
) -> SourceOptions:
    """Return the source's options for a reader without Spark: all columns, from the earliest offset to the latest.

    Raises:
        ValueError: an argument is not valid.
    """
    if not topics or not all(topics):
        raise ValueError("name at least one topic")
    parse_bootstrap(bootstrap)
    secured = dict(security or {})
    client_security(secured)
    chosen = None if partitions is None else tuple(sorted({(name, at) for name in topics for at in partitions}))
    return SourceOptions(
        bootstrap_servers=bootstrap,
        topics=Subscribe(tuple(sorted(set(topics)))) if chosen is None else Assign(chosen),
        starting=Earliest(),
        ending=Latest(),
        # A partition without a record at or after the time has none to read.
        timestamp_strategy=TimestampStrategy.LATEST,
        fail_on_data_loss=True,
        losses_topic=None,
        min_partitions=None,
        max_records_per_partition=None,
        max_offsets_per_trigger=None,
        min_offsets_per_trigger=None,
        max_trigger_delay_ms=0,
        min_record_age_ms=0,
        columns=tuple(TYPES),
        group_id=None,
        poll_timeout_ms=timeout_ms,
        fetch_offset_retries=3,
        fetch_offset_retry_interval_ms=1_000,
        api_timeout_ms=timeout_ms,
        consumer=ConsumerSettings(
            CLIENT_ID,
            isolation_level("isolation", isolation),
            request_timeout_ms=timeout_ms,
            fetch_max_wait_ms=min(_FETCH_WAIT_MS, timeout_ms // 4),  # an answer is not to come after the time-out
        ),
        words=words,
        security=of_client(secured),
    )


def fixed(options: SourceOptions, from_: Place, to: Place, texts: Sequence[str]) -> Records:
    """Return the records between two places, fixed now; errors are those of `read`."""
    now_ms = time.time_ns() // 1_000_000
    topics = _topics(options)
    begin, end = parse_place(from_, topics, now_ms), parse_place(to, topics, now_ms)
    with closing(OffsetReader(options)) as reader:
        partitions = reader.partitions()
        options = replace(options, starting=settle(begin, reader, partitions), ending=settle(end, reader, partitions))
    # A reader answers for one query, whose limits are known only now.
    with closing(OffsetReader(options)) as reader:
        return Records(options, _led(reader, *batch_range(reader, options)), texts)


def _led(reader: OffsetReader, start: Position, end: Position) -> list[LedRange]:
    leaders = reader.leaders(end)
    return [
        LedRange(OffsetRange(topic, partition, start[topic, partition], offset), leaders[topic, partition])
        for (topic, partition), offset in sorted(end.items())
    ]


def _topics(options: SourceOptions) -> list[str]:
    chosen = options.topics
    if isinstance(chosen, Assign):
        return list(dict.fromkeys(topic for topic, _ in chosen.partitions))
    return list(chosen.topics) if isinstance(chosen, Subscribe) else []


def _columns(names: Sequence[str] | None) -> tuple[str, ...]:
    if names is None:
        return tuple(TYPES)
    for name in names:
        if name not in TYPES:
            raise ValueError(
                f"columns has '{printable(name)}', and a topic has {', '.join(TYPES)}{did_you_mean(name, TYPES)}"
            )
    if len(set(names)) < len(names):
        raise ValueError("columns has a name twice")
    return tuple(names)


def _is_text(name: str, kind: str) -> bool:
    if kind not in ("binary", "text"):
        raise ValueError(f"{name} must be binary or text, not '{printable(kind)}'")
    return kind == "text"
