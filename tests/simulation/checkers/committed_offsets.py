"""A group's committed offset is the last one that was acknowledged, or one sent after it whose answer never came."""

from __future__ import annotations

from tests.simulation.history import Commit, History, Partition


def check(history: History) -> list[str]:
    found = []
    by_key: dict[tuple[str, Partition], list[Commit]] = {}
    for commit in history.commits:
        by_key.setdefault((commit.group, commit.partition), []).append(commit)
    for (group, partition), commits in by_key.items():
        promised = [place for place, commit in enumerate(commits) if commit.acknowledged and commit.survives]
        if not promised:
            continue
        allowed = {commit.offset for commit in commits[promised[-1] :]}
        actual = history.final_commits.get((group, partition))
        if actual not in allowed:
            where = f"{partition.topic}-{partition.index}"
            found.append(f"group {group} has {actual} for {where}, but was told {commits[promised[-1]].offset}")
    return found
