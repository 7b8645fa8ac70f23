"""In one epoch one node leads: a partition by its leader epoch, the quorum by its own."""

from __future__ import annotations

from tests.simulation.history import History


def check(history: History) -> list[str]:
    found = [
        f"{partition.topic}-{partition.index} has the leaders {sorted(leaders)} in epoch {epoch}"
        for (partition, epoch), leaders in history.leaders_seen.items()
        if len(leaders - {-1}) > 1
    ]
    return found + [
        f"the quorum has the leaders {sorted(leaders)} in epoch {epoch}"
        for epoch, leaders in history.controllers_seen.items()
        if len(leaders) > 1
    ]
