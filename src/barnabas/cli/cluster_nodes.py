"""`barnabas cluster nodes`: brokers and controllers."""

from __future__ import annotations

from collections.abc import Iterable

import click

from barnabas.cli.broker import counts_of, partition_counts
from barnabas.cli.cluster_quorum import quorum_of, role_of
from barnabas.cli.output import Found, found_rows
from barnabas.cli.session import Session, session_options
from barnabas.client.admin import Admin, PartitionDescription

SILENT_MS = 10_000
"""A controller that has not read from the leader for this long probably does not run; it reads twice a second."""


@click.command()
@session_options
def nodes(session: Session) -> None:
    """List brokers and controllers: what each is, where it is, and what it leads and holds.

    A broker is `serving` or `fenced`. A controller that has not read from the leader for 10 seconds is `silent`.

    \b
    barnabas cluster nodes
    """
    with session.admin() as admin:
        session.output.show_found(nodes_of(admin))


def nodes_of(admin: Admin, described: Iterable[PartitionDescription] | None = None) -> Found:
    """Return the brokers and controllers, and the partitions that each broker leads and holds.

    Args:
        described: all partitions, if the caller has asked for them already.
    """
    found = admin.describe_cluster()
    quorum = quorum_of(admin)
    leads, holds = partition_counts(admin) if described is None else counts_of(described)
    brokers = {node.id: (node, "serving") for node in found.brokers} | {
        node.id: (node, "fenced") for node in found.fenced
    }
    members = {} if quorum is None else {each.id: each for each in quorum.replicas}
    silent = set() if quorum is None else {each.id for each in quorum.silent_voters(SILENT_MS)}
    voters = {each.id for each in members.values() if each.is_voter}
    rows = []
    for node_id in sorted(brokers.keys() | members.keys()):
        node, state = brokers.get(node_id, (None, "silent" if node_id in silent else "serving"))
        # An observer that is no broker is a controller that does not vote.
        is_controller = node_id in voters or node is None
        rows.append(
            (
                node_id,
                [role for role, has in (("broker", node is not None), ("controller", is_controller)) if has],
                state,
                None if node is None else f"{node.host}:{node.port}",
                None if quorum is None else quorum.addresses.get(node_id),
                None if node is None else node.rack,
                None if quorum is None or node_id not in members else role_of(members[node_id], quorum),
                None if node is None else leads[node_id],
                None if node is None else holds[node_id],
            )
        )
    columns = (
        "NODE", "ROLES", "STATE", "ADDRESS", "CONTROLLER-ADDRESS", "RACK", "QUORUM", "LEADERS", "REPLICAS",
    )  # fmt: skip
    hidden_first = ("CONTROLLER-ADDRESS", "RACK", "QUORUM", "REPLICAS", "LEADERS")
    return found_rows(columns, rows, hidden_first=hidden_first)
