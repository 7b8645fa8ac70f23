"""A table that a query writes once a second, with its upkeep, faster than seconds pass.

A batch counts as a second of the table's time. The table began some days ago, and after each stretch of batches its files get the time of
their batch, so that upkeep finds the ages that a real week would have. Iceberg's snapshots get it as they are made.

    every 10 minutes   compact
    every hour         vacuum of what is older than an hour

Upkeep runs between two batches and is timed on its own.
"""

from __future__ import annotations

import bisect
import datetime
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pyiceberg.table.snapshots

from barnabas.spark.tables.upkeep import compact, vacuum
from tests.spark.tables.appending import files_named, open_table
from tests.week.measured import Sample, files_and_kb, median_and_p99, resident_mb

COMPACT_EVERY_S = 600
VACUUM_EVERY_S = 3600
AGE = datetime.timedelta(hours=1)
TARGET_BYTES = 128 << 20
_STARTED_DAYS_AGO = 2


_REALTIME_COARSE = 5  # of Linux, CLOCK_REALTIME_COARSE, for which Python has no name


def _file_time_s() -> float:
    """Return the earliest time that a file may get that is written now: Linux may take it from a clock with ticks of milliseconds."""
    return time.clock_gettime(_REALTIME_COARSE) if sys.platform == "linux" else time.time()


@dataclass
class Week:
    """The table's time, its upkeep and its measurements.

    Args:
        kind: "delta" or "iceberg".
        folder: holds the table, and the query's checkpoint.
        every: batches from one sample to the next.
        say: what to do with a sample.
        java_mb: measures the memory of Spark's Java process.
    """

    kind: str
    folder: Path
    every: int
    say: Callable[[Sample], None]
    java_mb: Callable[[], float] = lambda: 0.0
    samples: list[Sample] = field(default_factory=list)
    batches: int = 0
    _times_ms: list[float] = field(default_factory=list)
    _cpu_ms: float = 0.0
    _upkeep_ms: float = 0.0
    _ends_s: list[float] = field(default_factory=list)  # wall clock, by batch, since files were made old
    _first_end: int = 0

    def __post_init__(self) -> None:
        self._began_s = time.time()
        self._zero_s = self._began_s - _STARTED_DAYS_AGO * 86400
        # Snapshots have a time of their own.
        pyiceberg.table.snapshots.time = SimpleNamespace(time=self.now_s)  # type: ignore[assignment,attr-defined]
        self.resume()

    def now_s(self) -> float:
        """Return the table's time."""
        return self._zero_s + self.batches

    def resume(self) -> None:
        """Let the next batch begin now."""
        self._batch_began_s, self._cpu_began_s = time.perf_counter(), time.process_time()

    def after_batch(self) -> None:
        """Note that a batch is written; do the upkeep that is due."""
        if self.batches:  # the first one starts Spark's workers
            self._times_ms.append((time.perf_counter() - self._batch_began_s) * 1000)
            self._cpu_ms += (time.process_time() - self._cpu_began_s) * 1000
        self._ends_s.append(time.time())
        self.batches += 1
        if self.batches % COMPACT_EVERY_S == 0:
            self._make_old()
            began = time.perf_counter()
            self._upkeep()
            self._upkeep_ms += (time.perf_counter() - began) * 1000
        if self.batches % self.every == 0:
            self._sample()
        # The files of the next batch get a later time than those of this one.
        while self._ends_s and _file_time_s() <= self._ends_s[-1]:
            time.sleep(0.001)
        self.resume()

    def _upkeep(self) -> None:
        now = datetime.datetime.fromtimestamp(self.now_s(), datetime.UTC)
        compact(open_table(self.kind, self.folder), TARGET_BYTES, now)
        if self.batches % VACUUM_EVERY_S == 0:
            vacuum(open_table(self.kind, self.folder), AGE, now)

    def _make_old(self) -> None:
        for path in self.folder.rglob("*"):
            if path.suffix != ".db" and path.is_file() and (wall_s := path.stat().st_mtime) >= self._began_s - 1:
                batch = self._first_end + bisect.bisect_left(self._ends_s, wall_s)
                os.utime(path, (self._zero_s + batch,) * 2)
        self._first_end += len(self._ends_s)
        self._ends_s.clear()

    def _sample(self) -> None:
        log = "_delta_log" if self.kind == "delta" else "metadata"
        folders = [each for each in self.folder.rglob(log) if each.is_dir()]
        log_files, log_kb = files_and_kb(folders[0])
        checkpoint_files, checkpoint_kb = files_and_kb(self.folder / "checkpoint")
        parquet = files_and_kb(self.folder, (".parquet",))[0]
        in_log = files_and_kb(folders[0], (".parquet",))[0]
        sample = Sample(
            self.batches,
            *median_and_p99(self._times_ms),
            round(self._cpu_ms / len(self._times_ms), 1),
            round(self._upkeep_ms),
            len(files_named(open_table(self.kind, self.folder))),
            parquet - in_log,
            log_files,
            log_kb,
            resident_mb(),
            self.java_mb(),
            checkpoint_files,
            checkpoint_kb,
        )
        self.samples.append(sample)
        self._times_ms.clear()
        self._cpu_ms = self._upkeep_ms = 0.0
        self.say(sample)
