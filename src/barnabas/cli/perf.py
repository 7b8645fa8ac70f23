"""`barnabas perf`: produce, consume, latency. Loads any Kafka cluster; figures are named as Kafka's performance tools name them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from confluent_kafka import Consumer, Producer

from barnabas.cli.failure import Failure
from barnabas.cli.librdkafka import connected
from barnabas.cli.log_bounds import Bounds, log_bounds
from barnabas.cli.named_topics import existing_topic
from barnabas.cli.output import Table
from barnabas.cli.partitions import named_partitions
from barnabas.cli.perf_load import ConsumeLoad, ProduceLoad, RoundTrips
from barnabas.cli.progress import Measured, shown
from barnabas.cli.session import Session, complete_topics, session_options
from barnabas.cli.termination import ends_cleanly
from barnabas.client.admin import TopicPartition

_INTERRUPTED = 130
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_LEAST_BYTES = 16
"""A record of `latency` carries a number by which it is known again."""

_topic = click.argument("topic", shell_complete=complete_topics)
_settings = click.option("-X", "extra", multiple=True, metavar="KEY=VALUE", help="A setting of librdkafka; repeat.")
_acks = click.option("--acks", type=click.Choice(["0", "1", "all", "-1"]), default="all", show_default=True,
                     help="Which replicas must have a record.")  # fmt: skip


def _count(default: int | None, text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option("-n", "--num-records", "records", type=click.IntRange(min=1), default=default,
                        show_default=default is not None, help=text)  # fmt: skip


def _size(default: int, least: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option("--record-size", "size", type=click.IntRange(min=least), default=default, show_default=True,
                        help="Bytes of a record's value.")  # fmt: skip


@click.group()
def perf() -> None:
    """Load a cluster and measure: produce, consume, latency."""


@perf.command()
@_topic
@_count(100_000, "Records to send.")
@_size(1000, 1)
@click.option(
    "--throughput", type=click.FloatRange(min=0, min_open=True), help="Records a second.  [default: unlimited]"
)
@click.option("-z", "--compression", type=click.Choice(_CODECS), default="none", show_default=True, help="Codec.")
@_acks
@_settings
@session_options
def produce(
    session: Session,
    topic: str,
    records: int,
    size: int,
    throughput: float | None,
    compression: str,
    acks: str,
    extra: tuple[str, ...],
) -> None:
    """Send records to TOPIC, which keeps them, and measure.

    \b
    barnabas perf produce load -n 1000000 --record-size 100
    """
    with session.admin() as admin:
        existing_topic(admin, topic, may_create=False)
    settings = {"acks": acks, "compression.type": compression, "linger.ms": 5, "message.timeout.ms": session.timeout_ms}
    load = ProduceLoad(
        connected(Producer, session, extra, settings), topic, records=records, size=size, rate=throughput
    )
    with _running(lambda: Measured(load.line(), load.acknowledged, records)) as interrupted:
        load.run()
    found = load.figures()
    columns = (
        "RECORDS-SENT",
        "RECORDS/SEC",
        "MB/SEC",
        "AVG-LATENCY-MS",
        "MAX-LATENCY-MS",
        "P50-MS",
        "P95-MS",
        "P99-MS",
        "P999-MS",
    )
    row = [found.records_sent, found.records_per_sec, found.mb_per_sec, *found.latency]
    data = {**found._asdict(), **found.latency._asdict()}
    del data["latency"]
    session.output.show(data, Table(columns, [row], vertical=True))
    _end(interrupted)


@perf.command()
@_topic
@_count(None, "Records to read.  [default: all that are there]")
@_settings
@session_options
def consume(session: Session, topic: str, records: int | None, extra: tuple[str, ...]) -> None:
    """Read TOPIC from its beginning, and measure. It joins no group."""
    found = _bounds(session, topic)
    bounds = {(at.topic, at.partition): (begin or 0, end) for at, (begin, end) in found.items() if end is not None}
    if not any(begin < end for begin, end in bounds.values()):
        raise Failure(f"topic {topic} has no record to read", f"`barnabas perf produce {topic}` sends some")
    consumer = connected(Consumer, session, extra, _reading())
    load = ConsumeLoad(consumer, bounds, records=records, timeout_s=session.timeout_ms / 1000)
    try:
        with _running(lambda: Measured(load.line(), load.records, load.wanted)) as interrupted:
            load.run()
    finally:
        consumer.close()
    figures = load.figures()
    columns = (
        "DATA-CONSUMED-IN-MB", "MB/SEC", "DATA-CONSUMED-IN-NMSG", "NMSG/SEC", "FIRST-RECORD-MS", "FETCH-TIME-MS",
        "FETCH-MB/SEC", "FETCH-NMSG/SEC",
    )  # fmt: skip
    session.output.show(figures._asdict(), Table(columns, [figures], vertical=True))
    _end(interrupted)


@perf.command()
@_topic
@_count(1000, "Records to send, one at a time.")
@_size(100, _LEAST_BYTES)
@_acks
@_settings
@session_options
def latency(session: Session, topic: str, records: int, size: int, acks: str, extra: tuple[str, ...]) -> None:
    """Send a record to TOPIC and read it back, again and again.

    The latency is end to end: from the producer to the consumer.
    """
    found = _bounds(session, topic)
    ends = {(at.topic, at.partition): end for at, (_, end) in found.items() if end is not None}
    if not ends:
        raise Failure(f"no partition of topic {topic} has a leader", f"`barnabas topic describe {topic}` says why")
    sending = {"acks": acks, "linger.ms": 0, "message.timeout.ms": session.timeout_ms}
    producer = connected(Producer, session, extra, sending)
    consumer = connected(Consumer, session, extra, _reading())
    load = RoundTrips(producer, consumer, ends, records=records, size=size, timeout_s=session.timeout_ms / 1000)
    try:
        with _running(lambda: Measured(load.line(), load.done, records)) as interrupted:
            load.run()
    finally:
        consumer.close()
    figures = load.figures()
    columns = ("RECORDS", "AVG-LATENCY-MS", "MAX-LATENCY-MS", "P50-MS", "P95-MS", "P99-MS", "P999-MS")
    data = {"records": load.done, **figures._asdict()}
    session.output.show(data, Table(columns, [(load.done, *figures)], vertical=True))
    _end(interrupted)


def _reading() -> dict[str, object]:
    """Return the settings of a consumer without commits, which are not part of a load."""
    return {
        "group.id": "barnabas-perf",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        # Else the library pauses for a second whenever its queue is full, and the rate is that of these seconds.
        "fetch.queue.backoff.ms": 1,
        "fetch.error.backoff.ms": 10,
    }


def _bounds(session: Session, topic: str) -> dict[TopicPartition, Bounds]:
    """Return where the log of each partition begins and ends."""
    with session.admin() as admin:
        return log_bounds(admin, named_partitions(admin, [topic]))


@contextmanager
def _running(measure: Callable[[], Measured]) -> Iterator[list[bool]]:
    """Show the progress of a block; a Ctrl-C ends it, and the list that it yields is then not empty."""
    interrupted: list[bool] = []
    try:
        with ends_cleanly(), shown(measure):
            yield interrupted
    except KeyboardInterrupt:
        interrupted.append(True)


def _end(interrupted: list[bool]) -> None:
    if interrupted:
        raise click.exceptions.Exit(_INTERRUPTED)
