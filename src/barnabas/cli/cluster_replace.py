"""`barnabas cluster replace`: whether a dead node may come back with an empty disk, and the steps. It changes nothing.

The node keeps its id and fetches everything from the others. So each of its partitions needs another replica in sync. A voter
with an empty disk has forgotten its votes: where the metadata log names the voters with their directories (KIP-853), the old one leaves
and the new one joins.
"""

from __future__ import annotations

import click

from barnabas.cli.cluster_quorum import quorum_of
from barnabas.cli.failure import Failure
from barnabas.cli.output import Found, Table
from barnabas.cli.session import Session, complete_brokers, session_options
from barnabas.cli.wording import counted, listed
from barnabas.client.admin import Admin, ClusterDescription, Quorum
from barnabas.client.rolling_restart import SILENT_MS


@click.command()
@click.argument("node", type=click.IntRange(min=0), metavar="NODE", shell_complete=complete_brokers)
@session_options
def replace(session: Session, node: int) -> None:
    """Check that a dead node may come back with an empty disk, and print the steps.

    Nothing is changed: format and start it on its own machine.

    \b
    barnabas cluster replace 3
    """
    with session.admin() as admin:
        described = admin.describe_cluster()
        quorum = quorum_of(admin)
        check_may_be_replaced(admin, described, quorum, node)
        session.output.show_found(steps_for(described, quorum, node))


def check_may_be_replaced(admin: Admin, described: ClusterDescription, quorum: Quorum | None, node: int) -> None:
    """Check that a node is down, that the others are well, and that they have its records.

    Raises:
        Failure: one of these is not so.
    """
    voters = [] if quorum is None else [each.id for each in quorum.voters]
    silent = [] if quorum is None else [each.id for each in quorum.silent_voters(SILENT_MS)]
    fenced = [each.id for each in described.fenced]
    if node in [each.id for each in described.brokers] or (node in voters and node not in (*fenced, *silent)):
        raise Failure(f"node {node} is in service", "only a node that is down can be replaced")
    if node not in (*fenced, *voters):
        known = sorted({*(each.id for each in described.brokers), *fenced, *voters})
        raise Failure(f"node {node} is not part of the cluster now", f"its nodes are: {', '.join(map(str, known))}")
    if others := sorted({*fenced, *silent} - {node}):
        raise Failure(f"node {listed(others)} is down too", "start it first: replace one node at a time")
    alone = [
        at
        for at, each in sorted(admin.describe_partitions().items())
        if node in each.replicas and not {*each.isr} - {node}
    ]
    if alone:
        raise Failure(
            f"no other replica is in sync of {counted(len(alone), 'partition')}: {listed(alone)}",
            "find the disk; if it is lost, `barnabas cluster accept-loss` shows what is lost, and elects other replicas",
        )


def steps_for(described: ClusterDescription, quorum: Quorum | None, node: int) -> Found:
    """Return what to do, in order, and the command for each step."""
    replica = None if quorum is None else next((each for each in quorum.voters if each.id == node), None)
    # Only a quorum whose voters can change knows their directories.
    can_change = quorum is not None and any(each.directory_id is not None for each in quorum.voters)
    later = " --no-initial-controllers" if can_change else ""
    rows = [
        ("format the empty directory", f"barnabas storage format -t {described.cluster_id} -c server.properties{later}")
    ]
    if replica is not None and can_change:
        rows.append(("take out the voter with the old directory", f"barnabas cluster voter remove {node}"))
    rows.append(("start the node", "barnabas start --config server.properties"))
    if quorum is not None and replica is not None and can_change:
        address = quorum.addresses.get(node, "HOST:PORT")
        rows.append(("let it vote", f"barnabas cluster voter add {node} --at {address}"))
    rows.append(("wait until all is in sync", "barnabas cluster status"))
    table = Table(("STEP", "COMMAND"), rows, below=("COMMAND",))
    return Found(table.objects(), [table])
