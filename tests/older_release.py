"""The source of an older barnabas, from the history of this repository."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

RELEASE, COMMIT = "0.1.0", "9b5d1f9d7468f06e8677339a55085e9180dd041a"
"""The commit with which the page of this release ends in CHANGELOG.md."""
REPOSITORY = Path(__file__).parents[1]


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
