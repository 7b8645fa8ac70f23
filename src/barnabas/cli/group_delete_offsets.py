"""`barnabas group delete-offsets`: forget what a group committed in topics that it reads no longer. OffsetDelete (47); KIP-496."""

from __future__ import annotations

from collections.abc import Sequence

import click

from barnabas.cli.done import Done, failed
from barnabas.cli.failure import Failure
from barnabas.cli.output import found_rows
from barnabas.cli.partitions import partitions_of
from barnabas.cli.session import Session, complete_groups, session_options
from barnabas.client.admin import Admin, TopicPartition, result
from barnabas.protocol.errors import KafkaError


@click.command(name="delete-offsets")
@click.argument("group_id", metavar="GROUP", shell_complete=complete_groups)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    required=True,
    metavar="TOPIC[:N,…]",
    help="This topic, or some partitions; repeat.",
)
@click.option("-d", "--dry-run", is_flag=True, help="Only show what would be deleted.")
@session_options
def delete_offsets(session: Session, group_id: str, topics: tuple[str, ...], dry_run: bool) -> None:
    """Delete the offsets that a group committed in topics. Its members, if it has any, must not read them.

    \b
    barnabas group delete-offsets orders-app --topic returns
    """
    with session.admin() as admin:
        try:
            done = deleted_offsets(admin, group_id, topics, dry_run=dry_run)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    done.show(session.output)


def deleted_offsets(admin: Admin, group_id: str, topics: Sequence[str], *, dry_run: bool) -> Done:
    """Delete what a group committed in topics, or only show it.

    Raises:
        ValueError: a text is not TOPIC or TOPIC:0,1.
        Failure: the group has committed nothing there.
        KafkaError: the group or a topic does not exist.
    """
    result(admin.describe_groups([group_id])[group_id])
    committed = admin.list_group_offsets(group_id)
    partitions = [each for each in partitions_of(admin, topics) if each in committed]
    if not partitions:
        raise Failure(
            f"group {group_id} has no committed offsets in {', '.join(topics)}",
            f"`barnabas group describe {group_id}` shows where it has",
        )
    outcomes: dict[TopicPartition, KafkaError | None] = dict.fromkeys(partitions)
    if not dry_run:
        outcomes = {**admin.delete_group_offsets(group_id, partitions)}
    rows = [
        (group_id, *where, committed[where].offset, "would be deleted" if dry_run else "deleted")
        for where, outcome in sorted(outcomes.items())
        if outcome is None
    ]
    columns = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "STATUS")
    return Done(
        found_rows(columns, rows, hidden_first=("GROUP", "CURRENT-OFFSET")),
        failed([(f"partition {where}", outcome) for where, outcome in outcomes.items()]),
    )
