"""Where a secret of a command comes from."""

from __future__ import annotations

import io

import pytest

from barnabas import given_secret as module
from barnabas.given_secret import given_secret


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is typed at a terminal, in order; the prompts take its place."""
    lines: list[str] = []

    def ask(prompt: str, stream: object) -> str:
        prompts.append(prompt)
        if not lines:
            raise EOFError
        return lines.pop(0)

    prompts: list[str] = []
    monkeypatch.delenv("GIVEN", raising=False)
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr(module, "getpass", ask)
    return lines


def test_the_environment_is_first(typed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIVEN", "of the environment")
    assert given_secret("GIVEN", "Password") == "of the environment"
    monkeypatch.setenv("GIVEN", "")
    assert given_secret("GIVEN", "Password") == "", "it is given, and empty"


def test_else_a_line_of_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GIVEN", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO(" one \r\ntwo\n"))
    assert [given_secret("GIVEN", "Password") for _ in range(3)] == [" one ", "two", ""]


def test_a_terminal_is_asked(typed: list[str]) -> None:
    typed.append("secret")
    assert given_secret("GIVEN", "Password") == "secret"


def test_a_new_secret_is_asked_for_until_both_are_the_same(
    typed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    typed += ["secret", "secert", "secret", "secret"]
    assert given_secret("GIVEN", "Password", is_new=True) == "secret"
    assert typed == []
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "The two are not the same.\n")


def test_an_end_of_the_input_is_no_secret(typed: list[str]) -> None:
    assert given_secret("GIVEN", "Password", is_new=True) == ""
