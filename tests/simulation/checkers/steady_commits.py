"""A coordinator that answers with a committed offset keeps its word: no later coordinator of the group answers with a smaller one.

A smaller offset is allowed if no commit of it was acknowledged: the client has given that commit up, and the broker may still write it,
after a newer one.
"""

from __future__ import annotations

from tests.simulation.history import History


def check(history: History) -> list[str]:
    found = []
    acknowledged = {(each.group, each.partition, each.offset) for each in history.commits if each.acknowledged}
    for (group, partition), offsets in history.commits_read.items():
        highest = -1
        for offset in offsets:
            if offset < highest and (offset < 0 or (group, partition, offset) in acknowledged):
                found.append(f"group {group} had {highest} for {partition.topic}-{partition.index} and then {offset}")
            highest = max(highest, offset)
    return found
