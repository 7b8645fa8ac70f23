"""Below the high watermark every replica of a partition has the same batches, byte by byte, with the same leader epochs."""

from __future__ import annotations

from tests.simulation.history import History


def check(history: History) -> list[str]:
    found = []
    for partition, replicas in history.final_replicas.items():
        (first, expected), *others = replicas.items()
        for name, batches in others:
            if batches == expected:
                continue
            at = next(
                (a[0] for a, b in zip(expected, batches, strict=False) if a != b),
                f"the end: {len(expected)} and {len(batches)} batches",
            )
            found.append(f"{partition.topic}-{partition.index} on {first} and on {name} differ at {at}")
    return found
