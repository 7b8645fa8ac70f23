"""`make audit`: what is asked, and what it says when there is a vulnerability, or nobody to ask."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest
from audit_packages import audit

FINE = {"name": "pyarrow", "version": "23.0.0", "vulns": []}
BAD = {"name": "joserfc", "version": "1.0.0", "vulns": [{"id": "PYSEC-2026-7", "fix_versions": ["1.1.0", "1.0.1"]}]}
OPEN = {"name": "numpy", "version": "2.0.0", "vulns": [{"id": "PYSEC-2026-8", "fix_versions": []}]}
TRACEBACK = (
    "Traceback (most recent call last):\n  File …\nrequests.exceptions.ConnectionError: no route to pypi.org\n\n"
)


@pytest.mark.parametrize(
    ("said", "code", "lines"),
    [
        ([FINE, FINE], 0, ["2 packages, no known vulnerability"]),
        (
            [FINE, BAD, OPEN],
            1,
            [
                "joserfc 1.0.0: PYSEC-2026-7, fixed in 1.1.0, 1.0.1",
                "numpy 2.0.0: PYSEC-2026-8, fixed in no release",
            ],
        ),
        (
            None,
            2,
            [
                "pip-audit could not ask its service, so nothing is known: "
                "requests.exceptions.ConnectionError: no route to pypi.org"
            ],
        ),
    ],
)
def test_the_answer(said: list[Any] | None, code: int, lines: list[str]) -> None:
    commands: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        output = "" if said is None else json.dumps({"dependencies": said})
        is_audit = "pip-audit" in command
        return subprocess.CompletedProcess(
            command, int(is_audit and code > 0), output if is_audit else "", TRACEBACK if said is None else ""
        )

    assert audit("uv", run) == (code, lines)
    exported, asked = commands
    assert "--no-dev" in exported
    assert "--all-extras" in exported
    assert asked[-1] == exported[-1]


def test_a_lock_file_that_cannot_be_read() -> None:
    def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 2, "", "error: no uv.lock\n")

    assert audit("uv", run) == (2, ["uv cannot read the lock file: error: no uv.lock"])
