"""`barnabas cluster nodes`: brokers and controllers."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import click

from barnabas.cli.broker import counts_of, partition_counts
from barnabas.cli.cluster_quorum import quorum_of, role_of
from barnabas.cli.output import Found, found_rows
from barnabas.cli.session import Session, session_options
from barnabas.client.admin import Admin, PartitionDescription, Quorum
from barnabas.client.program import Program
from barnabas.protocol.metadata_versions import name_of

SILENT_MS = 10_000
"""A controller that has not read from the leader for this long probably does not run; it reads twice a second."""


@click.command()
@session_options
def nodes(session: Session) -> None:
    """List brokers and controllers: what each is, where it is, and what it leads and holds.

    A broker is `serving` or `fenced`. A controller that has not read from the leader for 10 seconds is `silent`.
    PROGRAM is barnabas or Apache Kafka; SUPPORTS is the highest metadata.version that the node supports, which tells its release.

    \b
    barnabas cluster nodes
    """
    with session.admin() as admin:
        session.output.show_found(nodes_of(admin))


def nodes_of(
    admin: Admin, described: Iterable[PartitionDescription] | None = None, *, dials_controllers: bool = True
) -> Found:
    """Return the brokers and controllers, and the partitions that each broker leads and holds.

    Args:
        described: all partitions, if the caller has asked for them already.
        dials_controllers: ask a controller that is no broker for its program: at its own address, which may be out of reach.
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
    programs = admin.describe_programs(_controllers(quorum, brokers.keys() | silent) if dials_controllers else None)
    rows = []
    for node_id in sorted(brokers.keys() | members.keys()):
        node, state = brokers.get(node_id, (None, "silent" if node_id in silent else "serving"))
        seen = programs.get(node_id)
        # An observer that is no broker is a controller that does not vote.
        is_controller = node_id in voters or node is None
        rows.append(
            (
                node_id,
                [role for role, has in (("broker", node is not None), ("controller", is_controller)) if has],
                state,
                None if seen is None else seen.program.value,
                None if seen is None or seen.supports is None else name_of(seen.supports),
                None if node is None else f"{node.host}:{node.port}",
                None if quorum is None else quorum.addresses.get(node_id),
                None if node is None else node.rack,
                None if quorum is None or node_id not in members else role_of(members[node_id], quorum),
                None if node is None else leads[node_id],
                None if node is None else holds[node_id],
            )
        )
    columns = (
        "NODE", "ROLES", "STATE", "PROGRAM", "SUPPORTS", "ADDRESS", "CONTROLLER-ADDRESS", "RACK", "QUORUM", "LEADERS", "REPLICAS",
    )  # fmt: skip
    # Where all nodes are barnabas, the column says nothing new.
    is_ours = all(each.program == Program.BARNABAS for each in programs.values())
    hidden_first = (
        *(["PROGRAM"] if is_ours else []), "CONTROLLER-ADDRESS", "RACK", "SUPPORTS", "QUORUM", "REPLICAS", "LEADERS",
    )  # fmt: skip
    return found_rows(columns, rows, hidden_first=hidden_first)


def _controllers(quorum: Quorum | None, others: Collection[int]) -> dict[int, tuple[str, int]]:
    """Return the addresses of the voters without these others."""
    addresses = {} if quorum is None else quorum.addresses
    split = {node: address.rpartition(":") for node, address in addresses.items() if node not in others}
    return {node: (host, int(port)) for node, (host, _, port) in split.items()}
