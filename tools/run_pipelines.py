"""Runs the shop's declarative pipeline twice, with new order lines in between, and compares every table with the lines.

What each table must hold is computed from the lines without the pipeline's code, in `tests/chaos/from_lines`. DuckDB and polars add up the
same files as `spark-sql`.

`make pipelines` does this. It starts a broker, copies `pipelines/shop` into a folder, and then types what a user types:
`spark-pipelines run`, again `spark-pipelines run`, and `spark-sql -e "SELECT …"`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from tests.chaos.from_lines import FromLines
from tests.chaos.from_shop import HEADER, Comparison, declarative_comparisons
from tests.pipelines.same_sums import Sums, sums

import barnabas
from barnabas.demo.answers import totals
from barnabas.demo.feeder import FIRST_LINES, Feed, feed_lines, read_lines
from barnabas.demo.shop import create_topics
from barnabas.demo.shop_broker import ShopBroker

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 1500
# What makes a short run short on a small machine; a long one wants Java's second compiler and its parallel collector.
SHORT_RUN = (
    "--conf",
    "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "--conf",
    "spark.ui.enabled=false",
)
QUESTIONS = (
    "SELECT sum(revenue), sum(lines) FROM revenue_by_minute",
    "SELECT count(*), count(DISTINCT partition, offset) FROM checked_orders",
    "SELECT count(*) FROM rejected",
)


class Run(NamedTuple):
    """What one run of the two left in the tables.

    Attributes:
        comparisons: of every table with the lines, after the last run.
        sums: what each of three programs says of the stored tables then.
    """

    answers: list[list[str]]
    seconds: dict[str, float]
    comparisons: Sequence[Comparison] = ()
    sums: Mapping[str, Sums] = {}


class Shop:
    """A copy of the project in a folder, and the commands that a user types in it."""

    def __init__(self, folder: Path, servers: str) -> None:
        bin_folder = Path(sys.executable).parent
        folder = folder.absolute()  # The commands run in it, and find the project by PYTHONPATH.
        self.folder = folder
        self.servers = servers
        self.environment = os.environ | {
            "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(folder),
            "SPARK_CONF_DIR": str(folder / "conf"),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        command = [sys.executable, "-m", "shop", "new", str(folder)]
        project = str(ROOT / "pipelines" / "shop")
        subprocess.run(command, env=self.environment | {"PYTHONPATH": project}, check=True, stdout=subprocess.DEVNULL)

    def run_pipelines(self) -> str:
        """Type `spark-pipelines run`."""
        return self.type("spark-pipelines", "run", *SHORT_RUN, "--conf", f"spark.shop.bootstrap.servers={self.servers}")

    def ask(self, *questions: str) -> list[list[str]]:
        """Type `spark-sql -e`; return one row of answers per question."""
        said = self.type("spark-sql", *SHORT_RUN, "-e", "; ".join(questions))
        return [line.split("\t") for line in said.splitlines() if line and not line.startswith("WARNING")]

    def type(self, *command: str) -> str:
        """Type a command in the folder; return what it prints."""
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout


@contextmanager
def fed_in_two_parts(servers: str, feed: Feed) -> Iterator[threading.Event]:
    """Feed the first lines; when the event is set, the rest. The context ends when all are acknowledged."""
    first, rest = threading.Event(), threading.Event()

    def hold() -> None:
        first.set()
        rest.wait(PATIENCE_S)

    feeder = threading.Thread(
        target=feed_lines, args=(ShopBroker(servers), feed), kwargs={"wait_after_first": hold}, daemon=True
    )
    feeder.start()
    first.wait(PATIENCE_S)
    yield rest
    rest.set()
    feeder.join(PATIENCE_S)


def run_twice(folder: Path, feed: Feed) -> list[Run]:
    """Run the pipeline over the first lines and then over all of them; return what the tables say each time."""
    runs = []
    with barnabas.Broker() as broker:
        servers = broker.bootstrap_servers
        create_topics(ShopBroker(servers))
        shop = Shop(folder, servers)
        with fed_in_two_parts(servers, feed):
            runs.append(_run(shop))
        last = _run(shop)
        wanted = FromLines(read_lines(feed))
        runs.append(last._replace(comparisons=declarative_comparisons(shop, wanted), sums=sums(shop)))
    return runs


def _run(shop: Shop) -> Run:
    began_s = time.monotonic()
    shop.run_pipelines()
    ran_s = time.monotonic()
    answers = shop.ask(*QUESTIONS)
    return Run(answers, {"spark-pipelines run": ran_s - began_s, "spark-sql": time.monotonic() - ran_s})


def _print_comparisons(run: Run) -> bool:
    """Print how every table compares with the lines, and what the three programs say; return whether anything differs."""
    print(HEADER)
    for each in run.comparisons:
        print("\n".join([str(each), *each.examples()]))
    for name in run.sums["spark-sql"]:
        said = {engine: "{} rows, sum {}".format(*found[name]) for engine, found in run.sums.items()}
        same = len({found[name] for found in run.sums.values()}) == 1
        print(f"{name}: " + (f"{said['spark-sql']} by {', '.join(said)}" if same else str(said)))
    return has_differences(run)


def has_differences(run: Run) -> bool:
    """Return whether a table differs from the lines, or the programs differ."""
    return not all(each.is_equal for each in run.comparisons) or len({str(each) for each in run.sums.values()}) > 1


def main() -> None:
    """Run it all and print it; exit 1 if a number differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000, help="order lines to make up")
    parser.add_argument("--input", type=Path, help="order lines to use instead, a file as of `barnabas demo --input`")
    parser.add_argument(
        "--folder", type=Path, default=Path("pipelines-output") / datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    )
    arguments = parser.parse_args()
    feed = Feed(arguments.input, rows=None if arguments.input else arguments.rows)
    lines = list(read_lines(feed))
    print(f"{FIRST_LINES:,} of {len(lines):,} order lines before the first run, the rest before the second", flush=True)
    runs = run_twice(arguments.folder, feed)
    wrong = False
    for run, fed in zip(runs, (lines[:FIRST_LINES], lines), strict=True):
        expected = totals(fed)
        wanted = [
            [f"{expected.revenue_thousandths / 1000:.3f}", str(expected.clean)],
            [str(len(fed)), str(len(fed))],
            [str(expected.rejected)],
        ]
        for command, seconds in run.seconds.items():
            print(f"{command}: {seconds:.0f} s")
        for question, answer, want in zip(QUESTIONS, run.answers, wanted, strict=True):
            print(f"  {question}: {' '.join(answer)}" + ("" if answer == want else f"; the lines say {' '.join(want)}"))
        wrong |= run.answers != wanted
    wrong |= _print_comparisons(runs[-1])
    print(f"the tables are in {arguments.folder}; ask them there with spark-sql (docs/pipelines.md)")
    sys.exit(wrong)


if __name__ == "__main__":
    main()
