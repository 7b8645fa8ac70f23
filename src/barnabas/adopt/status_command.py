"""`barnabas adopt status`: which nodes are barnabas already, which are Apache Kafka, and which come next."""

from __future__ import annotations

import click

from barnabas.adopt.next_step import order
from barnabas.adopt.observation import Seen, SeenNode
from barnabas.adopt.observer import Observer
from barnabas.cli.output import Found, Table
from barnabas.cli.session import Session, session_options
from barnabas.client.program import Program
from barnabas.protocol.metadata_versions import name_of

__all__ = ["status", "table_of"]


@click.command()
@session_options
def status(session: Session) -> None:
    """Show the program of each node: Apache Kafka or barnabas.

    NEXT is the best order for `adopt next`: the active controller comes last, so that it changes hands once. SUPPORTS is the highest
    metadata.version that the node supports, which tells its release.

    \b
    barnabas adopt status -b kafka-1:9092
    """
    with session.admin() as admin:
        session.output.show_found(table_of(Observer(admin).look()))


def table_of(seen: Seen) -> Found:
    """Return the nodes, as data and as tables."""
    kafka, ours = (seen.running(each) for each in (Program.KAFKA, Program.BARNABAS))
    summary = Table(
        ("CLUSTER", "APACHE-KAFKA", "BARNABAS", "OTHERS", "ACTIVE-CONTROLLER", "NEXT"),
        [
            (
                seen.cluster_id,
                len(kafka),
                len(ours),
                len(seen.nodes) - len(kafka) - len(ours),
                seen.leader if seen.leader >= 0 else None,
                order(seen, Program.BARNABAS),
            )
        ],
        vertical=True,
    )
    nodes = Table(
        ("NODE", "ROLES", "PROGRAM", "SUPPORTS", "STATE", "NOT-IN-SYNC", "METADATA-LAG", "WHY"),
        [
            (
                each.id,
                list(each.roles),
                each.program.value,
                None if each.supports is None else name_of(each.supports),
                _state(each),
                each.behind,
                each.voter_lag,
                each.why or None,
            )
            for each in seen.nodes.values()
        ],
        below=("WHY",),
    )
    return Found(summary.objects()[0] | {"nodes": nodes.objects()}, [summary, nodes])


def _state(node: SeenNode) -> str:
    return "down" if node.is_down or node.program == Program.STOPPED else "serving"
