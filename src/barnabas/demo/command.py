"""`barnabas demo`: the command line, and the order of the steps.

1. Check that Java is installed and the folder is empty.
2. Start a broker in this process, unless the user names one; create the topics.
3. Start Spark and the queries; then the feeder, in a separate process. Wait until the first lines are through.
4. Run the queries until they have read everything that the feeder sends.
5. Print the tables, draw the chart, and print where the files are.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.failure import Failure
from barnabas.demo.shop import TOPICS, create_topics, filled_topics
from barnabas.spark.requirements import install_command

if TYPE_CHECKING:
    from barnabas.demo.display import Progress
    from barnabas.demo.feeder import Feed, FeederProcess
    from barnabas.demo.pipeline import Pipeline

_POLL_S = 0.1
_WARM_S = 30.0
_FEED_S = 16.0
"""Long enough to see the results grow, short enough to wait for."""
INPUT_VARIABLE = "BARNABAS_ONLINE_RETAIL"
_WIDTH_OF_A_FILE = 120


@click.command()
@click.option(
    "--input",
    "input_file",
    envvar=INPUT_VARIABLE,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE.csv[.gz]",
    help=f"Order lines with the columns of the Online Retail data set, oldest first; also {INPUT_VARIABLE}. "
    "Default: a generated small shop.",
)
@click.option("--rows", type=click.IntRange(min=1), help="Feed at most this many order lines.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=_FEED_S,
    show_default=True,
    help="Spread the order lines over this many seconds; 0 feeds them as fast as possible.",
)
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    help="Instead feed orders this many times faster than they happened.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="An empty or new folder for all files. Default: demo-output/ and the time.",
)
@click.option(
    "-b", "--bootstrap-server", help="A running broker to use. Default: the demo starts one, and stops it at the end."
)
def demo(
    input_file: Path | None,
    rows: int | None,
    seconds: float,
    speed: float | None,
    data_dir: Path | None,
    bootstrap_server: str | None,
) -> None:
    """Send a shop's orders through a broker into Spark, and watch the results.

    Takes one to two minutes, half of it for Spark's start. Needs Java 17 or newer, and the packages of the extra
    "spark": pip install ".[spark]" in a clone.
    """
    from barnabas.demo.feeder import Feed, FeedError
    from barnabas.demo.java import JavaMissing, check_java

    try:
        check_java()
        _check_python_packages()
        if bootstrap_server is not None:
            _check_broker(bootstrap_server)
        folder = _fresh_folder(data_dir)
        _run(Feed(input_file, rows, speed or 0.0, seconds), folder, bootstrap_server)
    except (JavaMissing, FeedError) as error:
        raise Failure(str(error)) from error


def _run(feed: Feed, folder: Path, bootstrap_server: str | None) -> None:
    from rich.console import Console

    from barnabas.demo.chart import draw_chart
    from barnabas.demo.display import Clock, Progress, print_answers, print_places
    from barnabas.demo.feeder import FeederProcess
    from barnabas.demo.pipeline import Pipeline, open_session

    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH_OF_A_FILE)
    began_s = time.monotonic()
    with contextlib.ExitStack() as stack:
        servers = stack.enter_context(_broker(bootstrap_server, folder))
        create_topics(servers)
        console.print(f"broker on [bold]{servers}[/], topics {', '.join(plan.name for plan in TOPICS)}")
        started: list[Pipeline] = []
        with Clock(console, lambda: f"starting Spark: {started[0].starting if started else 'Java'}"):
            spark = open_session(folder)
            stack.callback(spark.stop)
            pipeline = Pipeline(spark, servers, folder)
            started.append(pipeline)
            pipeline.start()
            # Only now: otherwise every event would be in the topics before the first query starts, and fit one batch.
            feeder = FeederProcess(servers, feed)
            stack.callback(feeder.stop)
            _until_warm(feeder, pipeline)
        feeder.go_on()
        with Progress(console) as progress:
            _until_done(feeder, pipeline, progress)
        pipeline.stop()
    chart = folder / "chart.png"
    draw_chart(pipeline, chart)
    print_answers(console, pipeline)
    print_places(console, pipeline, folder, chart, str(feed.input or f"a shop generated from seed {feed.seed}"))
    console.print(f"done in {time.monotonic() - began_s:.0f} s")


def _until_warm(feeder: FeederProcess, pipeline: Pipeline) -> None:
    """Wait until the first lines are through the queries: the display would stand still meanwhile."""
    pipeline.starting = "the first order lines"
    deadline_s = time.monotonic() + _WARM_S
    while not pipeline.is_warm() and time.monotonic() < deadline_s:
        if feeder.progress().done:  # there are no more than the first lines
            return
        pipeline.check()
        time.sleep(_POLL_S)


def _until_done(feeder: FeederProcess, pipeline: Pipeline, progress: Progress) -> None:
    """Show progress until every query has read everything that the feeder sends."""
    drain: threading.Thread | None = None
    while drain is None or drain.is_alive():
        fed = feeder.progress()
        pipeline.check()
        progress.show(fed, pipeline)
        if fed.done and drain is None:
            drain = threading.Thread(target=pipeline.drain, daemon=True)
            drain.start()
        time.sleep(_POLL_S)
    pipeline.check()


@contextlib.contextmanager
def _broker(bootstrap_server: str | None, folder: Path) -> Iterator[str]:
    """Yield the given address, or the address of a broker that runs as long as the context."""
    if bootstrap_server is not None:
        yield bootstrap_server
        return
    import barnabas

    with barnabas.Broker(data_dir=folder / "broker") as broker:
        yield broker.bootstrap_servers


def _fresh_folder(wanted: Path | None) -> Path:
    folder = wanted or Path("demo-output") / datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    if folder.exists() and any(folder.iterdir()):
        raise Failure(f"{folder} is not empty", "name a new folder with --data-dir, or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def _check_broker(servers: str) -> None:
    """Fail early: Spark and the feeder would wait for minutes, and the results would count what is already there."""
    from confluent_kafka import KafkaException

    try:
        filled = filled_topics(servers)
    except KafkaException:
        raise Failure(
            f"no broker answers at {servers}", "start one with `barnabas start --data-dir DIR`, or leave out -b"
        ) from None
    if filled:
        names = " ".join(plan.name for plan in TOPICS if plan.name in filled)
        raise Failure(
            f"the demo would count what is already in {' and '.join(filled)} at {servers}",
            f"`barnabas topic delete {names} -b {servers}` deletes it; or leave out -b",
        )


def _check_python_packages() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("pyspark", "pyarrow", "pandas", "matplotlib") if find_spec(name) is None]
    if missing:
        raise Failure(f"the demo needs {', '.join(missing)}", install_command())
