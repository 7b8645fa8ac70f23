"""`barnabas produce`: records from standard input into a topic.

Keys go where the Java client would put them (murmur2), not where librdkafka would by default (CRC-32): a key typed here
lands next to the same key from Java, Spark, Flink, kafka-python and most others.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.failure import Failure
from barnabas.cli.output import Table
from barnabas.cli.session import Session, complete_topics, session_options

if TYPE_CHECKING:
    from confluent_kafka import Message, Producer

    from barnabas.cli.record_format import Given

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_PARTITIONERS = (
    "murmur2_random", "murmur2", "consistent_random", "consistent", "fnv1a_random", "fnv1a", "random",
)  # fmt: skip
_INTERRUPTED = 130


@click.command(
    epilog="Format letters: %k key, %v value, %h headers, %p partition, %t topic, %T timestamp; see `consume`."
)
@click.argument("topic", required=False, shell_complete=complete_topics)
@click.option("--topic", "-t", "more", hidden=True)
@click.option("-k", "--key", help="The key of every record.")
@click.option("-p", "--partition", type=click.IntRange(min=0), help="The partition of every record.")
@click.option(
    "-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of every record; repeat."
)
@click.option(
    "-K", "--key-delimiter", metavar="TEXT", help="What separates key and value in a line, such as ':' or '\\t'."
)
@click.option("-D", "--delimiter", default="\\n", show_default=True, metavar="TEXT", help="What ends a record.")
@click.option("-f", "--format", "template", metavar="FORMAT", help="How records look, such as '%k %v\\n', or json.")
@click.option("-Z", "--tombstone", "--null-empty", "tombstone", is_flag=True, help="Empty values are null: deletions.")
@click.option("-z", "--compression", type=click.Choice(_CODECS), help="Codec of the batches.")
@click.option(
    "--partitioner",
    type=click.Choice(_PARTITIONERS),
    default="murmur2_random",
    show_default=True,
    help="How a key chooses its partition. murmur2_random agrees with Java and most clients; librdkafka's own default,"
    " consistent_random, puts the same keys elsewhere.",
)
@click.option("--acks", type=click.Choice(["0", "1", "all", "-1"]), default="all", show_default=True)
@click.option("--allow-auto-topic-creation", is_flag=True, help="Let the broker create a missing topic.")
@click.option("-X", "extra", multiple=True, metavar="PROP=VALUE", help="A librdkafka setting; repeat.")
@session_options
def produce(
    session: Session,
    topic: str | None,
    more: str | None,
    key: str | None,
    partition: int | None,
    headers: tuple[str, ...],
    key_delimiter: str | None,
    delimiter: str,
    template: str | None,
    tombstone: bool,
    compression: str | None,
    partitioner: str,
    acks: str,
    allow_auto_topic_creation: bool,
    extra: tuple[str, ...],
) -> None:
    """Produce records from standard input, a line each.

    \b
    echo '{"qty": 2}' | barnabas produce orders -k customer-42
    barnabas produce orders -K: < keys-and-values.txt
    barnabas consume orders -f json -e | barnabas produce copy -f json
    """
    from barnabas.cli.record_format import line_reader, parse_header, reader, unescape

    topic = topic or more
    if template is not None and (key_delimiter is not None or delimiter != "\\n"):
        raise click.UsageError("--format says where keys and records end: leave out -K and -D.")
    try:
        if template is None:
            read = line_reader(unescape(delimiter), None if key_delimiter is None else unescape(key_delimiter))
        else:
            read = reader(template)
        common = [parse_header(header) for header in headers]
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if topic is None and (template is None or (template != "json" and "%t" not in template)):
        raise click.UsageError("Missing argument 'TOPIC' (or %t in the format).")
    if topic is not None and not allow_auto_topic_creation:
        _check_topic(session, topic, partition)
    run = _Run(session, topic, extra, {"acks": acks, "partitioner": partitioner, "compression.type": compression})
    keys = None if key is None else key.encode()
    stream = sys.stdin.buffer
    interrupted = False
    try:
        run.send_all(_complete(read(stream), keys, partition, common, tombstone))
    except ValueError as error:
        run.finish()
        raise Failure(str(error), f"{run.delivered} records before it were produced") from None
    except KeyboardInterrupt:
        interrupted = True  # what was read before it is produced, and told
    finally:
        run.finish()
    run.report()
    if interrupted:
        raise click.exceptions.Exit(_INTERRUPTED)


def _check_topic(session: Session, topic: str, partition: int | None) -> None:
    """Asks before reading: a mistyped topic should not wait for the input, nor for the library's time-out."""
    from barnabas.client.admin import result

    with session.admin() as admin:
        partitions = result(admin.describe_topics([topic])[topic]).partitions
    if partition is not None and partition >= len(partitions):
        raise Failure(f"topic {topic} has no partition {partition}", f"it has {len(partitions)}, from 0 on")


def _complete(
    records: Iterator[Given], key: bytes | None, partition: int | None, common: Any, tombstone: bool
) -> Iterator[Given]:
    for record in records:
        yield record._replace(
            value=None if tombstone and not record.value else record.value,
            key=record.key if key is None else key,
            partition=record.partition if partition is None else partition,
            headers=[*common, *(record.headers or ())],
        )


class _Run:
    """One producer from the first record to the last acknowledgement."""

    def __init__(self, session: Session, topic: str | None, extra: tuple[str, ...], options: dict[str, Any]) -> None:
        from confluent_kafka import KafkaException, Producer

        from barnabas.cli.librdkafka import client_settings

        settings = {name: value for name, value in options.items() if value is not None}
        settings["message.timeout.ms"] = session.timeout_ms
        try:
            self._producer: Producer = Producer(client_settings(session, extra, settings))
        except KafkaException as error:
            raise Failure(error.args[0].str(), "-X takes librdkafka's names of settings") from None
        self._session = session
        self._topic = topic
        self._partitions: Counter[tuple[str, int]] = Counter()
        self._bytes = 0
        self._error: tuple[Any, str] | None = None
        self._failed = 0

    @property
    def delivered(self) -> int:
        return self._partitions.total()

    def send_all(self, records: Iterator[Given]) -> None:
        """Hands records to the library until the input or the broker's patience ends.

        Raises:
            ValueError: the input does not fit the format.
        """
        for record in records:
            if self._error is not None:
                return
            topic = self._topic or record.topic
            if topic is None:
                raise ValueError("a record names no topic")
            arguments: dict[str, Any] = {
                "key": record.key,
                "headers": record.headers or None,
                "on_delivery": self._done,
            }
            if record.partition is not None:
                arguments["partition"] = record.partition
            if record.timestamp is not None:
                arguments["timestamp"] = record.timestamp
            self._produce(topic, record.value, arguments)

    def _produce(self, topic: str, value: bytes | None, arguments: dict[str, Any]) -> None:
        from confluent_kafka import KafkaException

        while True:
            try:
                self._producer.produce(topic, value, **arguments)
            except BufferError:  # the library's queue is full: wait for acknowledgements
                self._producer.poll(0.1)
                continue
            except OverflowError:
                raise ValueError("the partition or timestamp of a record is out of range") from None
            except KafkaException as error:
                self._error = self._error or (error.args[0], topic)
                self._failed += 1
            self._producer.poll(0)
            return

    def _done(self, error: Any, message: Message) -> None:
        if error is not None:
            self._failed += 1
            self._error = self._error or (error, str(message.topic()))
            return
        self._partitions[str(message.topic()), int(message.partition() or 0)] += 1
        self._bytes += len(message)

    def _explain_missing(self, topic: str) -> None:
        """The library waits for a topic until its time is up, and then speaks of time only.

        Raises:
            Failure: there is no such topic.
        """
        from barnabas.protocol.errors import ErrorCode, KafkaError

        try:
            with self._session.admin() as admin:
                found = admin.describe_topics([topic])[topic]
        except KafkaError:
            return
        if isinstance(found, KafkaError) and found.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise Failure(
                f"topic {topic} does not exist, and the broker made none: {self._failed} records were not produced",
                f"`barnabas topic create {topic}`; brokers make topics only with auto.create.topics.enable=true",
            )

    def finish(self) -> None:
        """Waits for the last acknowledgements."""
        self._producer.flush()

    def report(self) -> None:
        """Prints what was produced.

        Raises:
            Failure: something was not.
        """
        from barnabas.cli.librdkafka import library_failure

        if self._error is not None:
            error, topic = self._error
            self._explain_missing(topic)
            lost = f"{self._failed} of {self._failed + self.delivered} records were not produced"
            raise library_failure(error, f"{lost}: topic {topic}")
        columns = ("TOPIC", "PARTITION", "RECORDS")
        table = Table(columns, [(*where, count) for where, count in sorted(self._partitions.items())])
        data = {"records": self.delivered, "value_bytes": self._bytes, "partitions": table.objects()}
        if self._session.output.is_json:
            self._session.output.show(data)
        else:
            where = ", ".join(
                f"{topic}-{partition}: {count}" for (topic, partition), count in sorted(self._partitions.items())
            )
            plural = "" if self.delivered == 1 else "s"
            click.echo(f"produced {self.delivered} record{plural}{f' ({where})' if where else ''}")
