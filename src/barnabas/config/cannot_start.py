"""Why a node cannot start, in one line that says what to do next.

The user of `barnabas start` gave options, the user of `barnabas.Broker` gave arguments: `remedies` returns the words of each. No
module of the broker is imported here, so that the error exists also where the broker cannot run.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

__all__ = ["CannotStart", "Remedies", "check_system", "remedies"]


class CannotStart(RuntimeError):
    """This node cannot start; the text is one line with a remedy for the user."""

    __module__ = "barnabas"  # the name that users know


class Remedies(NamedTuple):
    """What to do next, in the words of the one who started the broker."""

    other_directory: str
    free_port: str


_OPTIONS = Remedies(other_directory="pass another --data-dir", free_port="--listen HOST:0 picks a free port")
_ARGUMENTS = Remedies(other_directory="pass another data_dir=, or none", free_port="port=0 picks a free port")


def remedies(embedded: bool) -> Remedies:
    """Return the words for an embedded broker, or for the command line."""
    return _ARGUMENTS if embedded else _OPTIONS


def check_system() -> None:
    """Raise CannotStart on a system without the calls that the log needs."""
    if sys.platform == "win32":
        raise CannotStart(
            "the broker needs Linux or macOS; on Windows the client and the other commands of barnabas work"
        )
