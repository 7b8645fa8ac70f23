"""A secret that the user of a command gives: by the environment, at a prompt, or as a line of the standard input.

Never as an argument, where other users of the machine could read it.
"""

from __future__ import annotations

import os
import sys
from getpass import getpass

__all__ = ["given_secret"]


def given_secret(variable: str, what: str, *, is_new: bool = False) -> str:
    """Return a secret, empty if none is given.

    Args:
        variable: of the environment; it is read first.
        what: is asked for at a terminal, such as `Password`.
        is_new: ask twice, until both are the same.
    """
    found = os.environ.get(variable)
    if found is not None:
        return found
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    try:
        while True:
            typed = getpass(f"{what}: ", sys.stderr)
            if not typed or not is_new or getpass("Repeat for confirmation: ", sys.stderr) == typed:
                return typed
            print("The two are not the same.", file=sys.stderr)
    except EOFError:
        return ""
