"""`barnabas cluster resize`: a cluster of `barnabas start --nodes` gets more or fewer nodes while it runs.

The supervisor makes, starts and stops the nodes; this command does what the cluster has to know. Each step looks at what is there, so
the same words go on wherever the last run of them was killed. A cluster grows by brokers. It shrinks by its last nodes: their replicas
move to others, they leave the quorum, they stop, and the cluster forgets them. Their folders stay.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import click

from barnabas.cli.cluster_forget import check_may_be_forgotten
from barnabas.cli.cluster_moves import View, found_moves, move_plan, of_lost, view_of
from barnabas.cli.cluster_quorum import quorum_of
from barnabas.cli.cluster_voter import check_may_leave_together, directory_of
from barnabas.cli.failure import Failure, Failures, failure_of
from barnabas.cli.output import Found, Table
from barnabas.cli.session import Session, session_options
from barnabas.cli.wording import counted, listed
from barnabas.client import placement
from barnabas.client.admin import Admin
from barnabas.client.local_supervisor import (
    LocalNodes,
    NotResized,
    NotSupervised,
    SupervisedNode,
    ask_for_nodes,
    ask_for_resize,
)
from barnabas.client.placement import Plan, TooFewBrokers

_NODES_MAX = 99
_ROUNDS = 3
"""How often replicas that arrive meanwhile are moved away."""
_LOOK_SECONDS = 0.2
_CLUSTER_SECONDS = 60
"""How long the cluster may take to see that a node has come or gone."""


@click.command()
@click.argument("wanted", type=click.IntRange(1, _NODES_MAX), metavar="N")
@click.option(
    "--data-dir",
    "folder",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Of a cluster under `barnabas start --nodes` that runs.",
)
@click.option("-d", "--dry-run", is_flag=True, help="Only check, and show what would be done.")
@session_options
def resize(session: Session, wanted: int, folder: Path, dry_run: bool) -> None:
    """Let a cluster of `barnabas start --nodes` have N nodes while it runs.

    It grows by brokers, and shrinks by its last nodes: their replicas move to the others, then the nodes stop, and the cluster forgets
    them. Their folders stay. If the command is interrupted, the same words go on.

    \b
    barnabas cluster resize 5 --data-dir cluster
    barnabas cluster resize 3 --data-dir cluster --dry-run
    """
    with session.admin() as admin:
        resizing = _Resizing(session, admin, folder, wanted)
        found = resizing.planned() if dry_run else resizing.carry_out()
    session.output.show_found(found)


class _Resizing:
    """One run of the command.

    Raises:
        Failure: the folder's cluster does not run, or is not the one at the session's address.
    """

    def __init__(self, session: Session, admin: Admin, folder: Path, wanted: int) -> None:
        self._admin = admin
        self._folder = folder.absolute()
        self._wanted = wanted
        self._before = _supervised(lambda: ask_for_nodes(folder))
        described = admin.describe_cluster()
        if described.cluster_id != self._before.cluster_id:
            addresses = ",".join(each.address for each in self._before.nodes if each.address)
            raise Failure(
                f"the cluster at {session.bootstrap} is not the one in {folder}",
                f"name an address of it: -b {addresses}",
            )
        self._registered = {each.id for each in (*described.brokers, *described.fenced)}
        supervised = {each.node_id: each for each in self._before.nodes}
        # A run that was killed has left some that are stopped and not forgotten; others may have brokers of their own.
        stopped = {
            each: SupervisedNode(each, "", str(self._path(each)), False)
            for each in self._registered - supervised.keys()
            if self._path(each).is_dir()
        }
        self._leaving = {n: each for n, each in sorted((supervised | stopped).items()) if n > wanted}

    def planned(self) -> Found:
        """Return what the command would do.

        Raises:
            Failure: it cannot be done.
        """
        had = len(self._before.nodes)
        if not self._leaving:
            added = [SupervisedNode(n, "", str(self._path(n)), False) for n in range(had + 1, self._wanted + 1)]
            return _nodes_found([*self._before.nodes, *added], added=added, would=True)
        self._check_quorum()
        view = view_of(self._admin)
        nodes = _nodes_found(self._before.nodes, retired=list(self._leaving.values()), would=True)
        moves = found_moves(view, self._plan(view))
        return Found({**nodes.data, **moves.data}, [*moves.tables, *nodes.tables])

    def carry_out(self) -> Found:
        """Resize the cluster.

        Raises:
            Failure: a step failed; what was done before stays.
        """
        if self._leaving:
            self._empty()
        after = _supervised(lambda: ask_for_resize(self._folder, len(self._before.nodes), self._wanted))
        ids = {each.node_id for each in after.nodes}
        _await("the new nodes are part of the cluster", lambda: ids <= self._serving())
        if self._leaving:
            self._forget()
        known = {each.node_id for each in self._before.nodes}
        added = [each for each in after.nodes if each.node_id not in known]
        if added:
            click.echo(
                "new topics use them; `barnabas cluster rebalance` gives them their share of those that exist", err=True
            )
        if after.changes_copies:
            click.echo(
                "the nodes' files have other settings for the number of copies now:"
                f" `barnabas cluster restart --rolling --data-dir {self._folder}` lets them apply",
                err=True,
            )
        return _nodes_found(after.nodes, added=added, retired=list(self._leaving.values()))

    def _empty(self) -> None:
        """Move the replicas of the leaving nodes away, and take them out of the quorum."""
        self._check_quorum()
        self._await_moves()
        for _ in range(_ROUNDS):
            view = view_of(self._admin)
            if not (plan := self._plan(view)):
                break
            click.echo(f"replicas of {counted(len(plan), 'partition')} move away from {self._names()}", err=True)
            failed = {at: error for at, error in move_plan(self._admin, plan).items() if error is not None}
            if failed:
                raise Failures([failure_of(error, f"partition {at}") for at, error in failed.items()])
        else:
            raise Failure(
                f"new replicas arrive on {self._names()} while the others move away", "type the command again"
            )
        quorum = quorum_of(self._admin)
        for replica in [] if quorum is None else [each for each in quorum.voters if each.id in self._leaving]:
            if error := self._admin.remove_voter(replica.id, directory_of(replica)):
                raise failure_of(error, f"node {replica.id}")
            click.echo(f"node {replica.id} votes no more", err=True)

    def _await_moves(self) -> None:
        """Wait for moves that go on: a run that was killed has left them."""
        if moving := self._admin.list_reassignments():
            click.echo(
                f"replicas of {counted(len(moving), 'partition')} are being moved already: waiting for them"
                " (`barnabas cluster cancel --all` ends the moves)",
                err=True,
            )
            while self._admin.list_reassignments():
                time.sleep(_LOOK_SECONDS)

    def _check_quorum(self) -> None:
        if (quorum := quorum_of(self._admin)) is not None:
            check_may_leave_together(quorum, self._leaving)

    def _plan(self, view: View) -> Plan:
        """Return where the replicas of the leaving nodes go.

        Raises:
            Failure: a partition has no leader, or the nodes that stay are too few for its replicas.
        """
        held = {at: each for at, each in view.partitions.items() if self._leaving.keys() & set(each.replicas)}
        if lost := {at: each for at, each in held.items() if each.leader < 0}:
            raise Failures(of_lost(lost))
        serving = [each for each in view.serving if each not in self._leaving]
        replicas, plan = view.replicas(), Plan()
        for node in self._leaving:
            try:
                step = placement.drain(replicas, node, serving, view.racks)
            except TooFewBrokers as error:
                raise Failure(
                    f"{error.partition} has {counted(error.replicas, 'replica')}, and {counted(len(serving), 'other broker')}"
                    " can take them",
                    "a cluster keeps as many brokers as its partitions have replicas",
                ) from None
            replicas, plan = replicas | step, plan | step
        return plan

    def _forget(self) -> None:
        gone = [each for each in self._leaving if each in self._registered]
        _await("the retired nodes are out of service", lambda: not self._serving() & set(gone))
        for node in gone:
            try:
                check_may_be_forgotten(self._admin, node)
            except Failure as failure:
                raise Failure(
                    f"node {node} is stopped and not forgotten: {failure.message}",
                    f"it came meanwhile: `barnabas cluster resize {node} --data-dir {self._folder}` starts the node again",
                ) from None
            if error := self._admin.unregister_broker(node):
                raise failure_of(error, f"broker {node}")

    def _serving(self) -> set[int]:
        return {each.id for each in self._admin.describe_cluster().brokers}

    def _names(self) -> str:
        return f"node {listed(list(self._leaving))}"

    def _path(self, node: int) -> Path:
        return self._folder / f"node-{node}"


def _supervised(ask: Callable[[], LocalNodes]) -> LocalNodes:
    """Ask the supervisor.

    Raises:
        Failure: it does not answer, or says why the cluster does not have that size.
    """
    try:
        return ask()
    except NotSupervised as error:
        raise Failure(str(error), "name the --data-dir of the cluster that runs") from None
    except NotResized as error:
        raise Failure(str(error)) from None


def _await(what: str, is_so: Callable[[], bool]) -> None:
    """Wait for something that the cluster does by itself.

    Raises:
        Failure: it does not within a minute.
    """
    until = time.monotonic() + _CLUSTER_SECONDS
    while not is_so():
        if time.monotonic() >= until:
            raise Failure(
                f"{_CLUSTER_SECONDS} s have passed, and it is not so that {what}",
                "`barnabas cluster status` says how the cluster is; the same command goes on",
            )
        time.sleep(_LOOK_SECONDS)


def _nodes_found(
    nodes: Sequence[SupervisedNode],
    *,
    added: Collection[SupervisedNode] = (),
    retired: Collection[SupervisedNode] = (),
    would: bool = False,
) -> Found:
    """Return the nodes, those that have come and those that have gone."""
    prefix = "would be " if would else ""
    rows = []
    for each in sorted({*nodes, *retired}):
        status = "serves" if each.serves else "does not serve"
        if each in added:
            status = f"{prefix}added"
        elif each in retired:
            status = f"{prefix}retired"
        rows.append((each.node_id, each.address or None, status, each.folder))
    table = Table(("NODE", "ADDRESS", "STATUS", "FILES"), rows, below=("FILES",))
    return Found({"nodes": table.objects()}, [table])
