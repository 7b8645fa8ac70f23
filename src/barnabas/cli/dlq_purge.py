"""`barnabas dlq purge`: delete dead letters, up to those that are there when it begins. DeleteRecords (21)."""

from __future__ import annotations

import click

from barnabas.cli.dead_letters import find_topics, opened
from barnabas.cli.failure import report_failures
from barnabas.cli.log_bounds import log_bounds
from barnabas.cli.session import Session, complete_topics, session_options
from barnabas.client.admin import LATEST, Admin, TopicPartition, result
from barnabas.client.offsets import READ_COMMITTED
from barnabas.protocol.errors import KafkaError
from barnabas.retries.redrive import DeadLetterTopic

_COLUMNS = ("TOPIC", "PARTITION", "LOG-START-OFFSET", "NEW-START-OFFSET", "OFFSETS", "STATUS")


@click.command()
@click.argument("topic", metavar="TOPIC", shell_complete=complete_topics)
@click.option("--redriven", is_flag=True, help="Stop before the first dead letter that was not sent back.")
@click.option("-d", "--dry-run", is_flag=True, help="Only show what would be deleted.")
@session_options
def purge(session: Session, topic: str, redriven: bool, dry_run: bool) -> None:
    """Delete the dead letters that a topic has now; those that arrive meanwhile stay. They cannot be brought back.

    \b
    barnabas dlq purge orders.dlq --redriven
    """
    with session.admin() as admin:
        (found,) = find_topics(admin, [topic])
        ends = _ends(session, admin, found, redriven)
        starts = log_bounds(admin, ends)
        wanted = {where: end for where, end in ends.items() if end > (starts[where][0] or 0)}
        outcomes: dict[TopicPartition, int | KafkaError] = {**(wanted if dry_run else admin.delete_records(wanted))}
    verb = "would be deleted" if dry_run else "deleted"
    rows = [
        (*where, starts[where][0], outcome, outcome - (starts[where][0] or 0), verb)
        for where, outcome in sorted(outcomes.items())
        if not isinstance(outcome, KafkaError)
    ]
    session.output.table(_COLUMNS, rows, hidden_first=("LOG-START-OFFSET",))
    report_failures((f"partition {where}", outcome) for where, outcome in outcomes.items())


def _ends(session: Session, admin: Admin, topic: DeadLetterTopic, redriven: bool) -> dict[TopicPartition, int]:
    """Return the offset of each partition before which everything is to be deleted.

    Raises:
        KafkaError: a partition's leader does not answer.
        Failure: the dead letters cannot be read.
    """
    partitions = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
    # An open transaction may still bring dead letters.
    stable = admin.list_offsets(dict.fromkeys(partitions, LATEST), isolation_level=READ_COMMITTED)
    ends = {where: result(found).offset for where, found in stable.items()}
    if redriven:
        with opened(session, admin) as reader:
            for each in reader.read(topic, reader.redriven(topic)):
                where = TopicPartition(topic.name, each.record.partition)
                if not each.is_redriven:
                    ends[where] = min(ends[where], each.record.offset)
    return ends
