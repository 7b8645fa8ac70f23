"""How another process asks the supervisor of `barnabas start --nodes` for something.

    DIR/.supervisor        a named pipe that the supervisor reads; a line is one request:
        restart NODE             restart a node in order; no answer
        nodes ANSWER             say which nodes the cluster has
        resize HAD WANTED ANSWER    grow or shrink it, if it has as many nodes as the asking process believes
    DIR/.answer-PID        the named pipe ANSWER of the process that asks, which the supervisor writes: one line of JSON

A person may type the first: `echo restart 2 > cluster/.supervisor`. Only the owner of the folder can write there.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "ANSWER_PREFIX",
    "SUPERVISOR_PIPE",
    "LocalNodes",
    "NotResized",
    "NotSupervised",
    "SupervisedNode",
    "ask_for_nodes",
    "ask_for_resize",
    "ask_for_restart",
    "read_answer",
    "write_answer",
]

SUPERVISOR_PIPE = ".supervisor"
ANSWER_PREFIX = ".answer-"

_ANSWER_SECONDS = 10
_RESIZE_SECONDS = 600
_LOOK_SECONDS = 0.5
_PIPE_MODE = 0o600


class NotSupervised(Exception):
    """No supervisor reads the pipe."""


class NotResized(Exception):
    """The supervisor says why the cluster has not the size that it was asked for."""


class SupervisedNode(NamedTuple):
    """A node as its supervisor knows it.

    Attributes:
        address: `HOST:PORT` of its clients; empty before it has served.
        folder: of its settings, its log and its data.
    """

    node_id: int
    address: str
    folder: str
    serves: bool


class LocalNodes(NamedTuple):
    """The nodes of a cluster on this machine.

    Attributes:
        changes_copies: their files have other settings for the number of copies than the processes that run.
    """

    cluster_id: str
    nodes: Sequence[SupervisedNode]
    changes_copies: bool = False


def ask_for_restart(folder: Path, node: int) -> None:
    """Ask the supervisor of a folder to restart a node; do not wait for it.

    Raises:
        NotSupervised: none runs there.
    """
    _ask(folder, f"restart {node}")


def ask_for_nodes(folder: Path) -> LocalNodes:
    """Return the nodes of a cluster that runs.

    Raises:
        NotSupervised: no supervisor answers.
    """
    return _answered(folder, "nodes", _ANSWER_SECONDS)


def ask_for_resize(folder: Path, had: int, wanted: int) -> LocalNodes:
    """Let the supervisor start or stop nodes, and return those that the cluster has then.

    Raises:
        NotSupervised: no supervisor answers.
        NotResized: it could not; the text says how far it came.
    """
    return _answered(folder, f"resize {had} {wanted}", _RESIZE_SECONDS)


def write_answer(answer: LocalNodes | str) -> bytes:
    """Return the line for an answer, or for the sentence that refuses it."""
    if isinstance(answer, str):
        return json.dumps({"error": answer}).encode() + b"\n"
    nodes = [each._asdict() for each in answer.nodes]
    return json.dumps({**answer._asdict(), "nodes": nodes}).encode() + b"\n"


def read_answer(line: bytes) -> LocalNodes:
    """Read the line of an answer.

    Raises:
        NotResized: it refuses, with the reason.
    """
    said = json.loads(line)
    if "error" in said:
        raise NotResized(said["error"])
    return LocalNodes(**{**said, "nodes": [SupervisedNode(**each) for each in said["nodes"]]})


def _ask(folder: Path, request: str) -> None:
    path = folder / SUPERVISOR_PIPE
    try:
        # Without a reader this open fails; with O_NONBLOCK it does not wait for one.
        pipe = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        raise NotSupervised(f"no cluster of `barnabas start --nodes` runs in {folder}") from None
    try:
        if not stat.S_ISFIFO(os.fstat(pipe).st_mode):
            raise NotSupervised(f"{path} is not the pipe of a supervisor")
        os.write(pipe, f"{request}\n".encode())
    except OSError as error:
        raise NotSupervised(f"the supervisor of {folder} does not read its pipe: {error.strerror}") from None
    finally:
        os.close(pipe)


def _answered(folder: Path, request: str, within_s: float) -> LocalNodes:
    """Ask, and wait for the answer."""
    if not (folder / SUPERVISOR_PIPE).exists():
        raise NotSupervised(f"no cluster of `barnabas start --nodes` runs in {folder}")
    with _answer_pipe(folder) as (name, pipe):
        _ask(folder, f"{request} {name}")
        line, until = b"", time.monotonic() + within_s
        while not line.endswith(b"\n"):
            if select.select([pipe], [], [], _LOOK_SECONDS)[0]:
                line += os.read(pipe, 65536)
            elif time.monotonic() >= until:
                raise NotSupervised(f"the supervisor of {folder} has not answered for {within_s} s")
            else:
                # An empty line asks for nothing: it only shows whether somebody reads.
                _ask(folder, "")
    return read_answer(line)


@contextlib.contextmanager
def _answer_pipe(folder: Path) -> Iterator[tuple[str, int]]:
    """Make the pipe of this process; yield its name and its descriptor."""
    path = folder / f"{ANSWER_PREFIX}{os.getpid()}"
    path.unlink(missing_ok=True)
    os.mkfifo(path, _PIPE_MODE)
    # With a writer of its own the pipe never ends.
    pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        yield path.name, pipe
    finally:
        os.close(pipe)
        path.unlink(missing_ok=True)
