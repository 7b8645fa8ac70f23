"""The kill matrix: Spark's driver, killed with SIGKILL in every window of the sink's protocol, and what the target has in the end.

    PYTHONPATH=tools python -m tests.spark.sink.kill_matrix [--seeds 1-10] [--on barnabas|kafka] [--cut]

prints a line for each seed, and the seconds of each window. A seed draws how many tasks share a batch in each attempt. With `--cut` there
are three nodes, and the leaders of the sink's topics are cut off meanwhile, one after another. `test_sink_kills` plays a few seeds.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.long_runs import LongRun, add_flag
from tests.spark.session import SHORT_LIVED, Topics, running_broker
from tests.spark.sink.cut_leaders import CutLeaders
from tests.spark.sink.sink_run import committed

ROOT = Path(__file__).parents[3]
ROWS = 20_000
PLACES = ("in a task", "before the decision", "after the decision", "between commits", "after the commits")
"""Where `killing/pyspark_killing.py` kills; never imported here, since it changes the sink of its process."""
ATTEMPTS = 5
"""On a busy machine Spark gives up a Python process that is slow to start; that is no death of ours."""

PATIENCE_S = 1_800
"""For one run of the driver, which takes 20 s on an idle machine."""


class Outcome(NamedTuple):
    """What the target has in the end, for a reader of committed records."""

    rows: int
    missing: int
    twice: int
    foreign: int

    @property
    def is_exactly_once(self) -> bool:
        return self == (ROWS, 0, 0, 0)


def filled(topics: Topics) -> str:
    """Return a topic with `ROWS` rows in three partitions."""
    source = topics.create(partitions=3)
    topics.produce(source, [{"value": str(number), "partition": number % 3} for number in range(ROWS)])
    return source


def drive(topics: Topics, source: str, target: str, folder: Path, sink: str, seed: int) -> bool:
    """Run the driver, and return whether it ended by itself."""
    given = filter(None, [os.environ.get("PYTHONPATH")])
    path = os.pathsep.join([str(ROOT), str(ROOT / "tools"), str(ROOT / "tests" / "spark" / "killing"), *given])
    command = [sys.executable, str(ROOT / "tests" / "spark" / "sink" / "kill_run.py")]
    with (folder / "log").open("ab") as log:
        driver = subprocess.Popen(
            [*command, topics.servers, source, target, str(folder), sink, str(seed)],
            env={**SHORT_LIVED, **os.environ, "PYTHONPATH": path, "KILLING": str(folder)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        return driver.wait(PATIENCE_S) == 0
    except subprocess.TimeoutExpired:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        return False


def play(
    topics: Topics,
    folder: Path,
    seed: int,
    say: bool = False,
    places: Sequence[str] = PLACES,
    cuts: CutLeaders | None = None,
) -> Outcome:
    """Kill the driver once in each window, let the query end, and count.

    Args:
        cuts: whose leaders are cut off until the query has ended.

    Raises:
        AssertionError: the driver did not die where it should, or did not end in the end.
    """
    source, target = filled(topics), topics.create(partitions=2)
    if cuts is not None:
        cuts.cut(target)
    for number, place in enumerate(places):
        began = time.monotonic()
        (folder / place).touch()
        attempts = 0
        while attempts < ATTEMPTS and (folder / place).exists():
            ended = drive(topics, source, target, folder, "killing", seed + 10 * number)
            attempts += 1
        assert not (folder / place).exists(), (folder / "log").read_text()[-4000:]
        assert not ended, f"the driver went on after its death {place}"
        if say:
            print(f"    {place}: {time.monotonic() - began:.1f} s, {attempts} attempts", flush=True)
    began = time.monotonic()
    assert any(drive(topics, source, target, folder, "killing", seed + 50) for _ in range(ATTEMPTS)), (
        folder / "log"
    ).read_text()[-4000:]
    if say:
        print(f"    to the end: {time.monotonic() - began:.1f} s", flush=True)
    if cuts is not None:
        print(f"    cut off: {cuts.heal()}", flush=True)
    found = committed(topics.servers, target)
    wanted = Counter(map(str, range(ROWS)))
    return Outcome(
        sum(found.values()),
        len(wanted.keys() - found.keys()),
        sum(count > 1 for count in found.values()),
        len(found.keys() - wanted.keys()),
    )


def main() -> int:
    """Play the seeds; return how many failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.sink.kill_matrix")
    parser.add_argument("--seeds", default="1-10", metavar="FIRST-LAST")
    parser.add_argument("--on", choices=["barnabas", "kafka"], default="barnabas")
    parser.add_argument("--cut", action="store_true", help="three nodes of barnabas, and leaders that are cut off")
    add_flag(parser)
    options = parser.parse_args()
    if options.cut and options.on != "barnabas":
        parser.error("--cut is for barnabas: the cuts are those of barnabas.Cluster")
    what = "three nodes with leaders cut off" if options.cut else options.on
    run = LongRun("kills", f"kill matrix on {what}", is_kept=options.record)
    first, _, last = options.seeds.partition("-")
    failed = 0
    seeds = range(int(first), int(last or first) + 1)
    for seed in seeds:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "run"
            folder.mkdir()
            data = Path(place) / "broker"
            cuts = CutLeaders(data, seed) if options.cut else None
            with cuts or running_broker(options.on, data) as broker:
                try:
                    outcome = play(Topics(broker.bootstrap_servers), folder, seed, say=True, cuts=cuts)
                    said = f"{outcome.rows} rows, {outcome.missing} missing, {outcome.twice} twice, {outcome.foreign} foreign"
                    verdict = "exactly once" if outcome.is_exactly_once else "FAILED"
                except AssertionError as error:
                    said, verdict = str(error), "FAILED"
        failed += verdict == "FAILED"
        print(f"seed {seed} on {what}: {time.monotonic() - began:.0f} s, {said}: {verdict}", flush=True)
    if not failed:
        counted = f"{len(seeds)} seeds, {len(PLACES)} kills and {ROWS:,} rows each: 0 missing, 0 twice"
        run.ended(counted)
    return failed


if __name__ == "__main__":
    sys.exit(main())
