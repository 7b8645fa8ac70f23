"""`barnabas adopt next` and `barnabas adopt back`: one node becomes barnabas in place, or Apache Kafka again.

The exit code is 0 if the node is back in sync as the wanted program, 1 if the command was refused or stopped, 2 after a wrong command line.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import wraps

import click

from barnabas.adopt.beside_command import Asked, replace_node
from barnabas.adopt.change import Act
from barnabas.adopt.change_run import run_change, say, show_plan
from barnabas.adopt.directory_lock import OneAtATime, TakenTwice
from barnabas.adopt.given_file import read_file
from barnabas.adopt.node_watch import NodeWatch
from barnabas.adopt.own_files import own_files
from barnabas.adopt.planned_steps import planned_steps, ways_of
from barnabas.adopt.stop_and_start import Operator
from barnabas.cli.duration import Duration
from barnabas.cli.failure import Failure
from barnabas.cli.session import Session, session_options
from barnabas.client.program import Program, other_program
from barnabas.words.printable import printable

__all__ = ["back", "next_"]

_LIMIT = "15m"


def _change_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that `next` and `back` share; the command gets the first four as `path`, `commands` and `limit_s`."""

    @click.option(
        "--config",
        "path",
        required=True,
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="The server.properties of the node, which is on this machine.",
    )
    @click.option("--stop-command", metavar="COMMAND", help="Stops the node; without it you are asked to stop it.")
    @click.option("--start-command", metavar="COMMAND", help="Starts the node; without it you are asked to start it.")
    @click.option(
        "--limit",
        "limit_ms",
        type=Duration(bare_is_seconds=True, min_ms=1_000),
        default=_LIMIT,
        show_default=True,
        help="Stop if a step takes longer; a bare number is seconds.",
    )
    @click.option(
        "--beside",
        "replaced",
        type=click.IntRange(min=0),
        metavar="NODE",
        help="The node of the file is a new one, and takes the place of this node.",
    )
    @click.option("-d", "--dry-run", is_flag=True, help="Only check, and print all steps with their commands.")
    @session_options
    @wraps(function)
    def command(stop_command: str | None, start_command: str | None, limit_ms: int, **options: object) -> None:
        commands = {Act.STOP: stop_command, Act.START: start_command}
        function(commands=commands, limit_s=limit_ms / 1_000, **options)

    return command


@click.command("next")
@_change_options
def next_(
    session: Session, path: str, commands: Mapping[Act, str | None], limit_s: float, replaced: int | None, dry_run: bool
) -> None:
    """Let the node of a file become barnabas: on its own directory, with its own file and id.

    Nothing is formatted. The node is stopped only if `adopt check` finds nothing that blocks, all other nodes serve and every replica is in
    sync. Type the same again after an interruption: the command looks, and goes on. Name other brokers than this node with -b.

    With --beside the node of the file is a new one, with a new id on a new directory. It is formatted, started, gets the vote and the
    replicas of the other node, which is then stopped and forgotten.

    \b
    barnabas adopt next -b kafka-2:9092,kafka-3:9092 --config server.properties \\
        --stop-command 'systemctl stop kafka' \\
        --start-command 'systemctl start barnabas'
    """
    _change(session, Program.BARNABAS, path, commands, limit_s, replaced=replaced, dry_run=dry_run)


@click.command()
@_change_options
@click.option("--kafka-release", metavar="RELEASE", help="Such as 4.3: needed when no node is Apache Kafka any more.")
def back(
    session: Session,
    path: str,
    commands: Mapping[Act, str | None],
    limit_s: float,
    replaced: int | None,
    dry_run: bool,
    kafka_release: str | None,
) -> None:
    """Let the node of a file be Apache Kafka again: on its own directory, with its own file and id.

    It undoes `adopt next`, at any point of it. The node is stopped only if Apache Kafka knows every feature level of the cluster, all other
    nodes serve and every replica is in sync. With --beside the node of the file takes the place of another one again.

    \b
    barnabas adopt back -b kafka-2:9092,kafka-3:9092 --config server.properties \\
        --kafka-release 4.3
    """
    _change(session, Program.KAFKA, path, commands, limit_s, replaced=replaced, dry_run=dry_run, release=kafka_release)


def _change(
    session: Session,
    wanted: Program,
    path: str,
    commands: Mapping[Act, str | None],
    limit_s: float,
    *,
    replaced: int | None,
    dry_run: bool,
    release: str | None = None,
) -> None:
    if replaced is not None:
        asked = Asked(wanted, path, replaced, commands, limit_s, release, _connection_of(session))
        with _one_at_a_time(path):
            replace_node(session, asked, dry_run=dry_run)
        return
    files = own_files(read_file(path, os.environ, time.time_ns() // 1_000_000))
    with _one_at_a_time(files.root), session.admin() as admin:
        watch = NodeWatch(admin, files, wanted, release)
        ways = ways_of(files, wanted, commands, files.holder())
        if dry_run:
            planned = planned_steps(files, wanted, ways, _connection_of(session))
            end = f"node {files.node_id} is {wanted.value} already"
            show_plan(session, watch, watch.turn(None).step, planned, {"node": files.node_id}, end)
            return
        run_change(
            session,
            watch,
            Operator(ways, say),
            {"NODE": files.node_id, "PROGRAM": wanted.value},
            f"stopped with node {files.node_id} on its way",
            _undo(wanted),
            limit_s,
        )


def _one_at_a_time(place: str) -> OneAtATime:
    """Return a lock on the directory of a node, or on the file of a new one."""
    try:
        return OneAtATime(place)
    except TakenTwice:
        raise Failure(
            f"another `adopt` command changes the node of {printable(place)}", "wait for it, or end it"
        ) from None
    except OSError as error:
        raise Failure(f"{printable(place)} cannot be opened: {(error.strerror or str(error)).lower()}") from None


def _undo(wanted: Program) -> str:
    undo = "back" if wanted == Program.BARNABAS else "next"
    return f"the same command goes on; `adopt {undo}` lets it be {other_program(wanted).value} again"


def _connection_of(session: Session) -> list[str]:
    """Return the options that name the cluster of this command."""
    if session.profile is not None:
        return ["--profile", session.profile]
    config = click.get_current_context().params.get("command_config")
    return ["-b", session.bootstrap, *(("--command-config", config) if config else ())]
