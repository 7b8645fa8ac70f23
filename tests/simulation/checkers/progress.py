"""When nothing disturbs the cluster any more, everything goes on soon: each client is served, each replica is in sync."""

from __future__ import annotations

from tests.simulation.history import History


def check(history: History) -> list[str]:
    return list(history.stalls)
