"""`barnabas cluster forget`: a broker that is gone for good leaves the cluster's metadata.

The controller, ours as Apache Kafka's, unregisters any broker: a broker that serves registers again immediately, and replicas on a lost
broker stay there, where no broker can start them. So the command checks both before.
"""

from __future__ import annotations

import click

from barnabas.cli.failure import Failure, failure_of
from barnabas.cli.session import Session, complete_brokers, session_options
from barnabas.cli.wording import counted, listed
from barnabas.client.admin import Admin
from barnabas.protocol.errors import ErrorCode


@click.command()
@click.argument("node", type=click.IntRange(min=0), metavar="NODE", shell_complete=complete_brokers)
@click.option("-d", "--dry-run", is_flag=True, help="Only show what would be forgotten.")
@session_options
def forget(session: Session, node: int, dry_run: bool) -> None:
    """Forget a broker that is stopped for good, so that the cluster no longer counts it as fenced.

    It must hold no replicas: `barnabas cluster drain` moves them. If it starts again, it is part of the cluster again.

    \b
    barnabas cluster forget 3 --dry-run
    """
    with session.admin() as admin:
        check_may_be_forgotten(admin, node)
        error = None if dry_run else admin.unregister_broker(node)
        if error is not None and error.code == ErrorCode.BROKER_ID_NOT_REGISTERED:
            raise _unknown(admin, node)
    if error is not None:
        raise failure_of(error, f"broker {node}")
    session.output.table(("BROKER", "STATUS"), [(node, "would be forgotten" if dry_run else "forgotten")])


def check_may_be_forgotten(admin: Admin, node: int) -> None:
    """Check that a broker is down, and that nothing is lost or stranded with it.

    Raises:
        Failure: it serves, holds replicas, or is not part of the cluster.
    """
    found = admin.describe_cluster()
    if node in [each.id for each in found.brokers]:
        raise Failure(
            f"broker {node} is in service",
            f"`barnabas cluster drain {node}` empties it, then stop it; a broker that was killed is in service for some seconds more",
        )
    # An older broker does not return fenced brokers, but the controller knows them.
    if found.fenced and node not in [each.id for each in found.fenced]:
        raise _unknown(admin, node)
    held = [at for at, each in admin.describe_partitions().items() if node in each.replicas]
    if held:
        raise Failure(
            f"broker {node} has replicas of {counted(len(held), 'partition')}: {listed(sorted(held))}",
            f"`barnabas cluster drain {node}` moves them to other brokers",
        )


def _unknown(admin: Admin, node: int) -> Failure:
    found = admin.describe_cluster()
    brokers = ", ".join(str(each.id) for each in sorted((*found.brokers, *found.fenced)))
    return Failure(f"broker {node} is not part of the cluster now", f"its brokers are: {brokers}")
