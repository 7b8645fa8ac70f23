"""`barnabas replay`: send the records of a topic to another one, each of them once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import click
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from barnabas.cli.failure import Failure
from barnabas.cli.librdkafka import connected
from barnabas.cli.log_bounds import log_bounds
from barnabas.cli.log_places import places_of
from barnabas.cli.named_replay import COLUMNS, Choice, continued, default_name, losses, new_replay, partitions_of
from barnabas.cli.record_filter import RECORD_FILTER_HELP, RECORD_FILTERS, parse_filter
from barnabas.cli.record_rewrite import load_rewrite
from barnabas.cli.sending_once import create_state_topic, explained_library, transactional_producer
from barnabas.cli.session import Session, complete_cuts, complete_groups, complete_topics, session_options
from barnabas.cli.termination import ends_cleanly
from barnabas.client.admin import TopicMetadata
from barnabas.client.cuts import is_valid_cut_name
from barnabas.retries.committed_records import READER_SETTINGS
from barnabas.retries.forwarding import Forwarder, GroupWentOn
from barnabas.retries.pace import Pace, parse_pace
from barnabas.retries.record import Record
from barnabas.retries.replay import Change, records_left, transactional_id
from barnabas.retries.replay import replay as send
from barnabas.retries.replayed import STATE_TOPIC, Progress
from barnabas.words.printable import printable


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
@click.option("--until", "end", metavar="CUT|TIME|OFFSET", help="Where to end.  [default: where the topic ends now]")
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
    end: str | None,
    to: str,
    name: str | None,
    rate: str | None,
    filters: tuple[str, ...],
    rewrite: str | None,
    group: str | None,
    dry_run: bool,
) -> None:
    """Send the records of a topic to another one. Each is sent once, however often this runs.

    It ends at --until, or where the topic ended when it began. How far it is, is noted in the topic __barnabas_replays, in the same
    transactions: the same command continues a replay that was interrupted. Partitions, keys and timestamps stay.

    \b
    barnabas replay orders --from -1h --to orders-test --dry-run
    barnabas replay orders --from release --to orders-test --rate 1000/s
    """
    name = name or default_name(topic, to)
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
    choice = Choice(begin, end, filters, rewrite)
    with session.admin() as admin:
        new, source = new_replay(admin, name, topic, to, choice)
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
            progress = continued(consumer, library_admin, new) if has_state else None
            if progress is None:
                progress = new
                progress.partitions = places_of(admin, source, begin, end, end_option="--until")
            status = "finished before"
            if not progress.is_finished or progress.read == 0:
                for loss in losses(progress, log_bounds(admin, partitions_of(progress))):
                    click.echo(f"warning: {loss}", err=True)
                status = _run(consumer, forwarder, progress, change, pace, group)
    row = (name, topic, to, progress.read, progress.written, status)
    session.output.table(COLUMNS, [row], hidden_first=("NAME",))
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
