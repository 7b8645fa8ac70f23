"""The sentences about partitions without a leader."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.words.leaderless import why_leaderless

UNCLEAN = "`barnabas cluster accept-loss` elects another replica, which may lose records"


@pytest.mark.parametrize(
    ("replicas", "offline", "lists", "sentence"),
    [
        ([2], [2], {"isr": [2]}, "in-sync replica 2 is offline; start broker 2"),
        ([2], [2], {"isr": [], "elr": [2], "last_known": [2]}, "eligible leader replica 2 is offline; start broker 2"),
        (
            [1, 2, 3, 4],
            [2, 3, 4],
            {"isr": [], "elr": [2, 3, 4]},
            "eligible leader replicas 2, 3 and 4 are offline, and replica 1 may lack records; start brokers 2, 3 and 4, or "
            + UNCLEAN,
        ),
        (
            [1, 2, 3],
            [2],
            {"isr": [], "last_known": [2]},
            f"last known leader 2 is offline, and replicas 1 and 3 may lack records; start broker 2, or {UNCLEAN}",
        ),
        (
            [1, 2],
            [2],
            {"isr": []},
            f"no replica is known to have all its records, and replica 1 may lack records; {UNCLEAN}",
        ),
        ([1, 2], [1, 2], {"isr": []}, "no replica is known to have all its records; start brokers 1 and 2"),
        (
            [1, 2, 3],
            [3],
            {"isr": [], "last_known": [1]},
            f"replica 3 is offline, and may have more records than the last known leader 1; start broker 3, or wait; {UNCLEAN}",
        ),
        (
            [2],
            [2],
            {"isr": [], "last_known": [2], "serving": [2]},
            "last known leader 2 is on an offline disk; mend the disk of broker 2 and restart it",
        ),
        (
            [2, 3],
            [2, 3],
            {"isr": [], "elr": [2, 3], "serving": [3]},
            "eligible leader replicas 2 and 3 are offline; start broker 2, or mend the disk of broker 3 and restart it",
        ),
        (
            [1, 2, 3],
            [2, 3],
            {"isr": [], "elr": [2, 3], "serving": [1, 2, 3]},
            "eligible leader replicas 2 and 3 are on offline disks, and replica 1 may lack records; mend the disks of brokers 2 and 3"
            f" and restart them, or {UNCLEAN}",
        ),
        ([1, 2], [], {"isr": [], "last_known": [2]}, "its election is not over; ask again in a few seconds"),
        ([1, 2], [2], {"isr": [1, 2]}, "its election is not over; ask again in a few seconds"),
    ],
)
def test_a_partition_without_a_leader_is_explained(
    replicas: list[int], offline: list[int], lists: dict[str, Any], sentence: str
) -> None:
    assert str(why_leaderless(replicas, offline, **lists)) == sentence
