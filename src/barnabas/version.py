"""The version, and the commit it was built from.

`VERSION` is written here and nowhere else. The package's metadata are made from it; a broker says it at its start without asking the
installed package, which would take a tenth of a start. `commit` is for `barnabas --version`: it may run git.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["VERSION", "commit"]

VERSION = "0.1.0"
__version__ = VERSION  # as `barnabas.__version__`

_HERE = Path(__file__)


def commit() -> str | None:
    """Return the first digits of the commit: from the wheel, where the build wrote it, or from git in a checkout.

    Returns:
        `-dirty` follows the digits of a checkout with changes. None if neither knows, as in a copy of the files.
    """
    built = _HERE.with_name("commit.txt")
    if built.exists():
        return built.read_text().strip()
    root = _HERE.parents[2]
    return _ask_git(root) if (root / ".git").exists() else None


def _ask_git(root: Path) -> str | None:
    import subprocess

    describe = ["git", "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    try:
        done = subprocess.run(describe, cwd=root, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
