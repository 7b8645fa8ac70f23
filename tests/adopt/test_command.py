"""The group of commands."""

from __future__ import annotations

from barnabas.adopt.command import adopt


def test_its_commands() -> None:
    assert "check" in adopt.commands
