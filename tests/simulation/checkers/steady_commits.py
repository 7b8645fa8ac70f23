"""What a group's coordinator has named as committed stays so, whoever coordinates the group next.

A commit that was never acknowledged may come late, after a newer one: its client has given it up, and the broker has not.
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
