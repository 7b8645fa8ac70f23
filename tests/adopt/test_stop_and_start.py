"""Commands that the operator gave, and those that the operator types."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.adopt.change import Act
from barnabas.adopt.stop_and_start import Operator, Way


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return []


def run(said: list[str], command: str | None) -> str | None:
    operator = Operator({Act.START: Way("start node 2", "barnabas start", command)}, said.append)
    operator.do(Act.START)
    if operator.process is not None:
        operator.process.wait()
    return operator.failure()


def test_a_person_is_told_what_to_type(said: list[str]) -> None:
    assert run(said, None) is None
    assert said == ["start node 2 now: barnabas start"]


def test_a_command_that_succeeds(said: list[str], tmp_path: Path) -> None:
    assert run(said, f"echo $$ > {tmp_path}/group; ps -o sid= -p $$ > {tmp_path}/session || :") is None
    assert said == [f"start node 2: echo $$ > {tmp_path}/group; ps -o sid= -p $$ > {tmp_path}/session || :"]
    assert int((tmp_path / "group").read_text()) != os.getsid(0)


def test_a_command_that_fails(said: list[str]) -> None:
    failure = run(said, "echo starting; echo 'no such unit' >&2; exit 5")
    assert failure is not None
    assert "ended with code 5; its last line: no such unit (" in failure


def test_a_command_that_fails_without_a_word(said: list[str]) -> None:
    failure = run(said, "exit 3")
    assert failure is not None
    assert failure.startswith("`exit 3` ended with code 3 (")


def test_a_node_in_the_foreground_runs_on(said: list[str]) -> None:
    operator = Operator({Act.START: Way("start", "", "read line")}, said.append)
    operator.do(Act.START)
    process = operator.process
    assert process is not None
    assert os.getsid(process.pid) == process.pid, "a signal to the terminal does not reach it"
    process.kill()
    process.wait()
