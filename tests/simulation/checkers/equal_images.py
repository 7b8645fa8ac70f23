"""Nodes that have read the metadata log to the same offset have the same image."""

from __future__ import annotations

from tests.simulation.history import History


def check(history: History) -> list[str]:
    return [
        f"the images at metadata offset {offset} differ: {' and '.join(', '.join(names) for names in by_digest.values())}"
        for offset, by_digest in sorted(history.images_seen.items())
        if len(by_digest) > 1
    ]
