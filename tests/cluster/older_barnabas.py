"""An older barnabas beside the present one: its source from the history of this repository, run by the same Python.

Nothing is installed: the processes of `OlderBarnabasNode` find their package through PYTHONPATH.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path
from typing import ClassVar

from tests.cluster.node_process import BarnabasNode

RELEASE, COMMIT = "0.1.0", "9b5d1f9d7468f06e8677339a55085e9180dd041a"
"""The commit with which the page of this release ends in CHANGELOG.md."""
REPOSITORY = Path(__file__).parents[2]


class NoHistory(Exception):
    """This copy of the source has no history that reaches back to the commit; the message says why, and what helps."""


def unpack(folder: Path) -> Path:
    """Write the source of the older barnabas, and return the folder that holds its package.

    Raises:
        NoHistory: this is no clone, or a shallow one.
        RuntimeError: it is a whole clone, and git gives no source.
    """
    done = _git("archive", COMMIT, "src")
    if done.returncode:
        asked = _git("rev-parse", "--is-shallow-repository")
        if asked.returncode:
            raise NoHistory(f"barnabas {RELEASE} is commit {COMMIT[:8]}, and this is no clone with a history")
        if asked.stdout.strip() == b"true":
            remedy = "git fetch --unshallow"
            raise NoHistory(f"barnabas {RELEASE} is commit {COMMIT[:8]}, and this clone is shallow: {remedy}")
        raise RuntimeError(f"git gives no source of {COMMIT}: {done.stderr.decode(errors='replace').strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def _git(*words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", "-C", str(REPOSITORY), *words], capture_output=True, check=False)
    except FileNotFoundError:
        raise NoHistory(f"barnabas {RELEASE} is commit {COMMIT[:8]}, and this machine has no git") from None


class OlderBarnabasNode(BarnabasNode):
    """A node of the older barnabas.

    Attributes:
        source: the folder of its package. A test sets it before it starts a node.
    """

    kind = "older-barnabas"
    source: ClassVar[Path]

    def format_command(self, cluster_id: str) -> list[str]:
        return [*self._with_source(), *super().format_command(cluster_id)]

    def start_command(self) -> list[str]:
        return [*self._with_source(), *super().start_command()]

    def _with_source(self) -> list[str]:
        # `env` becomes the command that follows, so that signals reach the node.
        return ["env", f"PYTHONPATH={self.source}"]
