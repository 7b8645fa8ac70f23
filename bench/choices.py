"""What a choice costs: measures the tables of docs/choices.md piece by piece, and writes them.

    python -m bench.choices TABLE … [--side barnabas|apache-kafka] [--nodes 3] [--runs 1] [--scale 1.0] [--fresh]
    python -m bench.choices log --phase fill|rest|measure --folder DIR --gigabytes 30 [--side …]
    python -m bench.choices write [--page docs/choices.md]

TABLE is acks, losses (of acknowledged records, by a kill), transactions, partition, scaling or small. Runs are added to those in the file
of pieces, bench/choices.json; `--fresh` drops the earlier ones of the same rows. `--scale` makes the loads smaller. `log` keeps its data
between its phases, and removes them after the last.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import choice_rows, long_log
from bench.acks_rows import ACKS, acks_losses, acks_rates
from bench.choice_tables import write_tables
from bench.clusters import BenchCluster, RunningCluster
from bench.pieces import Pieces
from bench.report import OURS, THEIRS
from bench.scenarios import Figures

TABLES = ("acks", "losses", "transactions", "partition", "scaling", "small", "log")
Work = Callable[[RunningCluster], Figures]


def rows(table: str, nodes: int, scale: float) -> Iterator[tuple[str, Work]]:
    """Yield the rows of a table: a name, and how to measure it."""
    amount = max(1, int((300 if nodes == 1 else 150) * scale))
    if table == "acks":
        for acks in ACKS:
            yield f"acks={acks}", lambda it, a=acks: _acks(it, a, scale)  # type: ignore[misc]
    elif table == "losses":
        for acks in ACKS:
            yield f"acks={acks}", lambda it, a=acks: acks_losses(it, a)  # type: ignore[misc]
    elif table == "transactions":
        for kind in choice_rows.COMMIT_EVERY:
            yield f"{nodes}, {kind}", lambda it, k=kind: choice_rows.transactions(it, k, 4 * scale)  # type: ignore[misc]
    elif table == "partition":
        for size in (100, 1000):
            megabytes = max(1, amount * (1 if size == 1000 else 2) // (1 if size == 1000 else 5))
            yield f"{nodes}, {size}", lambda it, s=size, m=megabytes: choice_rows.one_partition(it, s, m)  # type: ignore[misc]
    elif table == "scaling":
        for count in choice_rows.PARTITION_COUNTS:
            yield f"{nodes}, {count}", lambda it, n=count: choice_rows.scaling(it, n, amount)  # type: ignore[misc]
    elif table == "small":
        records = int((3_000_000 if nodes == 1 else 1_500_000) * scale)
        for name, producers, acks in choice_rows.SMALL_ROWS:
            yield f"{nodes}, {name}", lambda it, p=producers, a=acks: choice_rows.small_records(it, p, a, records)  # type: ignore[misc]


def _acks(running: RunningCluster, acks: str, scale: float) -> Figures:
    """Measure the row of `make bench`, in the units of the page."""
    found = acks_rates(running, acks, max(1, int(200 * scale)), 4 * scale)
    return {"MB/s": found["MB/s"], "p50 ms": found["p50 µs"] / 1000, "p99 ms": found["p99 µs"] / 1000}


def measure(
    pieces: Pieces, tables: list[str], side: str, nodes: int, runs: int, scale: float, *, fresh: bool = False
) -> None:
    """Measure all rows of tables on a cluster of a side, as often as is asked, and keep each run as soon as it is there."""
    with (
        tempfile.TemporaryDirectory(prefix="choices-") as folder,
        BenchCluster(side, Path(folder), nodes) as cluster,
    ):
        running = RunningCluster(side, cluster)
        # The more nodes, the longer until each JVM has compiled its code.
        choice_rows.warm_up(running, max(1, int((100 if nodes == 1 else 500) * scale)))
        chosen = [(table, name, work) for table in tables for name, work in rows(table, nodes, scale)]
        for run in range(runs):
            for table, name, work in chosen:
                figures = work(running)
                if fresh and not run:
                    pieces.forget(table, name, side)
                pieces.add(table, name, side, figures)
                print(f"{table} {side} {name}: {figures}", flush=True)


def measure_log(pieces: Pieces, side: str, folder: Path, gigabytes: float, phase: str, rest_seconds: float) -> None:
    """Fill a log, let its node rest until its recovery point is written, or measure it."""
    if phase == "rest":
        long_log.rest(side, folder, rest_seconds)
        return
    if phase == "fill":
        figures = long_log.fill(side, folder, gigabytes)
        long_log.remember(folder, figures)
        print(f"log {side} {gigabytes:g}: {figures}")
        return
    figures = long_log.remembered(folder) | long_log.measure(side, folder, min(1.0, gigabytes / 3))
    pieces.forget("log", f"{gigabytes:g}", side)
    pieces.add("log", f"{gigabytes:g}", side, figures)
    print(f"log {side} {gigabytes:g}: {figures}")
    shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.choices", description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="+", choices=(*TABLES, "write"), metavar="TABLE")
    parser.add_argument("--side", choices=(OURS, THEIRS), default=OURS)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--pieces", type=Path, default=Path("bench/choices.json"))
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--page", type=Path, default=Path("docs/choices.md"))
    parser.add_argument("--phase", choices=("fill", "rest", "measure"), default="fill")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--gigabytes", type=float, default=30.0)
    parser.add_argument("--rest", type=float, default=long_log.REST_SECONDS, metavar="SECONDS")
    given = parser.parse_args()
    # The nodes end with this program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    pieces = Pieces(given.pieces)
    if given.tables == ["write"]:
        write_tables(given.page, pieces)
    elif given.tables == ["log"]:
        if given.folder is None:
            parser.error("log needs a --folder on the disk that is to be measured")
        measure_log(pieces, given.side, given.folder, given.gigabytes, given.phase, given.rest)
    else:
        measure(pieces, given.tables, given.side, given.nodes, given.runs, given.scale, fresh=given.fresh)


if __name__ == "__main__":
    main()
