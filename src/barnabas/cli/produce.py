"""`barnabas produce`: records from standard input into a topic.

The default partitioner is that of the Java client (murmur2), not of librdkafka (CRC-32): a key goes to the partition where Java,
Spark, Flink, kafka-python and most others write it.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO

import click

from barnabas.cli.failure import Failure, Missing, failure_of
from barnabas.cli.lines import Lines
from barnabas.cli.named_topics import existing_topic, with_checked_topics
from barnabas.cli.progress import InputFile, on_terminal, shown
from barnabas.cli.record_format import unescape
from barnabas.cli.record_limit import topic_limit
from barnabas.cli.record_reader import Common, Given, parse_header, reader
from barnabas.cli.serdes import serdes_of, serdes_options
from barnabas.cli.session import Session, complete_topics, session_options_of_produce
from barnabas.cli.termination import ends_cleanly
from barnabas.cli.wording import as_typed, were
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.words.printable import printable

if TYPE_CHECKING:
    from barnabas.cli.producer_run import ProducerRun

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
    "-H",
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="A header of every record; repeat. NAME alone has no value, as in kcat.",
)
@click.option(
    "-K", "--key-delimiter", metavar="TEXT", help="What separates key and value in a line, such as ':' or '\\t'."
)
@click.option("-D", "--delimiter", default="\\n", show_default=True, metavar="TEXT", help="What ends a record.")
@click.option("-f", "--format", "template", metavar="FORMAT", help="How records look, such as '%k %v\\n', or json.")
@serdes_options
@click.option("-Z", "--tombstone", "--null-empty", "tombstone", is_flag=True, help="Empty values are null: deletions.")
@click.option("-z", "--compression", type=click.Choice(_CODECS), help="Codec of the batches.")
@click.option(
    "--partitioner",
    type=click.Choice(_PARTITIONERS),
    metavar="NAME",
    default="murmur2_random",
    show_default=True,
    help="How a key chooses its partition: murmur2_random as Java and most clients, consistent_random as librdkafka; also"
    " murmur2, consistent, fnv1a, fnv1a_random, random.",
)
@click.option(
    "--acks",
    type=click.Choice(["0", "1", "all", "-1"]),
    default="all",
    show_default=True,
    help="Which replicas must have a record.",
)
@click.option("--allow-auto-topic-creation", is_flag=True, help="Let the broker create a missing topic.")
@click.option("-X", "extra", multiple=True, metavar="PROP=VALUE", help="A librdkafka setting; repeat.")
@session_options_of_produce
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
    formats: tuple[str, ...],
    registry: str | None,
    registry_config: str | None,
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
    topic = topic or more
    if template is not None and (key_delimiter is not None or delimiter != "\\n"):
        raise click.UsageError("--format already says where keys and records end: leave out -K and -D.")
    lines: Lines | None = None
    read: Callable[[BinaryIO], Iterator[Given]]
    try:
        if template is None:
            lines = Lines.of(unescape(delimiter), None if key_delimiter is None else unescape(key_delimiter))
            read = lines.records
        else:
            read = reader(template, functools.partial(click.echo, err=True))
        given = [parse_header(header) for header in headers]
        serdes = serdes_of(formats, registry, registry_config)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if topic is None and (template is None or (template != "json" and "%t" not in template)):
        raise click.UsageError("Missing argument 'TOPIC' (or %t in the format).")
    # Completion does without the library; and if it is missing, that is said before a broker is asked.
    from barnabas.cli.producer_run import ProducerRun

    source = sys.stdin.buffer
    typed = sys.stdin.isatty()
    limit_bytes: int | None = None
    leaders: list[int] = []
    if topic is None:
        read = with_checked_topics(session, read, may_create=allow_auto_topic_creation)
    else:
        limit_bytes, leaders = _check_topic(session, topic, partition, may_create=allow_auto_topic_creation)
    options = {"acks": acks, "partitioner": partitioner, "compression.type": compression}
    encoding = None
    if serdes:
        serialized = import_module("barnabas.cli.serialized")
        encoding = serialized.Encoding(serdes, serialized.opened_source(serdes), topic)
    by_line = lines is not None and not typed
    run = ProducerRun(session, topic, extra, options, limit_bytes, leaders if by_line else ())
    common = Common(None if key is None else key.encode(), partition, given, tombstone)
    if lines is not None and not typed:
        pairs = iter if encoding is None else encoding.pairs
        _send(run, lambda: run.send_lines(lines.batches(source), lines, common, pairs), typed=False)
        return
    if typed and on_terminal():
        by_line = template is None and delimiter == "\\n"
        where = "" if session.profile is None else f" for profile {printable(session.profile)}"
        click.echo(f"type records{where}{', one a line' if by_line else ''}; Ctrl-D ends", err=True)
    records = common.complete(read(source))
    if encoding is not None:
        records = encoding.records(records)
    _send(run, lambda: run.send_all(records, typed=typed), typed=typed)


def _send(run: ProducerRun, send: Callable[[], None], *, typed: bool) -> None:
    """Send the records, wait for the acknowledgements, and report.

    Raises:
        Failure: the input does not fit the format, or records were not produced.
        Exit: of Ctrl-C, SIGTERM or SIGHUP, after the report.
    """
    source = InputFile(None if typed else _descriptor())
    ended: int | None = None
    with shown(lambda: run.measure(source), wanted=not typed):
        try:
            with ends_cleanly():
                send()
                run.finish()
        except ValueError as error:
            run.finish()
            raise Failure(str(error), f"{were(run.delivered)} produced before") from None
        except KeyboardInterrupt:
            ended = _INTERRUPTED
        except SystemExit as signalled:
            ended = int(signalled.code or 0)
        if ended is not None:  # a second Ctrl-C does not wait for acknowledgements
            with contextlib.suppress(KeyboardInterrupt, SystemExit), ends_cleanly():
                run.finish()
    run.report(is_interrupted=ended is not None)
    if ended is not None:
        raise click.exceptions.Exit(ended)


def _descriptor() -> int | None:
    try:
        return sys.stdin.fileno()
    except (OSError, ValueError):  # a test's input is in memory
        return None


def _check_topic(
    session: Session, topic: str, partition: int | None, *, may_create: bool
) -> tuple[int | None, list[int]]:
    """Check the topic before reading: an error should not wait for the input, nor for the library's timeout.

    Returns:
        The topic's `max.message.bytes`, None if the broker does not tell; and the leader of each partition. Neither if the broker will
        create the topic.
    """
    with session.admin() as admin:
        try:
            found = existing_topic(admin, topic, may_create=may_create)
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            hint = f"`barnabas topic list` shows which exist, `barnabas topic create {as_typed(topic)}` creates it"
            raise Failure(failure_of(error).message, hint, Missing("topic", topic)) from None
        if found is None:
            return None, []
        partitions = found.partitions
        if partition is not None and partition >= len(partitions):
            raise Failure(f"topic {topic} has no partition {partition}", f"it has {len(partitions)}, from 0 on")
        leaders = [each.leader for each in partitions]
        try:
            return topic_limit(admin, topic), leaders
        except KafkaError:  # this user may write the topic, and not see its settings
            return None, leaders
