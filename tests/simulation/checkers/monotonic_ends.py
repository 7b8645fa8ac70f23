"""The end of a partition that a client is told never goes back, whichever broker leads."""

from __future__ import annotations

from itertools import pairwise

from tests.simulation.history import History


def check(history: History) -> list[str]:
    return [
        f"{client} was told that {partition.topic}-{partition.index} ends at {before} and then at {after}"
        for (client, partition), ends in history.ends_seen.items()
        for before, after in pairwise(ends)
        if after < before
    ]
