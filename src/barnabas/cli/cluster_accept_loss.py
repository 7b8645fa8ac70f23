"""`barnabas cluster accept-loss`: a partition that waits for lost replicas goes on with those that are left.

It is the unclean election of Kafka's protocol (KIP-460), with a plan before it: why there is no leader, and where the log of each replica
ends. A controller of barnabas elects the longest log of the replicas in service, Apache Kafka's the last known leader or the first one.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from barnabas.cli.done import Done, failed
from barnabas.cli.failure import Failure
from barnabas.cli.output import found_rows
from barnabas.cli.partitions import named_partitions
from barnabas.cli.session import Session, complete_topics, session_options
from barnabas.client.admin import Admin, PartitionDescription, TopicPartition
from barnabas.protocol.errors import KafkaError

Partitions = Mapping[TopicPartition, PartitionDescription]


@click.command("accept-loss")
@click.argument("topics", nargs=-1, metavar="[TOPIC[:N,…]]…", shell_complete=complete_topics)
@click.option("--all", "is_all", is_flag=True, help="All partitions without a leader.")
@click.option("-d", "--dry-run", is_flag=True, help="Only show what may be lost.  [this is the default]")
@click.option("--execute", is_flag=True, help="Elect the leaders: what only other replicas have is lost.")
@session_options
def accept_loss(session: Session, topics: tuple[str, ...], is_all: bool, dry_run: bool, execute: bool) -> None:
    """Let partitions without a leader go on with the replicas that are left.

    Shows why each has no leader and where the log of each replica ends. --execute elects: the others cut off what the new leader
    lacks, and nothing brings it back. A broker that can still be started, with its disk, is the better way.

    \b
    barnabas cluster accept-loss
    barnabas cluster accept-loss orders:0 --execute
    """
    if dry_run and execute:
        raise click.UsageError("--dry-run and --execute contradict each other.")
    if is_all and topics:
        raise click.UsageError("--all and the names of topics contradict each other.")
    if execute and not is_all and not topics:
        raise click.UsageError("--execute needs the names of topics, or --all.")
    with session.admin() as admin:
        named = named_partitions(admin, topics) if topics else None
        done = accepted(admin, _leaderless(admin, named), execute=execute)
    done.show(session.output)


def _leaderless(admin: Admin, named: list[TopicPartition] | None) -> Partitions:
    """Return the partitions without a leader; all if none is named.

    Raises:
        Failure: each has a leader.
    """
    found = admin.describe_partitions()
    chosen = {at: each for at, each in sorted(found.items()) if each.leader < 0 and (named is None or at in named)}
    if not chosen:
        which = "every partition" if named is None else "each of these partitions"
        raise Failure(f"{which} has a leader", "nothing has to be accepted")
    return chosen


def accepted(admin: Admin, partitions: Partitions, *, execute: bool) -> Done:
    """Elect leaders that may lack records.

    Args:
        partitions: those without a leader.
        execute: False for a plan only.
    """
    serving = {each.id for each in admin.describe_cluster().brokers}
    ends = admin.replica_ends({at: [r for r in each.replicas if r in serving] for at, each in partitions.items()})
    outcomes = admin.elect_unclean_leaders(partitions) if execute else {}
    after = admin.describe_partitions(sorted({at.topic for at in partitions})) if execute else {}
    rows = []
    for at, each in partitions.items():
        why = each.why_leaderless_among(serving)
        leader = after[at].leader if at in after and after[at].leader >= 0 else None
        cause = "" if why is None else why.reason
        rows.append((*at, cause, _ends(each, ends[at]), leader, _status(leader, execute)))
    notes = (
        [] if execute else ["nothing was changed: --execute elects leaders, and loses what only other replicas have"]
    )
    columns = ("TOPIC", "PARTITION", "CAUSE", "LOG-ENDS", "LEADER", "STATUS")
    failures = failed([(f"partition {at}", outcome) for at, outcome in outcomes.items()])
    return Done(found_rows(columns, rows, hidden_first=("CAUSE",)), failures, notes)


def _ends(partition: PartitionDescription, ends: Mapping[int, int | KafkaError]) -> str:
    """Return where the log of each replica ends: `1:120 2:118 3:offline`."""
    words = []
    for replica in partition.replicas:
        end = ends.get(replica)
        words.append(f"{replica}:{'offline' if end is None else 'unknown' if isinstance(end, KafkaError) else end}")
    return " ".join(words)


def _status(leader: int | None, execute: bool) -> str:
    if not execute:
        return "would be elected"
    return "no leader" if leader is None else "elected"
