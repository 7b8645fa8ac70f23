"""`barnabas dlq redrive`: send dead letters back to their source topic, each of them once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import click

from barnabas.cli.dead_letters import (
    FILTER_HELP,
    Chosen,
    find_topics,
    opened,
    parse_filter,
)
from barnabas.cli.done import Done
from barnabas.cli.failure import Failure, Missing
from barnabas.cli.librdkafka import LibraryConnection
from barnabas.cli.output import found_rows
from barnabas.cli.sending_once import create_state_topic, explained_library, transactional_producer
from barnabas.cli.session import Session, complete_topics, session_options
from barnabas.client.admin import Admin
from barnabas.retries.redrive import DeadLetter, DeadLetterTopic, NoTarget, output_of, transactional_id, wanted
from barnabas.retries.redrive import redrive as send_back
from barnabas.retries.redriven import STATE_TOPIC


@click.command()
@click.argument("topic", metavar="TOPIC", shell_complete=complete_topics)
@click.option("-f", "--filter", "filters", multiple=True, metavar="NAME=VALUE", help=FILTER_HELP)
@click.option("-n", "--limit", type=click.IntRange(min=1), help="At most this many.")
@click.option("--to", metavar="TOPIC", shell_complete=complete_topics, help="Another topic than their source.")
@click.option("-d", "--dry-run", is_flag=True, help="Only show how many would be sent.")
@session_options
def redrive(
    session: Session, topic: str, filters: tuple[str, ...], limit: int | None, to: str | None, dry_run: bool
) -> None:
    """Send dead letters back to the topic they came from. Each is sent once, however often this runs.

    What was sent is noted in the topic __barnabas_redrive, in the same transactions: a redrive that was interrupted is continued by the
    next one. The attempts of a record begin again.

    \b
    barnabas dlq redrive orders.dlq --filter error=TimeoutError --dry-run
    barnabas dlq redrive orders.dlq --limit 100
    """
    chosen = parse_filter(filters)
    with session.admin() as admin:
        done = redriven_letters(session, admin, topic, chosen, limit, to, dry_run=dry_run)
    session.output.show_found(done.found)


def redriven_letters(
    session: Session | LibraryConnection,
    admin: Admin,
    name: str,
    chosen: Chosen,
    limit: int | None,
    to: str | None,
    *,
    dry_run: bool,
    letters: Sequence[DeadLetter] | None = None,
) -> Done:
    """Send the dead letters of a topic back, or only count them.

    Args:
        letters: dead letters of the topic that were read a moment ago: it is not read again. Which of them were sent back since is
            looked up.

    Raises:
        Failure: a dead letter has no topic to go to, or the library failed; the next redrive continues.
        KafkaError: the topic does not exist, or no broker answers.
    """
    (found,) = find_topics(admin, [name])
    targets = {each.name: len(each.partitions) for each in admin.list_topics(internal=True)}
    if to is not None and to not in targets:
        raise _no_topic(to)
    try:
        sent = _sent(session, admin, found, targets, chosen, limit, to, dry_run, letters)
    except NoTarget as error:
        if error.topic is not None:
            raise _no_topic(error.topic) from None
        raise Failure(
            f"dead letter {error.dead_letter.place} does not say where it came from", "name a topic with --to"
        ) from None
    status = "would be sent" if dry_run else "sent"
    rows = [(name, target, count, status) for target, count in sorted(sent.items())]
    return Done(found_rows(("TOPIC", "TO", "RECORDS", "STATUS"), rows, hidden_first=("TOPIC",)))


def _sent(
    session: Session | LibraryConnection,
    admin: Admin,
    topic: DeadLetterTopic,
    targets: dict[str, int],
    chosen: Chosen,
    limit: int | None,
    to: str | None,
    dry_run: bool,
    letters: Sequence[DeadLetter] | None,
) -> dict[str, int]:
    """Send the dead letters, or only count them; return how many for each topic."""
    if not dry_run:
        create_state_topic(admin, STATE_TOPIC)
    with opened(session, admin) as reader:
        if dry_run:
            count: dict[str, int] = {}
            for each in wanted(reader.read(topic, reader.redriven(topic)), chosen, limit):
                target = output_of(each, targets, to).topic
                count[target] = count.get(target, 0) + 1
            return count
        with (
            explained_library("the redrive was interrupted: the next one continues it"),
            closing(transactional_producer(session, transactional_id(topic.name))) as producer,
        ):
            return send_back(reader, producer, topic, targets, chosen=chosen, limit=limit, to=to, letters=letters)


def _no_topic(name: str) -> Failure:
    return Failure(f"topic {name} does not exist", "name another with --to", Missing("topic", name))
