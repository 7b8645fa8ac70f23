"""Questions of commands."""

from __future__ import annotations

import io

import pytest

from barnabas.cli.question import typed_answer


@pytest.mark.parametrize(("typed", "answer"), [("yes\n", "yes"), ("yes \r\nmore\n", "yes "), ("", "")])
def test_an_answer_is_one_line(
    typed: str, answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert typed_answer("Type yes") == answer
    assert capsys.readouterr() == ("", "Type yes: \n")
