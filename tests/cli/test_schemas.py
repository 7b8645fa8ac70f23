"""`barnabas schemas`: its commands."""

from __future__ import annotations

from barnabas.cli.schemas import schemas


def test_its_commands() -> None:
    assert list(schemas.commands) == ["list", "get", "put", "check", "delete", "pull"]
