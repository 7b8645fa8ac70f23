"""`barnabas replay`: send the records of a topic to another one, each of them once."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import closing

import click
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from barnabas.cli.failure import Failure
from barnabas.cli.librdkafka import connected
from barnabas.cli.log_bounds import Bounds, log_bounds
from barnabas.cli.log_places import places_of
from barnabas.cli.record_filter import RECORD_FILTER_HELP, RECORD_FILTERS, parse_filter
from barnabas.cli.record_rewrite import load_rewrite
from barnabas.cli.sending_once import create_state_topic, explained_library, transactional_producer
from barnabas.cli.session import Session, complete_cuts, complete_groups, complete_topics, session_options
from barnabas.cli.termination import ends_cleanly
from barnabas.client.admin import Admin, TopicMetadata, TopicPartition, result
from barnabas.client.cuts import is_valid_cut_name
from barnabas.protocol.primitives import uuid_to_str
from barnabas.retries.committed_records import READER_SETTINGS
from barnabas.retries.forwarding import Forwarder, GroupWentOn
from barnabas.retries.pace import Pace, parse_pace
from barnabas.retries.record import Record
from barnabas.retries.replay import Change, records_left, stored_progress, transactional_id
from barnabas.retries.replay import replay as send
from barnabas.retries.replayed import STATE_TOPIC, Progress
from barnabas.words.printable import printable

_COLUMNS = ("NAME", "TOPIC", "TO", "READ", "WRITTEN", "STATUS")


@click.command()
@click.argument("topic", metavar="TOPIC", shell_complete=complete_topics)
@click.option(
    "--from",
    "begin",
    required=True,
    metavar="CUT|TIME|OFFSET",
    shell_complete=complete_cuts,
    help="A cut, a time (-1h), or an offset or a range of them, as of `consume -o`.",
)
@click.option("--to", required=True, metavar="TOPIC", shell_complete=complete_topics, help="The topic to write.")
@click.option("--name", help="The name of the replay.  [default: TOPIC-to-TOPIC]")
@click.option("--rate", help="1000/s, 5x (as fast as the timestamps), original.")
@click.option("-f", "--filter", "filters", multiple=True, metavar="NAME=VALUE", help=RECORD_FILTER_HELP)
@click.option("--rewrite", metavar="FILE.PY:FUNCTION", help="Gets a Record, returns one, or None to leave it out.")
@click.option(
    "--group", shell_complete=complete_groups, help="A group that commits the progress, so that its lag shows."
)
@click.option("-d", "--dry-run", is_flag=True, help="Only count the records.")
@session_options
def replay(
    session: Session,
    topic: str,
    begin: str,
    to: str,
    name: str | None,
    rate: str | None,
    filters: tuple[str, ...],
    rewrite: str | None,
    group: str | None,
    dry_run: bool,
) -> None:
    """Send the records of a topic to another one. Each is sent once, however often this runs.

    It ends where the topic ended when it began. How far it is, is noted in the topic __barnabas_replays, in the same transactions: the
    same command continues a replay that was interrupted. Partitions, keys and timestamps stay.

    \b
    barnabas replay orders --from -1h --to orders-test --dry-run
    barnabas replay orders --from release --to orders-test --rate 1000/s
    """
    name = name or f"{topic}-to-{to}"
    if not is_valid_cut_name(name):
        raise click.UsageError(
            f"'{printable(name)}' is not a valid name: use letters, digits, '.', '_' and '-' with --name"
        )
    if topic == to:
        raise click.UsageError(f"topic {printable(topic)} cannot be replayed onto itself: name another with --to")
    if group == "":
        raise click.UsageError("--group is empty: set a name")
    try:
        pace = None if rate is None else parse_pace(rate)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--rate") from None
    chosen = parse_filter(filters, RECORD_FILTERS)
    change = _change(chosen, None if rewrite is None else load_rewrite(rewrite))
    options = [("--from", begin), *(("--filter", each) for each in sorted(filters)), ("--rewrite", rewrite)]
    choice = " ".join(f"{option} {shlex.quote(text)}" for option, text in options if text is not None)
    with session.admin() as admin:
        new, source = _named(admin, name, topic, to, choice)
        if not dry_run:
            create_state_topic(admin, STATE_TOPIC)
        has_state = not dry_run or isinstance(admin.describe_topics([STATE_TOPIC])[STATE_TOPIC], TopicMetadata)
        settings = {**READER_SETTINGS, "group.id": group or "barnabas-replay"}
        consumer: Consumer = connected(Consumer, session, (), settings)
        with (
            ends_cleanly(),
            closing(consumer),
            explained_library("the replay was interrupted: the same command goes on"),
        ):
            forwarder = None if dry_run else Forwarder(transactional_producer(session, transactional_id(name)))
            library_admin = connected(AdminClient, session, (), {})
            progress = _continued(consumer, library_admin, new) if has_state else None
            if progress is None:
                progress = new
                progress.partitions = places_of(admin, source, begin)
            status = "finished before"
            if not progress.is_finished or progress.read == 0:
                _warn_of_loss(progress, log_bounds(admin, _partitions(progress)))
                status = _run(consumer, forwarder, progress, change, pace, group)
    row = (name, topic, to, progress.read, progress.written, status)
    session.output.table(_COLUMNS, [row], hidden_first=("NAME",))
    if status == "finished before":
        click.echo("nothing was sent: --name begins another replay", err=True)


def _change(chosen: Callable[[Record], bool], rewrite: Change | None) -> Change:
    return lambda record: (record if rewrite is None else rewrite(record)) if chosen(record) else None


def _run(
    consumer: Consumer,
    forwarder: Forwarder | None,
    progress: Progress,
    change: Change,
    pace: Pace | None,
    group: str | None,
) -> str:
    """Send the records, or only count them; return the status."""
    if forwarder is None:
        for record in records_left(consumer, progress):
            progress.take(record, is_written=change(record) is not None)
        return "would be sent"
    try:
        send(consumer, forwarder, progress, change, pace, None if group is None else consumer.consumer_group_metadata())
    except GroupWentOn:
        raise Failure(f"group {group} has running consumers", "stop them, or name another with --group") from None
    return "sent"


def _named(admin: Admin, name: str, topic: str, to: str, choice: str) -> tuple[Progress, TopicMetadata]:
    """Return a replay that does not know its offsets yet, and its source.

    Raises:
        Failure: the target has too few partitions.
        KafkaError: a topic does not exist.
    """
    source, target = (result(admin.describe_topics([each])[each]) for each in (topic, to))
    if len(target.partitions) < len(source.partitions):
        raise Failure(
            f"topic {to} has fewer partitions ({len(target.partitions)}) than topic {topic} ({len(source.partitions)})",
            f"`barnabas topic alter {to} -p {len(source.partitions)}` adds them",
        )
    ids = uuid_to_str(source.topic_id), uuid_to_str(target.topic_id)
    return Progress(name, topic, ids[0], to, ids[1], choice, {}), source


def _continued(consumer: Consumer, admin: AdminClient, new: Progress) -> Progress | None:
    """Return the replay of this name; None if it has not begun.

    Raises:
        Failure: a replay of this name has begun with other options or topics.
    """
    try:
        stored = stored_progress(consumer, admin, new.name)
    except ValueError as error:
        raise Failure(str(error)) from None
    if stored is None:
        return None
    if (stored.source, stored.target, stored.choice) != (new.source, new.target, new.choice):
        raise Failure(
            f"replay {new.name} began as `barnabas replay {stored.source} {stored.choice} --to {stored.target}`",
            "give the same options, or another --name",
        )
    for topic, before, now in (
        (new.source, stored.source_id, new.source_id),
        (new.target, stored.target_id, new.target_id),
    ):
        if before != now:
            raise Failure(
                f"topic {topic} was deleted and created again since replay {new.name} began",
                "begin another with --name",
            )
    return stored


def _partitions(progress: Progress) -> list[TopicPartition]:
    return [TopicPartition(progress.source, each) for each in progress.partitions]


def _warn_of_loss(progress: Progress, bounds: dict[TopicPartition, Bounds]) -> None:
    for where in _partitions(progress):
        position, end = progress.partitions[where.partition]
        start = bounds[where][0] or 0
        if position < min(start, end):
            click.echo(f"warning: partition {where}: offsets {position} to {min(start, end) - 1} are deleted", err=True)
