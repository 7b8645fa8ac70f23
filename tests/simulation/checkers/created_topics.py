"""A topic whose creation was acknowledged exists at the end: the controller answers after its log is flushed, whatever the brokers do."""

from __future__ import annotations

from tests.simulation.history import History


def check(history: History) -> list[str]:
    if history.final_topics is None:
        return []
    return [f"topic {name} is lost" for name in history.created_topics if name not in history.final_topics]
