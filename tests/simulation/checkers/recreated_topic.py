"""A topic that was deleted and created again has what was written to it since, and nothing of the topics of that name before it."""

from __future__ import annotations

from tests.simulation.history import History


def check(history: History) -> list[str]:
    log = history.final_recreated
    if log is None:
        return []
    found = [
        f"the deleted topic {former.hex()} came back: {value!r} is at offset {offset}"
        for offset, value in log
        for former in history.deleted_ids
        if value.startswith(former.hex().encode())
    ]
    there = dict(log)
    return found + [
        f"acknowledged {value!r} is not at offset {offset}: {there.get(offset)!r} is"
        for offset, value in history.recreated.items()
        if there.get(offset) != value
    ]
