"""The steps of a node's change as a plan, with the commands to type."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.adopt.change import Act
from barnabas.adopt.own_files import OwnFiles
from barnabas.adopt.stop_and_start import Way
from barnabas.client.program import Program, other_program

__all__ = ["Planned", "planned_steps", "ways_of"]


class Planned(NamedTuple):
    """One step of the plan: a person reads `what`, and may type `command`."""

    what: str
    command: str


def ways_of(files: OwnFiles, wanted: Program, commands: Mapping[Act, str | None], holder: int | None) -> dict[Act, Way]:
    """Return how the node is stopped and started.

    Args:
        commands: those that the operator gave.
        holder: the process id of the node that runs.
    """
    node, path = files.node_id, shlex.quote(files.file.path)
    stop = f"kill -TERM {holder}, or as your service manager stops it" if holder else "as your service manager stops it"
    start = {
        Program.BARNABAS: f"barnabas start --config {path}",
        Program.KAFKA: f"bin/kafka-server-start.sh {path}",
    }[wanted]
    was = other_program(wanted).value
    return {
        Act.STOP: Way(f"stop node {node} ({was})", stop, commands.get(Act.STOP)),
        Act.START: Way(f"start node {node} as {wanted.value}", start, commands.get(Act.START)),
    }


def planned_steps(
    files: OwnFiles, wanted: Program, ways: Mapping[Act, Way], connection: Sequence[str]
) -> list[Planned]:
    """Return all steps in order.

    Args:
        connection: the options that name the cluster.
    """
    place = " ".join(map(shlex.quote, connection))
    file = shlex.quote(files.file.path)
    node = files.node_id
    undo = "back" if wanted == Program.BARNABAS else "next"
    return [
        Planned(
            "see that nothing blocks, and that the cluster is healthy", f"barnabas adopt check {place} --config {file}"
        ),
        *(Planned(each.what, each.command or each.typed) for each in (ways[Act.STOP], ways[Act.START])),
        Planned(
            f"wait until node {node} is {wanted.value}, all replicas are in sync and the quorum has a leader",
            f"barnabas adopt status {place}",
        ),
        Planned("to undo it", f"barnabas adopt {undo} {place} --config {file}"),
    ]
