"""Every start after a crash ends, soon, with a broker that answers; and nothing escaped to the event loop meanwhile."""

from __future__ import annotations

from tests.simulation.history import History

LONGEST_SECONDS = 30.0


def check(history: History) -> list[str]:
    found = [f"a start after a crash failed: {wrong}" for _, wrong in history.recoveries if wrong]
    found += [f"a start took {took:.1f} virtual seconds" for took, _ in history.recoveries if took > LONGEST_SECONDS]
    return found + [f"an exception nobody caught: {error}" for error in history.errors]
