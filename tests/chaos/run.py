"""One run: a broker or a cluster, Spark and a feeder, of which the first two die as a plan says.

Order lines are fed at a pace. The feeder waits only if the plan is late: it does not pass the place of a fault while
the one before has not struck. So each fault strikes while lines come in, also on a slow machine.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
from run_pipelines import Shop

from barnabas.demo.feeder import Feed, FeedProgress, count_lines, feed_lines
from barnabas.demo.shop import create_topics
from barnabas.demo.shop_broker import ShopBroker
from barnabas.demo.shop_process import ShopProcess
from barnabas.demo.tables import committed_files
from shop.streams import NAMES
from tests.chaos.brokers import Brokers, brokers
from tests.chaos.plan import Fault, Kind
from tests.pipelines.cluster import WORKERS, Cluster

PATIENCE_S = 1500.0
_LOOK_EVERY_S = 0.1
_SETTLED_S = 5.0
_BATCH_WITHIN_S = 20.0
_TABLES = ("checked_orders", "payment_events", "stock_events")


class Stuck(Exception):
    """The pipeline does not get on; the message says where."""


@dataclass(frozen=True)
class Settings:
    """What a run does.

    Args:
        feed: the order lines, and over how many seconds they are spread.
        faults: what dies when.
        fail_on_data_loss: of every query that reads a topic.
        folder: where everything is; new.
        say: is called with a line for each fault.
        nodes: how many brokers; several are one cluster, and one of them dies at a time.
    """

    feed: Feed
    faults: Sequence[Fault]
    fail_on_data_loss: bool
    folder: Path
    say: Callable[[str], object] = print
    nodes: int = 1


@dataclass
class Chaos:
    """A run; call it once.

    Attributes:
        restarts: how often the pipeline's own watcher started a query again, by what it said.
        losses: the log's lines of records that were skipped.
    """

    settings: Settings
    restarts: Counter[str] = field(default_factory=Counter)
    losses: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._folder = self.settings.folder.resolve()
        self._folder.mkdir(parents=True)
        self._lines = count_lines(self.settings.feed)
        self._fed = FeedProgress()
        self._struck = 0
        self._ended = threading.Event()
        self._warm = threading.Event()
        self._failure: BaseException | None = None
        self._counted: dict[Path, int] = {}
        self._batches_at_start = 0
        self._began_s = 0.0

    def __call__(self) -> Iterator[Shop]:
        """Yield the shop when the tables have everything and Spark has stopped; the broker still runs."""
        with contextlib.ExitStack() as stack:
            self._broker = self._start_broker(stack)
            cluster_folder = self._folder / "cluster"
            self._cluster = None
            if any(fault.kind is Kind.EXECUTOR for fault in self.settings.faults):
                cluster_folder.mkdir()
                self._cluster = Cluster(cluster_folder)
                stack.callback(self._cluster.stop)
            shop = Shop(self._folder / "shop", self._broker.bootstrap)
            self._tables = shop.folder / "spark-warehouse" / "live.db"
            self._process = self._shop_process(shop)
            stack.callback(self._process.kill)
            self._process.start()
            feeder = threading.Thread(target=self._feed, daemon=True)
            feeder.start()
            stack.callback(self._ended.set)
            self._wait(lambda: self._rows("checked_orders") > 0, "the first lines do not reach a table")
            self._warm.set()
            self._began_s = time.monotonic()
            for fault in self.settings.faults:
                self._strike(fault)
            self._wait_until_done()
            self._process.stop()
            self._read_log(shop.folder / "spark.log")
            yield shop

    def _start_broker(self, stack: contextlib.ExitStack) -> Brokers:
        found = brokers(self._folder, self.settings.nodes)
        stack.callback(found.stop)
        found.start()
        create_topics(ShopBroker(found.bootstrap))
        return found

    def _shop_process(self, shop: Shop) -> ShopProcess:
        conf = [f"spark.shop.failOnDataLoss={str(self.settings.fail_on_data_loss).lower()}"]
        if self._cluster is None:
            return ShopProcess(shop.folder, ShopBroker(shop.servers), settings=conf)
        return ShopProcess(
            shop.folder, ShopBroker(shop.servers), self._cluster.master, [*conf, "spark.executor.memory=600m"]
        )

    def _feed(self) -> None:
        try:
            feed_lines(ShopBroker(self._broker.bootstrap), self.settings.feed, self._report, self._warm.wait)
        except BaseException as error:
            self._failure = error

    def _report(self, progress: FeedProgress) -> None:
        """Take the feeder's progress, and hold the feeder if the next fault is due before the last one has struck."""
        self._fed = progress
        while not progress.done and progress.lines >= self._hold_at() and not self._ended.wait(_LOOK_EVERY_S):
            pass

    def _hold_at(self) -> float:
        faults = self.settings.faults
        if self._struck + 1 < len(faults):
            return max(faults[self._struck + 1].line, faults[self._struck].line + 1)
        return float("inf") if self._struck == len(faults) else self._lines * 0.98

    def _strike(self, fault: Fault) -> None:
        self._wait(lambda: self._fed.lines >= fault.line, "the feeder does not get on")
        if not fault.early and fault.kind is not Kind.BROKER:
            self._wait(self._had_a_batch, "no batch since Spark was started again")
            self._wait_into_batch(NAMES[fault.choice % len(NAMES)], fault.into_batch_s)
        at_s, doing = time.monotonic() - self._began_s, self._doing()
        fed, rows = self._fed.lines, self._rows("checked_orders")
        what = {Kind.BROKER: self._broker.die, Kind.DRIVER: self._kill_driver, Kind.EXECUTOR: self._kill_executor}
        done = what[fault.kind](fault)
        self._struck += 1
        self.settings.say(
            f"{at_s:6.0f} s  {done}; {fed:,} of {self._lines:,} lines fed, {rows:,} in the table; {doing}"
        )

    def _kill_driver(self, fault: Fault) -> str:
        self._process.kill()
        time.sleep(fault.away_s)
        self._batches_at_start = self._batches()
        self._process.start()
        return f"driver killed, away for {fault.away_s:.1f} s"

    def _kill_executor(self, fault: Fault) -> str:
        cluster = self._cluster
        assert cluster is not None
        worker = fault.choice % WORKERS
        self._wait(lambda: cluster.kill_an_executor(worker), "a worker has no executor")
        return f"executor of worker {worker + 1} killed"

    def _wait_into_batch(self, name: str, seconds: float) -> None:
        """Wait until a query is so far into a batch; not for long, because it may have nothing to do."""
        deadline_s = time.monotonic() + _BATCH_WITHIN_S
        while not self._is_in_batch(name):
            if time.monotonic() > deadline_s:
                return
            time.sleep(0.01)
        time.sleep(seconds)

    def _is_in_batch(self, name: str) -> bool:
        checkpoint = self._folder / "shop" / "checkpoints" / name
        return _newest(checkpoint / "offsets") > _newest(checkpoint / "commits")

    def _doing(self) -> str:
        if not self._process.status()["queries"]:
            return "Spark was starting"
        return f"in a batch: {', '.join(filter(self._is_in_batch, NAMES)) or 'none'}"

    def _had_a_batch(self) -> bool:
        return self._batches() > self._batches_at_start

    def _batches(self) -> int:
        return _newest(self._folder / "shop" / "checkpoints" / "checked_orders" / "commits") + 1

    def _rows(self, name: str) -> int:
        files = committed_files(self._tables / name)
        for file in files:
            if file not in self._counted:
                self._counted[file] = pq.read_metadata(file).num_rows
        return sum(self._counted[file] for file in files)

    def _wait_until_done(self) -> None:
        """Wait until the tables have every event, and no query has had anything to do for a while."""
        self._wait(lambda: self._fed.done, "the feeder does not get on")
        self._wait(lambda: sum(map(self._rows, _TABLES)) >= self._fed.events, "the tables stay incomplete")
        idle_since_s = time.monotonic()

        def is_settled() -> bool:
            nonlocal idle_since_s
            queries = self._process.progress()
            if not queries or not all(query.idle for query in queries):
                idle_since_s = time.monotonic()
            return time.monotonic() - idle_since_s > _SETTLED_S

        self._wait(is_settled, "the queries do not come to an end")

    def _wait(self, done: Callable[[], bool], otherwise: str) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not done():
            if self._failure is not None:
                raise self._failure
            self._process.check()
            self._broker.check()
            if time.monotonic() > deadline_s:
                raise Stuck(f"{otherwise}; {self._folder} has the logs")
            time.sleep(_LOOK_EVERY_S)

    def _read_log(self, log: Path) -> None:
        lines = log.read_text(errors="replace").splitlines()
        for cluster_log in self._folder.glob("cluster/work/**/stderr"):
            lines += cluster_log.read_text(errors="replace").splitlines()
        for line in lines:
            if failed := re.search(r"(\w+) failed and starts again in \d+ s: (.*)", line):
                self.restarts[f"{failed[1]}: {failed[2][:200]}"] += 1
            elif "continuing without them" in line:
                self.losses.append(line)


def _newest(log: Path) -> int:
    """Return the number of the newest batch in a checkpoint's log, or -1."""
    return max((int(path.name) for path in log.glob("*") if path.name.isdigit()), default=-1)
