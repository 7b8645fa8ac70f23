"""`barnabas cluster restart`: the nodes of a cluster restart one by one, and clients do not notice."""

from __future__ import annotations

import click

from barnabas.cli.failure import Failures
from barnabas.cli.rolling import Walk, Way, rolling_options
from barnabas.cli.session import Session, session_options


@click.command()
@click.argument("nodes", nargs=-1, type=click.IntRange(min=0), metavar="[NODE]…")
@click.option("--rolling", is_flag=True, help="One node after another: the only way, and the default.")
@rolling_options
@session_options
def restart(session: Session, nodes: tuple[int, ...], rolling: bool, way: Way) -> None:
    """Restart the nodes of a cluster one by one, or only those that are named; the active controller is the last.

    Before each restart every partition must be in sync, and keep min.insync.replicas without the node; afterwards the command waits
    until the node serves, all is in sync, and the preferred leaders lead. It stops at the first doubt, and names the nodes that are left.

    \b
    barnabas cluster restart --rolling --command 'ssh {host} ./restart.sh'
    """
    way.require()
    with session.admin() as admin:
        walk = Walk(admin, nodes, way, name="restart --rolling")
        if way.dry_run:
            session.output.show_found(walk.planned())
            if doubts := walk.doubts():
                raise Failures(doubts)
            return
        session.output.show_found(walk.carry_out())
