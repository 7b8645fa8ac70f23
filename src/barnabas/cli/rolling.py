"""The walk of `cluster restart` and `cluster upgrade`: looks at the cluster, and does what `client.rolling_restart` decides."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import NamedTuple

import click

from barnabas.cli.cluster_quorum import quorum_of
from barnabas.cli.duration import Duration
from barnabas.cli.failure import Failure, failure_of
from barnabas.cli.node_command import NodeCommand, run_command, words_for
from barnabas.cli.output import Found, Table
from barnabas.cli.progress import Measured, shown
from barnabas.client.admin import Admin, ConfigResource, ResourceType, TopicPartition
from barnabas.client.local_supervisor import NotSupervised, ask_for_restart
from barnabas.client.node_process import NodeProcess
from barnabas.client.rolling_restart import (
    Doubt,
    Elect,
    Finished,
    Look,
    Restart,
    RollingRestart,
    Wait,
    risk_of,
    roles_of,
    unrest_in,
)
from barnabas.client.topics import MIN_ISR
from barnabas.protocol.errors import ErrorCode, KafkaError

LOOK_SECONDS = 0.5
_WITHIN_MS = 600_000
_ACCEPTED = "add replicas or nodes, or accept it with --may-interrupt"


class Way(NamedTuple):
    """How nodes are restarted one by one: the options that `cluster restart` and `cluster upgrade` share.

    Attributes:
        command: restarts a node.
        data_dir: of the supervisor of `barnabas start --nodes`, which restarts a node instead.
        within_ms: how long a node may take until all is in sync again.
        may_interrupt: go on where something does without service meanwhile.
        dry_run: only check, and show the order.
    """

    command: Sequence[str] | None
    data_dir: Path | None
    within_ms: int = _WITHIN_MS
    may_interrupt: bool = False
    dry_run: bool = False

    @property
    def is_named(self) -> bool:
        """Whether the options say how a node is restarted."""
        return self.command is not None or self.data_dir is not None

    def require(self) -> None:
        """Check that one of the two ways is named; a dry run needs none.

        Raises:
            UsageError: both are, or neither is.
        """
        if (self.command is None) == (self.data_dir is None) and (self.is_named or not self.dry_run):
            raise click.UsageError("Say how a node is restarted: either --command or --data-dir.")

    def typed(self, node: int, hosts: dict[int, str]) -> str | None:
        """Return the restart of one node as people read it; None if neither way is given.

        Raises:
            Failure: the node has no host.
        """
        if self.command is not None:
            return shlex.join(words_for(self.command, node, hosts.get(node)))
        return None if self.data_dir is None else f"restart by the supervisor of {self.data_dir}"

    def restart(self, node: int, hosts: dict[int, str]) -> None:
        """Restart a node.

        Raises:
            Failure: it cannot be restarted.
        """
        if self.command is not None:
            run_command(words_for(self.command, node, hosts.get(node)), node, self.within_ms / 1000)
            return
        assert self.data_dir is not None
        try:
            ask_for_restart(self.data_dir, node)
        except NotSupervised as error:
            raise Failure(str(error), "name the --data-dir of the cluster that runs") from None


def rolling_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of the commands that restart nodes one by one; the command gets them as `way`."""

    @click.option("-d", "--dry-run", is_flag=True, help="Only check, and show the order.")
    @click.option(
        "--command",
        type=NodeCommand(),
        help="Restarts a node, without a shell; {node} and {host} stand for its id and host.",
    )
    @click.option(
        "--data-dir",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Of a cluster under `barnabas start --nodes`, which restarts the nodes itself.",
    )
    @click.option(
        "--within",
        "within_ms",
        type=Duration(),
        default=_WITHIN_MS,
        help="How long a node may take until all is in sync again.  [default: 10m]",
    )
    @click.option(
        "--may-interrupt",
        is_flag=True,
        help="Go on where partitions or the quorum do without service while a node is away.",
    )
    @wraps(function)
    def command(
        command: Sequence[str] | None,
        data_dir: Path | None,
        within_ms: int,
        may_interrupt: bool,
        dry_run: bool,
        **options: object,
    ) -> None:
        function(way=Way(command, data_dir, within_ms, may_interrupt, dry_run), **options)

    return command


class Walk:
    """A walk over the nodes of a cluster.

    Args:
        wanted: the nodes to restart; all if empty.
        name: the command that goes on with the nodes that are left.

    Raises:
        Failure: a node is not part of the cluster.
        KafkaError: no broker answers.
    """

    def __init__(self, admin: Admin, wanted: Sequence[int], way: Way, *, name: str) -> None:
        self._admin = admin
        self._way = way
        self._name = name
        self._min_isr: dict[str, int] = {}
        self.first = self._look()
        known = self.first.nodes
        for node in wanted:
            if node not in known:
                raise Failure(f"node {node} is not part of the cluster now", f"its nodes are: {_joined(sorted(known))}")
        self.nodes = [each for each in known if each in wanted or not wanted]
        self.rolling = RollingRestart(self.nodes, within_ms=way.within_ms, may_interrupt=way.may_interrupt)

    def __repr__(self) -> str:
        return f"<Walk {self.rolling!r}>"

    def doubts(self) -> list[Failure]:
        """Return everything that would stop the walk, as far as the cluster shows it now."""
        risks = [] if self._way.may_interrupt else [risk_of(self.first, node) for node in self.nodes]
        unrest = unrest_in(self.first)
        return [
            *([] if unrest is None else [Failure(unrest)]),
            *(Failure(each, _ACCEPTED) for each in risks if each is not None),
        ]

    def planned(self) -> Found:
        """Return the nodes in their order."""
        hosts = self._hosts()
        rows = [
            (node, roles_of(self.first, node), self._way.typed(node, hosts), "would be restarted")
            for node in self.nodes
        ]
        table = Table(("NODE", "ROLE", "COMMAND", "STATUS"), rows, hidden_first=("STATUS", "ROLE"), below=("COMMAND",))
        return Found(table.objects(), [table])

    def carry_out(self) -> Found:
        """Restart the nodes; return how long each took.

        Raises:
            Failure: something is not as it should be; the nodes that are left keep running as they were.
        """
        text = ""
        roles = {node: roles_of(self.first, node) for node in self.nodes}
        try:
            with shown(lambda: Measured(text, len(self.rolling.done), len(self.nodes))):
                process: NodeProcess | None = None
                while not isinstance(action := self._step(process), Finished):
                    if isinstance(action, Doubt):
                        raise Failure(action.why, _ACCEPTED if action.may_be_accepted else None)
                    if isinstance(action, Restart):
                        process = self._restart(action.node)
                    elif isinstance(action, Elect):
                        text = "preferred leaders take over"
                        self._admin.elect_preferred_leaders(action.partitions)
                        time.sleep(LOOK_SECONDS)
                    else:
                        text = action.why
                        time.sleep(LOOK_SECONDS)
        except KeyboardInterrupt:
            click.echo(self._goes_on(), err=True)
            raise
        except KafkaError as error:
            raise self._stopped(failure_of(error)) from None
        except Failure as failure:
            raise self._stopped(failure) from None
        rows = [(node, roles[node], f"{took / 1000:.1f} s", "restarted") for node, took in self.rolling.done.items()]
        table = Table(("NODE", "ROLE", "AFTER", "STATUS"), rows)
        return Found(table.objects(), [table])

    def _step(self, process: NodeProcess | None) -> Restart | Elect | Wait | Doubt | Finished:
        look: Look | str
        has_ended = True
        try:
            has_ended = process is None or process.has_ended()
            look = self._look()
        except KafkaError as error:
            look = error.message
        before = len(self.rolling.done)
        action = self.rolling.step(look, int(time.monotonic() * 1000), has_ended=has_ended)
        if len(self.rolling.done) > before:
            node, took = list(self.rolling.done.items())[-1]
            click.echo(f"node {node} is back, and all is in sync after {took / 1000:.1f} s", err=True)
        return action

    def _restart(self, node: int) -> NodeProcess | None:
        hosts = self._hosts()
        process = NodeProcess(self._admin.cluster, node) if node in self.first.serving else None
        click.echo(f"node {node} ({roles_of(self.first, node)}) is restarted", err=True)
        self._way.restart(node, hosts)
        # An operator may change it between two nodes.
        self._min_isr.clear()
        return process

    def _hosts(self) -> dict[int, str]:
        described = self._admin.describe_cluster()
        voters = {} if self.first.quorum is None else self.first.quorum.addresses
        return {node: address.rpartition(":")[0] for node, address in voters.items()} | {
            each.id: each.host for each in (*described.brokers, *described.fenced)
        }

    def _look(self) -> Look:
        """Return the cluster now.

        Raises:
            KafkaError: no broker answers.
        """
        described = self._admin.describe_cluster()
        partitions = self._admin.describe_partitions()
        self._learn_min_isr({at.topic for at in partitions})
        return Look(
            [each.id for each in described.brokers],
            [each.id for each in described.fenced],
            quorum_of(self._admin),
            partitions,
            self._moving(),
            dict(self._min_isr),
        )

    def _moving(self) -> list[TopicPartition]:
        try:
            return list(self._admin.list_reassignments())
        except KafkaError as error:
            if error.code != ErrorCode.UNSUPPORTED_VERSION:
                raise
            return []

    def _learn_min_isr(self, topics: set[str]) -> None:
        unknown = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(topics - self._min_isr.keys())]
        for resource, entries in self._admin.describe_configs(unknown, names=[MIN_ISR]).items() if unknown else ():
            if isinstance(entries, KafkaError):
                if entries.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    continue
                raise entries
            self._min_isr[resource.name] = next((int(each.value) for each in entries if each.value is not None), 1)

    def _stopped(self, failure: Failure) -> Failure:
        hint = "; ".join(each for each in (failure.hint, self._goes_on()) if each)
        return Failure(failure.message, hint)

    def _goes_on(self) -> str:
        left = self.rolling.left
        if not left:
            return ""
        return f"not restarted or not well yet: {_joined(left)}; go on with `barnabas cluster {self._name} {' '.join(map(str, left))} …`"


def _joined(nodes: Sequence[int]) -> str:
    return ", ".join(map(str, nodes))
