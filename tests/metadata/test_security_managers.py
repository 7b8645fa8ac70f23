"""The table of the managers of users, ACLs and tokens, which no start imports."""

from __future__ import annotations

import subprocess
import sys

from barnabas.metadata.managers import manager_of
from barnabas.metadata.security_managers import SECURITY_MANAGERS


def test_the_controller_answers_by_each_of_them() -> None:
    assert {key: manager_of(key) for key in SECURITY_MANAGERS} == dict(SECURITY_MANAGERS)


def test_none_is_imported_before_the_first_request() -> None:
    script = "import sys, barnabas.metadata.quorum_controller; print(*sys.modules)"
    imported = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    managers = ("security_managers", "acl_control", "scram_control", "delegation_token_control")
    assert not {f"barnabas.metadata.{name}" for name in managers} & set(imported)
