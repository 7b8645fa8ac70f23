"""`make week`: a table that is written once a second for days, as far as some minutes carry it; see `week`.

With Spark it is a query from a topic; with `--without-spark` only the driver's part and one task, which is many times as fast.
Each line is a sample, as `measured` describes it; at the end the table is compared with what was sent.
"""

from __future__ import annotations

import argparse
import math
import shutil
import tempfile
import time
from dataclasses import astuple, fields
from pathlib import Path

import pyarrow as pa

from tests.spark.tables.appending import append, open_table, rows_of
from tests.week import chart, measured
from tests.week.measured import Sample
from tests.week.week import Week

ROWS = 10


def main() -> None:
    parser = argparse.ArgumentParser(prog="make week", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--kind", choices=("delta", "iceberg"), default="delta")
    parser.add_argument("--without-spark", action="store_true")
    parser.add_argument("--every", type=int, default=200, help="batches from one sample to the next")
    parser.add_argument("--output", type=Path, help="a folder for the samples (CSV) and the chart (SVG)")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="barnabas-week-"))
    print(" ".join(each.name for each in fields(Sample)), flush=True)
    week = Week(given.kind, folder, given.every, lambda sample: print(*astuple(sample), flush=True))
    try:
        if given.without_spark:
            write_alone(week, math.inf, time.monotonic() + given.minutes * 60)
        else:
            from tests.week import with_spark

            with_spark.run(week, given.minutes)
        print(f"{week.batches:,} batches, {_checked(week):,} rows, each once", flush=True)
    finally:
        shutil.rmtree(folder)
    if given.output:
        name = f"week-{given.kind}" + ("-without-spark" if given.without_spark else "")
        given.output.mkdir(parents=True, exist_ok=True)
        measured.write(given.output / f"{name}.csv", week.samples)
        chart.draw(given.output / f"{name}.svg", week.samples)


def write_alone(week: Week, batches: float, until_s: float = math.inf) -> None:
    """Write batches without Spark, until there are so many or the clock is there."""
    week.resume()
    while week.batches < batches and time.monotonic() < until_s:
        first = week.batches * ROWS
        offsets = range(first, first + ROWS)
        rows = {
            "partition": pa.array([0] * ROWS, pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
            "value": pa.array([f'{{"order": {each}}}'.encode() for each in offsets]),
        }
        append(open_table(week.kind, week.folder), pa.table(rows), week.batches)
        week.after_batch()


def _checked(week: Week) -> int:
    """Return how many rows the table has; each record of the topic must be there once."""
    offsets = sorted(rows_of(open_table(week.kind, week.folder))["offset"].to_pylist())
    if len(offsets) < week.batches * ROWS or offsets != list(range(len(offsets))):
        raise SystemExit(
            f"the table has {len(offsets)} rows of {week.batches} batches with {ROWS} each, or not each once"
        )
    return len(offsets)


if __name__ == "__main__":
    main()
