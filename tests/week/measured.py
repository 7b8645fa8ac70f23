"""What a long run of one table is measured by, every few hundred batches: time, files, memory, the query's checkpoint."""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Sample:
    """The state after a number of batches; each batch counts as a second of the table's time.

    Attributes:
        batches: since the beginning of the table.
        median_ms, p99_ms: of the batches since the last sample, the upkeep left out.
        cpu_ms: processor time of the driver's Python process a batch, which other programs on the machine do not change.
        upkeep_ms: all upkeep since the last sample.
        live_files: that the table names.
        data_files: in the table's folder, with those that wait for a vacuum.
        log_files: of the table's log, or of its metadata.
        log_kb: their size.
        python_mb: resident memory of the driver's Python process.
        java_mb: that of Spark's Java process, which may have a heap of 1 GB; 0 without Spark.
        checkpoint_files, checkpoint_kb: of the query; 0 without Spark.
    """

    batches: int
    median_ms: float
    p99_ms: float
    cpu_ms: float
    upkeep_ms: float
    live_files: int
    data_files: int
    log_files: int
    log_kb: int
    python_mb: float
    java_mb: float
    checkpoint_files: int
    checkpoint_kb: int


def median_and_p99(times_ms: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(times_ms)
    return round(statistics.median(ordered), 1), round(ordered[(len(ordered) * 99) // 100], 1)


def files_and_kb(folder: Path, suffixes: Sequence[str] = ("",)) -> tuple[int, int]:
    """Return how many files are under a folder, and their size in KB."""
    sizes = [
        each.stat().st_size for each in folder.rglob("*") if each.is_file() and each.name.endswith(tuple(suffixes))
    ]
    return len(sizes), sum(sizes) // 1024


def resident_mb(pid: str = "self") -> float:
    """Return the resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return round(int(line.split()[1]) / 1024, 1)
    raise AssertionError("Linux says how much memory a process has")


def write(path: Path, samples: Iterable[Sample]) -> None:
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, [each.name for each in fields(Sample)], lineterminator="\n")
        table.writeheader()
        table.writerows(asdict(each) for each in samples)
