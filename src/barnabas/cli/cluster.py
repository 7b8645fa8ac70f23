"""`barnabas cluster`: health, nodes and quorum of a cluster, moves of replicas, restarts, its size, what is lost or gone."""

from __future__ import annotations

from copy import copy

import click

from barnabas.cli.cluster_accept_loss import accept_loss
from barnabas.cli.cluster_forget import forget
from barnabas.cli.cluster_move import cancel, move
from barnabas.cli.cluster_moves import drain, rebalance
from barnabas.cli.cluster_nodes import nodes
from barnabas.cli.cluster_quorum import controller_of, quorum, quorum_of
from barnabas.cli.cluster_replace import replace
from barnabas.cli.cluster_resize import resize
from barnabas.cli.cluster_restart import restart
from barnabas.cli.cluster_status import status
from barnabas.cli.cluster_throttle import throttle
from barnabas.cli.cluster_upgrade import upgrade
from barnabas.cli.cluster_voter import voter
from barnabas.cli.output import Found, Table
from barnabas.cli.session import Session, session_options
from barnabas.client.admin import Admin


@click.group()
def cluster() -> None:
    """The cluster: its health, nodes and quorum; moves replicas, restarts nodes, forgets brokers."""


@cluster.command()
@session_options
def info(session: Session) -> None:
    """Show the cluster's id, controller, brokers, and how much it holds.

    \b
    barnabas cluster info
    """
    with session.admin() as admin:
        session.output.show_found(info_of(admin))


def info_of(admin: Admin) -> Found:
    """Return the cluster's id, controller and brokers, and how much it holds."""
    found = admin.describe_cluster()
    quorum = quorum_of(admin)
    topics = admin.list_topics(internal=True)
    internal = sum(topic.is_internal for topic in topics)
    columns = (
        "CLUSTER-ID", "CONTROLLER", "BROKERS", "TOPICS", "INTERNAL-TOPICS", "PARTITIONS", "VOTERS", "METADATA-OFFSET",
    )  # fmt: skip
    row = (
        found.cluster_id,
        controller_of(found, quorum),
        [node.id for node in found.brokers],
        len(topics) - internal,
        internal,
        sum(len(topic.partitions) for topic in topics),
        None if quorum is None else [each.id for each in quorum.voters],
        None if quorum is None else quorum.high_watermark,
    )
    table = Table(columns, [row], vertical=True)
    return Found(table.objects()[0], [table])


for command in (
    status,
    nodes,
    quorum,
    voter,
    drain,
    rebalance,
    move,
    cancel,
    throttle,
    resize,
    restart,
    upgrade,
    replace,
    forget,
    accept_loss,
):
    cluster.add_command(command)

# The name that `status` had before it counted as much.
health = copy(status)
health.hidden = True
cluster.add_command(health, "health")
