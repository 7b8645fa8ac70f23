"""`make chaos`: kill the shop's pipeline at random while order lines come in, then compare it with the lines.

Broker, Spark's driver and executors die by SIGKILL. Each line that is printed is a fault; the table at the end compares
everything that the pipeline made with what the order lines come to. The exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from datetime import datetime
from pathlib import Path

from barnabas.demo.feeder import Feed, count_lines, read_lines
from tests.chaos.from_lines import FromLines
from tests.chaos.from_shop import HEADER, comparisons
from tests.chaos.plan import Kind, plan, random_counts
from tests.chaos.run import Chaos, Settings
from tests.long_runs import LongRun, add_flag

_LINES_A_SECOND = 50
_SECONDS_A_FAULT = 30


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which stops broker and Spark on the way
    given = _arguments()
    feed = Feed(given.input, rows=given.rows, seconds=given.minutes * 60, seed=given.seed)
    if given.input is None and given.rows is None:
        feed = Feed(rows=int(given.minutes * 60 * _LINES_A_SECOND), seconds=given.minutes * 60, seed=given.seed)
    counts = {Kind.BROKER: given.broker, Kind.DRIVER: given.driver, Kind.EXECUTOR: given.executor}
    if set(counts.values()) == {None}:
        counts = random_counts(given.seed, round(given.minutes * 60 / _SECONDS_A_FAULT))
    faults = plan(given.seed, count_lines(feed), {kind: count or 0 for kind, count in counts.items()})
    wanted = FromLines(read_lines(feed))
    folder = given.folder or Path("chaos-output") / datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    modes = {"true": (True,), "false": (False,), "both": (True, False)}[given.fail_on_data_loss]
    nodes = f"{given.nodes} {'broker' if given.nodes == 1 else 'nodes'}"
    run = LongRun("chaos", f"chaos, {nodes}", is_kept=given.record)
    differs = False
    for mode in modes:
        print(
            f"seed {given.seed}: {count_lines(feed):,} order lines over {feed.seconds:.0f} s, {len(faults)} faults, "
            f"failOnDataLoss {str(mode).lower()}, {nodes}",
            flush=True,
        )
        settings = Settings(
            feed,
            faults,
            mode,
            folder / f"failOnDataLoss-{str(mode).lower()}",
            lambda line: print(line, flush=True),
            given.nodes,
        )
        differs |= _run(settings, wanted)
    if not differs:
        run.ended(
            f"{count_lines(feed):,} order lines, {len(faults)} kills, {len(modes)} runs: all tables and topics equal"
        )
    print(f"everything is in {folder}")
    return int(differs)


def _run(settings: Settings, wanted: FromLines) -> bool:
    """Run once and print the table; return whether anything differs."""
    began_s = time.monotonic()
    chaos = Chaos(settings)
    with contextlib.contextmanager(chaos)() as shop:
        ran_s = time.monotonic() - began_s
        found = comparisons(shop, wanted)
    for sentence, count in chaos.restarts.most_common():
        print(f"the watcher started a query again, {count} times: {sentence}")
    for line in chaos.losses:
        print(f"skipped: {line}")
    print(HEADER)
    for each in found:
        print(each)
    for each in found:
        print(*each.examples(), sep="\n", end="\n" if each.examples() else "")
    equal = all(each.is_equal for each in found) and not chaos.losses
    print(f"{'all equal' if equal else 'NOT EQUAL'} after {ran_s:.0f} s", flush=True)
    return not equal


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="spread the lines over so long (default 10)")
    parser.add_argument("--seed", type=int, default=1, help="chooses lines and faults (default 1)")
    parser.add_argument(
        "--nodes", type=int, default=1, help="brokers; several are one cluster, of which one node dies at a time"
    )
    parser.add_argument("--rows", type=int, help=f"order lines (default {_LINES_A_SECOND} a second)")
    parser.add_argument("--input", type=Path, help="order lines to use instead, a file as of `barnabas demo --input`")
    for kind in Kind:
        parser.add_argument(
            f"--{kind.value}", type=int, metavar="N", help=f"kill the {kind.value} so often; without any: at random"
        )
    parser.add_argument(
        "--fail-on-data-loss", choices=("true", "false", "both"), default="both", help="both: one run after the other"
    )
    parser.add_argument("--folder", type=Path, help="where everything is kept (default: a new one in chaos-output)")
    add_flag(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
