"""A node goes on without a directory that fails, leads no replica there, and stops without its metadata log."""

from __future__ import annotations

from tests.simulation.history import History


def check(history: History) -> list[str]:
    return history.failed_directories
