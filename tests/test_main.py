"""The `barnabas` command: what it lists, what it imports, what it starts."""

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from barnabas.cli.commands import COMMANDS
from barnabas.main import command_group

HEAVY = ("rich", "confluent_kafka", "barnabas.client", "barnabas.protocol", "barnabas.node", "asyncio")


@pytest.mark.parametrize("name", [*COMMANDS, "demo"])
def test_a_listed_line_is_a_short_sentence_of_a_command_that_is_there(name: str) -> None:
    group = command_group()
    listed = group.get_command(click.Context(group), name)
    _, called, _ = group.resolve_command(click.Context(group), [name])
    assert listed is not None
    assert listed.help is not None
    assert listed.help[0].isupper()
    assert len(listed.help) <= 42
    assert called is not None
    assert called.help


def test_help_lists_every_command() -> None:
    shown = CliRunner().invoke(command_group(), ["--help"]).output
    listed = [line.split()[0] for line in shown.partition("Commands:\n")[2].splitlines()]
    assert listed == ["start", "storage", *COMMANDS, "demo", "help"]


@pytest.mark.slow
def test_help_imports_no_command() -> None:
    program = (
        "import sys; sys.argv[1:] = ['--help']; import atexit;"
        f"atexit.register(lambda: print('imported', *(name for name in {HEAVY} if name in sys.modules)));"
        "from barnabas.main import main; main()"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown.startswith("Usage: barnabas ")
    assert shown.splitlines()[-1] == "imported"


@pytest.mark.parametrize(
    ("words", "incomplete", "completed"),
    [
        ([], "top", ["topic", "top"]),
        (["topic"], "cr", ["create"]),
        (["group", "list"], "--sta", ["--state", "--states"]),
    ],
)
def test_completion_reaches_every_level(words: list[str], incomplete: str, completed: list[str]) -> None:
    complete = ShellComplete(command_group(), {}, "barnabas", "_BARNABAS_COMPLETE")
    assert [item.value for item in complete.get_completions(words, incomplete)] == completed


def test_an_unknown_command_is_a_usage_error() -> None:
    result = CliRunner().invoke(command_group(), ["nope"])
    assert result.exit_code == 2
    assert "error: no such command: nope" in result.stderr


INTERRUPTED = """
import signal
import sys


class Interrupting:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            signal.raise_signal(signal.SIGINT)


signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
from barnabas.main import main

main(sys.argv[2:])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("imported", "arguments"),
    [
        ("barnabas.process.commands", ["start", "--data-dir", "data"]),
        ("barnabas.node.node", ["start", "--data-dir", "data"]),
        ("click", ["topic", "list"]),
    ],
)
def test_ctrl_c_during_an_import_ends_in_silence(imported: str, arguments: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, imported, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    assert list(tmp_path.iterdir()) == []
