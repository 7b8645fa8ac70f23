"""`barnabas demo`: the command line, and the order of the steps.

1. Check that Java is installed and the folder is empty; copy the pipeline's project into it.
2. Start a broker in this process, unless the user names one; create the topics.
3. Start the pipeline and the services that read orders, each a process of its own; then the feeder. Wait until the first
   lines are through.
4. At half of the lines kill the pipeline and fulfilment, as a machine that fails would, and start them again.
5. Wait until tables and services have everything that the feeder sent; print the answers, draw the chart, and say how to
   ask.

Everything that a second run (`--continue`) needs is in the folder: the broker's log, the checkpoints, the tables, and
`demo.json`, which names the input.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from barnabas.cli.failure import Failure, failure_of
from barnabas.cli.session import read_command_config
from barnabas.cli.usage import check_utf8
from barnabas.cli.wording import as_typed
from barnabas.demo.answers import totals
from barnabas.demo.chart import draw_chart
from barnabas.demo.display import Clock, Progress, print_answers, print_places, print_services
from barnabas.demo.feeder import Feed, FeederProcess, FeedError, FeedProgress, count_lines, read_lines
from barnabas.demo.java import JavaMissing, check_java
from barnabas.demo.new_shop import copy_project
from barnabas.demo.service_processes import ServiceProcesses, expected
from barnabas.demo.shop import TOPICS, create_topics, filled_topics
from barnabas.demo.shop_broker import ShopBroker
from barnabas.demo.shop_process import ShopProcess, ShopStopped
from barnabas.protocol.errors import KafkaError
from barnabas.words.requirements import needed_by

if TYPE_CHECKING:
    from barnabas.demo.results import Results

_POLL_S = 0.1
_WARM_S = 900.0
_SETTLED_S = 3.0
"""How long the queries must have had nothing to do before the tables are complete: those of tables follow the others."""
_FEED_S = 16.0
"""Long enough to see the results grow, short enough to wait for."""
_LATE_ONE_IN = 300
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
    "--continue",
    "continued",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Go on with an earlier demo, which may have been killed, in its folder.",
)
@click.option("--kill/--no-kill", default=True, show_default=True, help="Kill the pipeline once, half way.")
@click.option("--hold", is_flag=True, help="At the end go on until Ctrl-C, for events of your own.")
@click.option(
    "-b", "--bootstrap-server", help="A running broker to use. Default: the demo starts one, and stops it at the end."
)
@click.option(
    "--command-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="How to log in to the broker of -b: a client's properties file, as for Kafka's tools.",
)
def demo(
    input_file: Path | None,
    rows: int | None,
    seconds: float,
    speed: float | None,
    data_dir: Path | None,
    continued: Path | None,
    kill: bool,
    hold: bool,
    bootstrap_server: str | None,
    command_config: Path | None,
) -> None:
    """Send a shop's orders through a broker into Spark, and watch the results.

    Half way the pipeline is killed, and goes on. Takes about two minutes, most of it for Spark's two starts. Needs
    Java 17 or newer, and the packages of the extra "demo": pip install ".[demo]" in a clone.
    """
    check_utf8(click.get_current_context())
    given = _given_broker(bootstrap_server, command_config)
    try:
        check_java()
        _check_python_packages()
        if given is not None:
            _check_broker(given, may_be_filled=continued is not None)
        if continued is not None:
            folder, feed = _earlier(continued)
        else:
            folder, feed = (
                _fresh_folder(data_dir),
                Feed(input_file, rows, speed or 0.0, seconds, late_one_in=_LATE_ONE_IN),
            )
            _remember(folder, feed)
        try:
            _run(feed, folder, given, kill=kill, hold=hold)
        except KeyboardInterrupt:
            raise Failure("stopped half way", f"`barnabas demo --continue {folder}` goes on") from None
    except (JavaMissing, FeedError, ShopStopped) as error:
        raise Failure(str(error)) from error


def _run(feed: Feed, folder: Path, given: ShopBroker | None, *, kill: bool, hold: bool) -> None:
    from barnabas.demo.results import Results  # needs pyarrow, which a sentence may have to ask for first

    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH_OF_A_FILE)
    began_s = time.monotonic()
    results = Results(folder / "spark-warehouse" / "live.db")
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(_broker(given, folder))
        create_topics(broker)
        console.print(f"broker on [bold]{broker.servers}[/], topics {', '.join(plan.name for plan in TOPICS)}")
        shop = ShopProcess(folder, broker)
        stack.callback(shop.stop)
        services = ServiceProcesses(folder, broker)
        stack.callback(services.stop)
        with Clock(console, lambda: "starting Spark and the queries"):
            shop.start()
            services.start()
            # Only now: otherwise every event would be in the topics before the first query starts, and fit one batch.
            feeder = FeederProcess(broker, feed)
            stack.callback(feeder.stop)
            _until_warm(feeder, shop, results)
        feeder.go_on()
        with Progress(console) as progress:
            if kill:
                _until_fed(feeder, shop, results, progress, count_lines(feed) // 2)
                console.print(
                    "[bold red]the pipeline is killed[/] (kill -9), and fulfilment; they start again, and repeat no row"
                )
                shop.kill()
                shop.start()
                services.kill_fulfilment()
            _until_done(feeder, shop, services, results, progress)
        chart = folder / "chart.png"
        draw_chart(results, chart)
        agrees = print_answers(console, results, totals(read_lines(feed)))
        agrees &= print_services(console, services.served(), expected(read_lines(feed)))
        print_places(console, folder, chart, str(feed.input or f"a shop generated from seed {feed.seed}"))
        console.print(f"done in {time.monotonic() - began_s:.0f} s")
        if hold:
            _hold(console, broker.servers, shop)
    if not agrees:
        raise Failure("the tables or the services differ from the order lines", f"{folder} has both")


def _until_warm(feeder: FeederProcess, shop: ShopProcess, results: Results) -> None:
    """Wait until the first lines are in the tables: the display would stand still meanwhile."""
    deadline_s = time.monotonic() + _WARM_S
    while not results.revenue() and time.monotonic() < deadline_s:
        if feeder.progress().done:  # there are no more than the first lines
            return
        shop.check()
        time.sleep(_POLL_S)


def _until_fed(feeder: FeederProcess, shop: ShopProcess, results: Results, progress: Progress, lines: int) -> None:
    """Show progress until so many lines are fed."""
    while (fed := feeder.progress()).lines < lines and not fed.done:
        shop.check()
        progress.show(fed, results, shop.progress(), "")
        time.sleep(_POLL_S)


def _until_done(
    feeder: FeederProcess, shop: ShopProcess, services: ServiceProcesses, results: Results, progress: Progress
) -> None:
    """Show progress until tables and services have everything that the feeder sends."""
    idle_since_s: float | None = None
    while idle_since_s is None or time.monotonic() - idle_since_s < _SETTLED_S:
        fed = feeder.progress()
        shop.check()
        services.check()
        queries = shop.progress()
        progress.show(fed, results, queries, "" if queries else "the pipeline starts again")
        if not (queries and all(query.idle for query in queries) and _is_complete(fed, results)):
            idle_since_s = None
        elif idle_since_s is None:
            idle_since_s = time.monotonic()
        time.sleep(_POLL_S)
    while behind := {name: count for name, count in services.behind().items() if count}:
        services.check()
        note = " and ".join(f"{name} is {count:,} events behind" for name, count in behind.items())
        progress.show(feeder.progress(), results, shop.progress(), note)
        time.sleep(_POLL_S)


def _is_complete(fed: FeedProgress, results: Results) -> bool:
    return fed.done and results.records() >= fed.events


def _hold(console: Console, servers: str, shop: ShopProcess) -> None:
    """Let everything run until Ctrl-C."""
    console.print(f"the broker on [bold]{servers}[/] and the pipeline go on; Ctrl-C ends them")
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            shop.check()
            time.sleep(1)


def _remember(folder: Path, feed: Feed) -> None:
    """Write the files that `--continue` needs into the folder."""
    copy_project(folder)
    told = asdict(feed) | {"input": str(feed.input.resolve()) if feed.input else None}
    (folder / "demo.json").write_text(json.dumps(told, indent=1))


def _earlier(folder: Path) -> tuple[Path, Feed]:
    """Return the folder of an earlier demo, and its input."""
    try:
        told = json.loads((folder / "demo.json").read_text())
    except FileNotFoundError:
        raise Failure(f"{folder} is not the folder of a demo", "leave out --continue to start one") from None
    told["input"] = Path(told["input"]) if told["input"] else None
    return folder.resolve(), Feed(**told)


@contextlib.contextmanager
def _broker(given: ShopBroker | None, folder: Path) -> Iterator[ShopBroker]:
    """Yield the given broker, or one that runs as long as the context."""
    if given is not None:
        yield given
        return
    import barnabas

    with barnabas.Broker(data_dir=folder / "broker") as broker:
        yield ShopBroker(broker.bootstrap_servers)


def _fresh_folder(wanted: Path | None) -> Path:
    folder = wanted or Path("demo-output") / datetime.now().strftime("%Y-%m-%dT%H-%M-%S")
    if folder.exists() and any(folder.iterdir()):
        raise Failure(f"{folder} is not empty", "name a new folder with --data-dir, or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def _given_broker(bootstrap_server: str | None, command_config: Path | None) -> ShopBroker | None:
    """Return the broker that the user names, by -b or in the file; None if he names none."""
    file = command_config.resolve() if command_config else None
    servers = bootstrap_server or (read_command_config(str(file)).get("bootstrap.servers") if file else None)
    if servers is None:
        if file is not None:
            raise Failure(f"{file} names no broker", "name it with -b, or as bootstrap.servers in the file")
        return None
    return ShopBroker(servers, file)


def _check_broker(broker: ShopBroker, *, may_be_filled: bool) -> None:
    """Fail early: Spark and the feeder would wait for minutes, and the results would count what is already there."""
    try:
        filled = filled_topics(broker)
    except KafkaError as error:
        raise failure_of(error) from None
    if filled and not may_be_filled:
        login = f" --command-config {as_typed(str(broker.config))}" if broker.config else ""
        names = " ".join(plan.name for plan in TOPICS if plan.name in filled)
        raise Failure(
            f"the demo would count what is already in {' and '.join(filled)} at {broker.servers}",
            f"`barnabas topic delete {names} -b {broker.servers}{login}` deletes it; or leave out -b",
        )


def _check_python_packages() -> None:
    with needed_by("the demo", "demo"):
        import confluent_kafka  # noqa: F401
        import matplotlib  # noqa: F401
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
