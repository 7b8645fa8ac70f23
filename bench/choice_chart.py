"""The picture of docs/choices.md: throughput by partitions and brokers, beside the steps of a chart that is often shown.

That chart shows three brokers on three machines. The document names two steps of it: 4 partitions carry about 3.5 times as much as one,
and 64 about 1.5 times as much as 16. The picture begins these steps at our own figures, because only the slopes can be compared.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

from bench.report import OURS, THEIRS, TITLES

STEPS = ((1, 4, 3.5), (16, 64, 1.5))
"""Partitions before and after, and how many times as much."""

COLOURS = {1: "#4c72b0", 3: "#dd8452", 6: "#55a868"}
LINES = {OURS: "-", THEIRS: "--"}
Curves = dict[tuple[str, int], list[tuple[int, float]]]


def steps(curves: Curves) -> list[tuple[tuple[int, float], tuple[int, float]]]:
    """Return the steps of that chart, each from our own figure for three nodes on, or for one node."""
    ours = dict(curves.get((OURS, 3)) or curves.get((OURS, 1), []))
    return [((few, ours[few]), (many, ours[few] * factor)) for few, many, factor in STEPS if few in ours]


def draw(path: Path, curves: Curves) -> None:
    """Write the picture as SVG."""
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"
    matplotlib.rcParams["svg.hashsalt"] = "choices"
    from matplotlib import pyplot

    figure, place = pyplot.subplots(figsize=(9, 5), constrained_layout=True)
    for (side, nodes), points in curves.items():
        label = f"{TITLES[side]}, {nodes} node{'s' * (nodes > 1)}"
        place.plot(*zip(*points, strict=True), LINES[side], marker="o", markersize=3, color=COLOURS[nodes], label=label)
    for number, (before, after) in enumerate(steps(curves)):
        label = "" if number else "often shown, a machine a broker: 3.5x from 1 to 4, 1.5x from 16 to 64"
        place.plot(*zip(before, after, strict=True), ":", color="#777777", linewidth=2, label=label or "_")
    place.set_xscale("log", base=2)
    counts = sorted({count for points in curves.values() for count, _ in points})
    place.set_xticks(counts, [str(each) for each in counts])
    place.set_ylim(bottom=0)
    place.set_xlabel("partitions", fontsize=9)
    place.set_title("produce, acks=all, records of 1,000 bytes, MB/s: all nodes and their load on 2 cores", fontsize=10)
    place.legend(fontsize=8, frameon=False)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
