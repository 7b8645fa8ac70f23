"""`make simulate`: play seeds and say what came of them. `--seed N` replays one and prints what it violated in full.

Without `--nodes` a seed is a run of one broker, whose disk misbehaves most; `--nodes 3` plays a cluster.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from functools import partial

from tests.simulation import cluster, one_broker
from tests.simulation.deliberate_bugs import BUGS
from tests.simulation.deliberate_bugs_of_clusters import BUGS as BUGS_OF_CLUSTERS
from tests.simulation.deliberate_bugs_of_clusters import NOT_CAUGHT_YET
from tests.simulation.timeline import LogLines


def main() -> int:
    parser = argparse.ArgumentParser(prog="make simulate")
    parser.add_argument(
        "--nodes", type=int, help="play a cluster of so many nodes, in place of one broker and its disk"
    )
    parser.add_argument("--seed", type=int, help="replay this one")
    parser.add_argument("--seeds", type=int, default=200, help="how many new ones (default 200)")
    parser.add_argument("--first", type=int, help="the first of the new ones; by default it comes from the clock")
    parser.add_argument("--details", action="store_true", help="with --seed: show every request in the timeline")
    parser.add_argument(
        "--bug", choices=sorted({*BUGS, *BUGS_OF_CLUSTERS, *NOT_CAUGHT_YET}), help="switch on a deliberate bug"
    )
    args = parser.parse_args()
    play = one_broker.run if args.nodes is None else partial(cluster.run, nodes=args.nodes)
    more = "" if args.nodes is None else f" NODES={args.nodes}"
    logger = logging.getLogger("barnabas")
    logger.propagate = False
    if args.seed is not None:
        logger.addHandler(LogLines(logging.WARNING))
        result = play(args.seed, args.bug)
        if args.details or not result.passed:
            print(result.timeline.page(details=args.details, last=1_000_000 if args.details else 200))
        print(result.summary(), result.plan, f"trace {result.timeline.digest()}", sep="\n")
        for name, found in result.violations.items():
            print(f"{name}:", *found[:20], sep="\n  ")
        return not result.passed
    logging.disable(logging.CRITICAL)
    first = args.first if args.first is not None else int(time.time()) % 1_000_000_000
    failed = 0
    acknowledged = crashes = 0
    began = time.monotonic()
    for seed in range(first, first + args.seeds):
        result = play(seed, args.bug)
        acknowledged += sum(batch.acknowledged_at is not None for batch in result.history.batches)
        crashes += len(result.history.crashes)
        if not result.passed:
            failed += 1
            print(result.summary(), f"  replay: make simulate SEED={seed}{more}", sep="\n", flush=True)
    per_minute = args.seeds / (time.monotonic() - began) * 60
    print(
        f"{args.seeds} seeds from {first}, {per_minute:,.0f} a minute, {crashes} crashes,"
        f" {acknowledged} acknowledged batches: {failed} failed"
    )
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
