"""`barnabas adopt next --beside NODE` and `adopt back --beside NODE`: a new node takes the place of another one."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.adopt.beside_hand import TwoNodesHand, format_command, release_of
from barnabas.adopt.beside_sight import Sight
from barnabas.adopt.beside_step import beside_step
from barnabas.adopt.beside_watch import TwoNodes
from barnabas.adopt.change import Act, Step
from barnabas.adopt.change_run import run_change, say, show_plan
from barnabas.adopt.given_file import GivenFile, read_file
from barnabas.adopt.planned_steps import Planned
from barnabas.adopt.stop_and_start import Operator, Way
from barnabas.cli.failure import Failure
from barnabas.cli.session import Session
from barnabas.client.program import Program

__all__ = ["Asked", "planned_beside", "replace_node"]


class Asked(NamedTuple):
    """The command line.

    Attributes:
        path: the file of the node that comes.
        leaving: the id of the node that leaves.
        commands: of the operator.
        release: of Apache Kafka, for the way back.
        connection: the options that name the cluster.
    """

    wanted: Program
    path: str
    leaving: int
    commands: Mapping[Act, str | None]
    limit_s: float
    release: str | None
    connection: Sequence[str]


def replace_node(session: Session, asked: Asked, *, dry_run: bool) -> None:
    """Let the node of a file take the place of another one, or print the steps."""
    file = read_file(asked.path, os.environ, time.time_ns() // 1_000_000)
    if file.node_id is None:
        raise Failure(f"{asked.path}: {file.mistakes[0]}", "correct the file")
    ways = _ways(asked, file.node_id)
    with session.admin() as admin:
        watch = TwoNodes(admin, file, asked.leaving, asked.wanted, asked.release)
        if dry_run:
            sight = watch.look()
            step = Step(Act.REFUSE, ("no broker answers",)) if sight is None else beside_step(sight, asked.wanted)
            release = None if sight is None else release_of(admin.describe_features().values())
            planned = planned_beside(asked, file, watch.cluster_id or "CLUSTER-ID", sight, ways, release)
            end = f"node {file.node_id} is {asked.wanted.value}, and node {asked.leaving} is not in the cluster"
            show_plan(session, watch, step, planned, {"node": file.node_id, "replaces": asked.leaving}, end)
            return
        hand = TwoNodesHand(
            admin,
            Operator(ways, say),
            coming=file.node_id,
            leaving=asked.leaving,
            path=asked.path,
            is_controller="controller" in file.roles,
            address=file.controller_address,
            say=say,
        )
        run_change(
            session,
            watch,
            hand,
            {"NODE": file.node_id, "PROGRAM": asked.wanted.value, "REPLACES": asked.leaving},
            f"stopped with node {file.node_id} on its way to the place of node {asked.leaving}",
            f"the same command goes on; with the file of node {asked.leaving},"
            f" `adopt {_undo(asked.wanted)} --beside {file.node_id}` gives its place back",
            asked.limit_s,
        )


def _undo(wanted: Program) -> str:
    return "back" if wanted == Program.BARNABAS else "next"


def _ways(asked: Asked, coming: int) -> dict[Act, Way]:
    path = shlex.quote(asked.path)
    start = {
        Program.BARNABAS: f"barnabas start --config {path}",
        Program.KAFKA: f"bin/kafka-server-start.sh {path}",
    }[asked.wanted]
    stop = "as the service manager of its machine stops it"
    return {
        Act.STOP: Way(f"stop node {asked.leaving}", stop, asked.commands.get(Act.STOP)),
        Act.START: Way(f"start node {coming} as {asked.wanted.value}", start, asked.commands.get(Act.START)),
    }


def planned_beside(
    asked: Asked, file: GivenFile, cluster_id: str, sight: Sight | None, ways: Mapping[Act, Way], release: str | None
) -> list[Planned]:
    """Return all steps in order, those that are done already too; `release` as `format_command` gets it."""
    place = " ".join(map(shlex.quote, asked.connection))
    coming, leaving, path = file.node_id, asked.leaving, shlex.quote(asked.path)
    can_vote = sight is not None and sight.can_vote and "controller" in file.roles
    host, port = file.controller_address or ("HOST", "PORT")
    votes = [Planned(f"let node {coming} vote", f"barnabas cluster voter add {coming} --at {host}:{port} {place}")]
    stop = Planned(ways[Act.STOP].what, ways[Act.STOP].command or ways[Act.STOP].typed)
    leaves = [Planned(f"node {leaving} votes no more", f"barnabas cluster voter remove {leaving} {place}")]
    # A node that leads the quorum is stopped first.
    farewell = [stop, *leaves] if sight is not None and sight.leader == leaving else [*leaves, stop]
    formatted = " ".join(["barnabas", *format_command(cluster_id, path, joins_voters=can_vote, release=release)])
    return [
        Planned(f"format the directory of node {coming}", formatted),
        Planned(ways[Act.START].what, ways[Act.START].command or ways[Act.START].typed),
        Planned(f"wait until node {coming} serves, and has read the metadata log", f"barnabas adopt status {place}"),
        *(votes if can_vote else []),
        Planned(f"node {coming} gets the replicas of node {leaving}", f"barnabas cluster drain {leaving} {place}"),
        *(farewell if can_vote else [stop]),
        *(
            [Planned(f"forget node {leaving}", f"barnabas cluster forget {leaving} {place}")]
            if "broker" in file.roles
            else []
        ),
        Planned(
            "to undo it, with the file of the other node",
            f"barnabas adopt {_undo(asked.wanted)} --beside {coming} {place} --config FILE",
        ),
    ]
