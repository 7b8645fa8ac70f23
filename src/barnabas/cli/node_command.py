"""`--command`: what an operator types to restart one node, with `{node}` and `{host}` in place of the node.

    systemctl restart barnabas@{node}
    ssh root@{host} systemctl restart barnabas

The text is split into words as a shell does it, and run without one. Each placeholder stays a part of its word. The host comes from the
cluster, and `ssh` gives its words to a shell at the other end: so a host with other characters than a name or an address has is an error.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Sequence

import click

from barnabas.cli.failure import Failure
from barnabas.words.printable import printable

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_HOST = re.compile(r"[A-Za-z0-9_:\[][A-Za-z0-9._:%\[\]-]*")
_STANDARD_ERROR = 2


class NodeCommand(click.ParamType[Sequence[str]]):
    """A command with placeholders; the command gets its words."""

    name = "COMMAND"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Sequence[str]:
        try:
            words = shlex.split(value)
        except ValueError as error:
            self.fail(f"{value!r} is not a command: {str(error).lower()}", param, ctx)
        names = [name for word in words for name in _PLACEHOLDER.findall(word)]
        for name in names:
            if name not in ("node", "host"):
                self.fail(f"{{{name}}} stands for nothing: write {{node}} or {{host}}", param, ctx)
        if not names:
            self.fail("it must name the node: write {node} or {host} in it", param, ctx)
        return words


def words_for(template: Sequence[str], node: int, host: str | None) -> list[str]:
    """Return the words of a command for one node.

    Raises:
        Failure: the command needs a host, and the cluster names none that is one.
    """
    if any("{host}" in word for word in template):
        if host is None:
            raise Failure(f"the cluster does not name the host of node {node}", "write {node} in --command instead")
        if _HOST.fullmatch(host) is None:
            raise Failure(f"the host of node {node} is not a host's name: {printable(host)}")
    values = {"node": str(node), "host": host or ""}
    return [_PLACEHOLDER.sub(lambda found: values[found[1]], word) for word in template]


def run_command(words: Sequence[str], node: int, within_s: float) -> None:
    """Run a command, and wait until it ends. What it prints goes to standard error.

    Raises:
        Failure: it cannot be run, does not end in time, or ends with another exit code than 0.
    """
    shown = printable(shlex.join(words))
    try:
        code = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=_STANDARD_ERROR, stderr=_STANDARD_ERROR, timeout=within_s
        ).returncode
    except subprocess.TimeoutExpired:
        raise Failure(f"the command for node {node} did not end within {within_s:g} s: {shown}") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise Failure(f"the command for node {node} cannot be run: {reason}: {shown}") from None
    if code:
        raise Failure(f"the command for node {node} ended with exit code {code}: {shown}")
