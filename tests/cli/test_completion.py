"""The completion script of each shell."""

import os
import shutil
import subprocess
from pathlib import Path
from unittest import mock

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from barnabas.cli.completion import completion
from barnabas.cli.profiles import Profiles, profiles_path, write_profiles
from barnabas.main import command_group
from tests.cli.made_up_cluster import HOSTILE, MadeUpAdmin


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    printed = CliRunner().invoke(completion, [shell], prog_name="barnabas completion").output
    assert "_BARNABAS_COMPLETE" in printed
    assert f"{shell}_complete" in printed


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_prompt_may_have_the_profile_in_use(shell: str, tmp_path: Path) -> None:
    if (program := shutil.which("sh" if shell == "zsh" else shell)) is None:
        pytest.skip(f"there is no {shell}")
    script = CliRunner().invoke(completion, [shell], prog_name="barnabas completion").output
    function = script[script.index("function barnabas_profile" if shell == "fish" else "barnabas_profile() {") :]
    write_profiles(profiles_path({"XDG_CONFIG_HOME": str(tmp_path)}), Profiles([], "local"))

    def prompt(**environment: str) -> str:
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **environment}
        return subprocess.run(
            [program, "-c", f"{function}\nbarnabas_profile"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip()

    assert prompt() == ""
    assert prompt(XDG_CONFIG_HOME=str(tmp_path)) == "local"
    assert prompt(XDG_CONFIG_HOME=str(tmp_path), BARNABAS_BOOTSTRAP_SERVERS="a:1") == ""
    assert prompt(BARNABAS_PROFILE="production") == "production"


def completed(*words: str) -> list[str]:
    *before, incomplete = words
    complete = BashComplete(command_group(), {}, "barnabas", "_X")
    return [each.value for each in complete.get_completions(list(before), incomplete)]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("top", ["topic", "top"]),
        ("he", ["help"]),
        ("topic create t -c retention.m", ["retention.ms="]),
        ("topic alter t --delete-config local.retention.b", ["local.retention.bytes"]),
        ("topic configs cleanup", ["cleanup.policy"]),
        ("config describe br", ["broker"]),
        ("config describe broker -k log.retention.h", ["log.retention.hours"]),
        ("config alter group g --set consumer.session", ["consumer.session.timeout.ms="]),
        ("config alter group g --set nothing.like.it", []),
        ("start --data", ["--data-dir"]),
        ("start --log-level w", ["warning"]),
        ("start --set log.retention.h", ["log.retention.hours="]),
        ("start --set a=1 --se", ["--set", "--secure-dev"]),
        ("storage form", ["format"]),
        ("storage format --ignore", ["--ignore-formatted"]),
    ],
)
def test_names_of_commands_and_settings(line: str, found: list[str]) -> None:
    assert completed(*line.split()) == found


def test_names_of_the_cluster_without_those_that_would_drive_the_terminal() -> None:
    with mock.patch("barnabas.cli.session.Admin", return_value=MadeUpAdmin()):
        assert completed("topic", "describe", "or") == ["orders"]
        assert completed("config", "describe", "topic", "pay") == ["payments"]
        assert completed("cluster", "drain", "") == ["1", "2", "3"]
        assert completed("cut", "show", "bef") == completed("cut", "delete", "bef") == ["before-release-2026.11"]
        assert completed("cut", "diff", "old", "bef") == ["before-release-2026.11"]
        assert completed("cut", "create", "o") == [], "it is a new name"
        assert completed("txn", "abort", "bil") == completed("txn", "describe", "bil") == ["billing-7"]
        assert HOSTILE not in completed("group", "describe", "")
        assert "orders-app" in completed("group", "describe", "")
