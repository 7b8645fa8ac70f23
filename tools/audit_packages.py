"""Ask whether the packages that barnabas is installed with have known vulnerabilities.

    python tools/audit_packages.py          also `make audit`

The packages are those of the lock file with every extra, without those for development. `pip-audit` asks PyPI about them. The exit code
is 1 if a package has a vulnerability, 2 if nobody could be asked.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LOCKED = ("export", "-q", "--frozen", "--no-dev", "--all-extras", "--no-emit-project", "--format", "requirements-txt")
AUDIT = (
    "tool",
    "run",
    "pip-audit",
    "--disable-pip",
    "--require-hashes",
    "--progress-spinner",
    "off",
    "--format",
    "json",
)

Run = Callable[[Sequence[str]], subprocess.CompletedProcess[str]]


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def audit(uv: str, run: Run = _run) -> tuple[int, list[str]]:
    """Return the exit code and the lines to print."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/requirements.txt"
        exported = run([uv, *LOCKED, "--output-file", file])
        if exported.returncode:
            return 2, [f"uv cannot read the lock file: {_last(exported.stderr)}"]
        asked = run([uv, *AUDIT, "--requirement", file])
    try:
        packages: list[dict[str, Any]] = json.loads(asked.stdout)["dependencies"]
    except (ValueError, KeyError):
        return 2, [f"pip-audit could not ask its service, so nothing is known: {_last(asked.stderr)}"]
    lines = [
        f"{package['name']} {package['version']}: {found['id']}, fixed in {', '.join(found['fix_versions']) or 'no release'}"
        for package in packages
        for found in package.get("vulns", ())
    ]
    return (1, lines) if lines else (0, [f"{len(packages)} packages, no known vulnerability"])


def _last(text: str) -> str:
    """Return the last line of what a program says, which in a traceback is the error."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it says nothing")


def main() -> int:
    """Print the answer."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is None:
        print("uv is not installed: pip install uv")
        return 2
    code, lines = audit(uv)
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main())
