"""`make simulate`: play seeds and say what came of them. `--seed N` replays one and prints what it violated in full.

Without `--nodes` a seed is a run of one broker, whose disk misbehaves most; `--nodes 3` plays a cluster. With `--sink` it is a run of Spark
queries that write through the sink, to three nodes if `--nodes` does not say otherwise.
"""

from __future__ import annotations

import argparse
import gc
import logging
import multiprocessing
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from barnabas.simulation.timeline import LogLines
from tests.long_runs import LongRun, add_flag
from tests.scribbled_frames import scribble_over_handled_frames
from tests.simulation import cluster, older_node, one_broker
from tests.simulation.deliberate_bugs import BUGS
from tests.simulation.deliberate_bugs_of_clusters import BUGS as BUGS_OF_CLUSTERS
from tests.simulation.deliberate_bugs_of_upgrades import BUGS as BUGS_OF_UPGRADES
from tests.simulation.sink import sink_cluster
from tests.simulation.sink.deliberate_bugs_of_the_sink import BUGS as BUGS_OF_THE_SINK

REPORT_EVERY_SEEDS = 100
_RECORDED = 5  # kinds of counts in a line of docs/long-runs.md


class Outcome(NamedTuple):
    """What came of a seed, in short."""

    seed: int
    passed: bool
    summary: str
    counts: Counter[str]
    cpu_seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="make simulate")
    parser.add_argument(
        "--nodes", type=int, help="play a cluster of so many nodes, in place of one broker and its disk"
    )
    parser.add_argument(
        "--sink", action="store_true", help="play queries that write through the Spark sink to a cluster"
    )
    parser.add_argument("--older", action="store_true", help="with --nodes: let one of them run barnabas 0.1.0")
    parser.add_argument("--seed", type=int, help="replay this one")
    parser.add_argument("--seeds", type=int, default=200, help="how many new ones (default 200)")
    parser.add_argument("--first", type=int, help="the first of the new ones; by default it comes from the clock")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes play new ones (default 1)")
    parser.add_argument("--details", action="store_true", help="with --seed: show every request in the timeline")
    parser.add_argument(
        "--bug",
        choices=sorted({*BUGS, *BUGS_OF_CLUSTERS, *BUGS_OF_THE_SINK, *BUGS_OF_UPGRADES}),
        help="switch on a deliberate bug",
    )
    add_flag(parser)
    args = parser.parse_args()
    what = "the Spark sink" if args.sink else "one broker" if args.nodes is None else f"{args.nodes} nodes"
    run = LongRun("simulate", f"simulation of {what}", is_kept=args.record and args.bug is None)
    scribble_over_handled_frames()
    play: Any = one_broker.run if args.nodes is None else partial(cluster.run, nodes=args.nodes)
    more = "" if args.nodes is None else f" NODES={args.nodes}"
    with TemporaryDirectory() as folder:
        if args.older:
            play, more = partial(_with_an_older_node, args.nodes or 3, Path(folder)), f"{more} ARGS=--older"
            older_node.load(Path(folder))
        if args.sink:
            play, more = partial(sink_cluster.run, nodes=args.nodes or 3), f"{more} SINK=1"
        if args.seed is not None:
            return _replay(play, args.seed, args.bug, details=args.details)
        first = args.first if args.first is not None else int(time.time()) % 1_000_000_000
        return _play_all(partial(_outcome, play, args.bug), range(first, first + args.seeds), args.jobs, more, run)


def _with_an_older_node(nodes: int, folder: Path, seed: int, bug: str | None) -> Any:
    """Play a seed. What the older barnabas is cannot be sent to another process, so each process loads it."""
    return cluster.run(seed, bug, nodes=nodes, older=older_node.load(folder))


def _replay(play: Any, seed: int, bug: str | None, *, details: bool) -> int:
    logger = logging.getLogger("barnabas")
    logger.propagate = False
    logger.addHandler(LogLines(logging.WARNING))
    result = play(seed, bug)
    if details or not result.passed:
        print(result.timeline.page(details=details, last=1_000_000 if details else 200))
    print(result.summary(), result.plan, f"trace {result.timeline.digest()}", sep="\n")
    for name, found in result.violations.items():
        print(f"{name}:", *found[:20], sep="\n  ")
    return not result.passed


def _outcome(play: Any, bug: str | None, seed: int) -> Outcome:
    began = time.process_time()
    try:
        result = play(seed, bug)
    except Exception as error:
        traceback.print_exc()
        return Outcome(seed, False, f"seed {seed}: BROKE OFF: {error!r}", Counter(), time.process_time() - began)
    return Outcome(seed, result.passed, result.summary(), result.counts(), time.process_time() - began)


def _play_all(outcome_of: Any, seeds: range, jobs: int, more: str, run: LongRun) -> int:
    """Play each seed, say which fail, and how long it took."""
    began = time.monotonic()
    done = failed = 0
    cpu_seconds = 0.0
    counts: Counter[str] = Counter()
    with _players(jobs) as play:
        for outcome in play(outcome_of, seeds):
            done += 1
            counts += outcome.counts
            cpu_seconds += outcome.cpu_seconds
            if not outcome.passed:
                failed += 1
                print(outcome.summary, f"  replay: make simulate SEED={outcome.seed}{more}", sep="\n", flush=True)
            if done % REPORT_EVERY_SEEDS == 0 or done == len(seeds):
                per_minute = done / (time.monotonic() - began) * 60
                print(
                    f"{done} seeds from {seeds.start}, {per_minute:,.0f} a minute, {cpu_seconds / done:.2f} s of CPU each,"
                    f" {', '.join(f'{count:,} {what}' for what, count in sorted(counts.items()))}: {failed} failed",
                    flush=True,
                )
    if not failed:
        run.ended(
            f"{done} seeds from {seeds.start}, {', '.join(f'{count:,} {what}' for what, count in counts.most_common(_RECORDED))}: 0 failed"
        )
    return failed > 0


def _begin() -> None:
    """Make a process ready to play: nothing is logged, and what is loaded is no garbage."""
    logging.disable(logging.CRITICAL)
    gc.freeze()


@contextmanager
def _players(jobs: int) -> Iterator[Any]:
    """Yield a function like `map`, which uses so many processes; its results come in any order."""
    if jobs == 1:
        _begin()
        yield map
        return
    with multiprocessing.Pool(jobs, _begin) as pool:
        yield partial(pool.imap_unordered, chunksize=4)


if __name__ == "__main__":
    sys.exit(main())
