"""`barnabas demo`: the command line, and the order of the steps.

1. Check that Java is installed and the folder is empty.
2. Start a broker in this process, unless the user names one; create the topics.
3. Start Spark and the queries; then the feeder, in a separate process.
4. Run the queries until they have read everything that the feeder sent.
5. Print the tables, draw the chart, and print where the files are.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.spark.requirements import install_command

if TYPE_CHECKING:
    from barnabas.demo.display import Progress
    from barnabas.demo.feeder import Feed, FeederProcess
    from barnabas.demo.pipeline import Pipeline

_POLL_S = 0.1
_ANSWER_S = 5.0
_WIDTH_OF_A_FILE = 120


@click.command()
@click.option(
    "--input",
    "input_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE.csv[.gz]",
    help="Order lines with the columns of the Online Retail data set, oldest first. Default: a generated small shop.",
)
@click.option("--rows", type=click.IntRange(min=1), help="Feed at most this many order lines.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    help="Feed orders this many times faster than they happened. Default: as fast as possible.",
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
    speed: float | None,
    data_dir: Path | None,
    bootstrap_server: str | None,
) -> None:
    """Send a shop's orders through a broker into Spark, and watch the results.

    Needs Java 17 or newer, and the packages of the extra "spark": pip install ".[spark]" in a clone.
    """
    from barnabas.demo.feeder import Feed, FeedError
    from barnabas.demo.java import JavaMissing, check_java

    try:
        check_java()
        _check_python_packages()
        if bootstrap_server is not None:
            _check_broker(bootstrap_server)
        folder = _fresh_folder(data_dir)
        _run(Feed(input_file, rows, speed or 0.0), folder, bootstrap_server)
    except (JavaMissing, FeedError) as error:
        raise click.ClickException(str(error)) from error


def _run(feed: Feed, folder: Path, bootstrap_server: str | None) -> None:
    from rich.console import Console

    from barnabas.demo.chart import draw_chart
    from barnabas.demo.display import Progress, print_answers, print_places
    from barnabas.demo.feeder import FeederProcess
    from barnabas.demo.pipeline import Pipeline, open_session
    from barnabas.demo.shop import TOPICS, create_topics

    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH_OF_A_FILE)
    began_s = time.monotonic()
    with _broker(bootstrap_server, folder) as servers:
        create_topics(servers)
        console.print(f"broker on [bold]{servers}[/], topics {', '.join(plan.name for plan in TOPICS)}")
        console.print("starting Spark …")
        spark = open_session(folder)
        try:
            pipeline = Pipeline(spark, servers, folder)
            pipeline.start()
            # Only now: otherwise every event would be in the topics before the first query starts, and fit one batch.
            feeder = FeederProcess(servers, feed)
            try:
                with Progress(console) as progress:
                    _until_done(feeder, pipeline, progress)
            finally:
                feeder.stop()
            pipeline.stop()
        finally:
            spark.stop()
    chart = folder / "chart.png"
    draw_chart(pipeline, chart)
    print_answers(console, pipeline)
    print_places(console, pipeline, folder, chart, str(feed.input or f"a shop generated from seed {feed.seed}"))
    console.print(f"done in {time.monotonic() - began_s:.0f} s")


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
        raise click.ClickException(f"{folder} is not empty: name a new folder with --data-dir, or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def _check_broker(servers: str) -> None:
    """Fail early: Spark and the feeder would wait for minutes, and librdkafka would print every attempt."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        settings: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 0, "error_cb": lambda error: None}
        AdminClient(settings).list_topics(timeout=_ANSWER_S)
    except KafkaException:
        raise click.ClickException(
            f"no broker answers at {servers}: start one with `barnabas start`, or leave out -b"
        ) from None


def _check_python_packages() -> None:
    from importlib.util import find_spec

    missing = [name for name in ("pyspark", "pyarrow", "pandas", "matplotlib") if find_spec(name) is None]
    if missing:
        raise click.ClickException(f"the demo needs {', '.join(missing)}: {install_command()}")
