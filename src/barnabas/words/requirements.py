"""The packages of extras: the sentence for a missing one, and the command that installs an extra.

    with needed_by("barnabas.retries", "cli"):
        from confluent_kafka import Consumer

The broker and the fixtures need no extra. Code that needs one imports its packages in such a block, and the command line is one block as a
whole. The command names the packages themselves: barnabas may have come from a clone or from a wheel, so that no command installs its
extra everywhere.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["NotInstalled", "install_command", "needed_by"]

_END_OF_NAME = re.compile(r"[^a-z0-9-]")
_OF_MODULES = {"google": "protobuf"}
"""Packages whose name is not that of their module."""


class NotInstalled(ImportError):
    """A package of an extra is not installed; the message is a sentence for the user.

    Attributes:
        sentence: the subject, and the packages that it needs.
        command: installs it.
    """

    def __init__(self, what: str, package: str, extra: str) -> None:
        self.sentence = f"{what} needs {package}"
        self.command = install_command(extra)
        super().__init__(f"{self.sentence}: {self.command}", name=package)


@contextmanager
def needed_by(what: str, extra: str) -> Iterator[None]:
    """Explain imports that fail within the block.

    Args:
        what: the subject of the sentence.
        extra: which extra brings the packages.

    Raises:
        NotInstalled: a package of the extra is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        package = _OF_MODULES.get(module, module.replace("_", "-"))
        if package not in (_END_OF_NAME.split(each, maxsplit=1)[0] for each in _packages(extra)):
            raise
        raise NotInstalled(what, package, extra) from None


def install_command(extra: str) -> str:
    """Return a command that installs the packages of an extra, for the running interpreter."""
    return " ".join([sys.executable, "-m", "pip", "install", *(f'"{each}"' for each in _packages(extra))])


def _packages(extra: str) -> list[str]:
    # 10 ms that only a missing package costs.
    from importlib.metadata import requires

    lines = [line.partition(";") for line in requires("barnabas") or []]
    return [requirement.strip() for requirement, _, marker in lines if re.search(rf"extra == .{extra}\b", marker)]
