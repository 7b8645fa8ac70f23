"""The chart of a week: six small pictures with the batches as the time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

from tests.week.measured import Sample

_PICTURES = {
    "time of a batch, ms": ("median_ms", "cpu_ms"),
    "upkeep between two samples, ms": ("upkeep_ms",),
    "data files": ("live_files", "data_files"),
    "files of the table's log": ("log_files",),
    "driver's memory, MB": ("python_mb", "java_mb"),
    "files of the checkpoint": ("checkpoint_files",),
}


def draw(path: Path, samples: Sequence[Sample]) -> None:
    """Write the chart as SVG."""
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"
    matplotlib.rcParams["svg.hashsalt"] = "week"
    from matplotlib import pyplot

    figure, places = pyplot.subplots(3, 2, figsize=(10, 8), constrained_layout=True)
    hours = [each.batches / 3600 for each in samples]
    for place, (title, names) in zip(places.flat, _PICTURES.items(), strict=True):
        for name in names:
            place.plot(hours, [getattr(each, name) for each in samples], label=name.replace("_", " "), linewidth=1.2)
        place.set_title(title, fontsize=10)
        place.set_ylim(bottom=0)
        place.legend(fontsize=8, frameon=False)
    for place in places[-1]:
        place.set_xlabel("hours of the table (3,600 batches each)", fontsize=9)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
