"""When a coordinator has answered with a committed offset, no coordinator of the group answers later with a smaller one.

A smaller offset is allowed if no commit of it was acknowledged: the client has given up that commit, and the broker may still write it
after a newer one. This happens at most once: an offset that was replaced never comes back.
"""

from __future__ import annotations

from itertools import pairwise

from tests.simulation.history import History


def check(history: History) -> list[str]:
    found = []
    acknowledged = {(each.group, each.partition, each.offset) for each in history.commits if each.acknowledged}
    for (group, partition), offsets in history.commits_read.items():
        highest = -1
        replaced: set[int] = set()
        for before, offset in pairwise([-1, *offsets]):
            if offset != before:
                replaced.add(before)
            highest = max(highest, offset)
            is_promised = offset < 0 or (group, partition, offset) in acknowledged
            if (offset in replaced and offset != before) or (offset < highest and is_promised):
                found.append(f"group {group} had {highest} for {partition.topic}-{partition.index} and then {offset}")
    return found
