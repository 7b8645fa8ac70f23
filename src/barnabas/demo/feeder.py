"""Sends the events to the broker: reads or generates order lines and produces their events.

It runs in a separate process, because encoding a million events as JSON takes a whole core for some seconds.

Events have the shop's time, which the pipeline's windows and watermarks use. The producer fills partitions in
parallel, so a reader could see Tuesday in one partition before Monday in another, and treat Monday's events as late.
Therefore the feeder waits, whenever the shop's day changes, until the broker has acknowledged everything sent so far.
Unread events then never span more than one day, and a watermark of one day loses nothing (see `pipeline`). Lines must
be in order of their dates.

With a speed, the feeder sends events that many times faster than they happened. Otherwise it spreads the lines evenly
over some seconds, so that a reader of the results sees them grow; with 0 seconds it sends as fast as possible.
"""

from __future__ import annotations

import csv
import gzip
import multiprocessing
import re
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event as GoOn
from pathlib import Path
from typing import Any

from barnabas.client.partitioner import partition_for
from barnabas.demo.events import Event, ShopEvents
from barnabas.demo.generator import COLUMNS, OrderLine, generate_lines
from barnabas.demo.shop import ORDERS, TOPICS, records_per_partition
from barnabas.demo.shop_broker import ShopBroker

GENERATED_ROWS = 50_000
FIRST_LINES = 200
"""Enough to take a first batch through every query, which is slow: Java compiles the queries then."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_LATE = timedelta(days=3)
_REPORT_EVERY_S = 0.2
_SHORTEST_WAIT_S = 0.02
_PRODUCER_CONFIG = {
    **ORDERS.producer_config,
    "linger.ms": 20,
    "batch.size": 512 * 1024,
    "compression.type": "lz4",
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 128 * 1024,
    "delivery.report.only.error": True,
    "log_level": 2,  # a failed delivery is reported as such
}


class FeedError(Exception):
    """The input has no order lines, or an event was not delivered; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Feed:
    """The order lines to feed, and how fast. Without an input, a shop generated from the seed.

    With `late_one_in` 300, one order of 300 comes three days late, as from a till that had no network.
    """

    input: Path | None = None
    rows: int | None = None
    speed: float = 0.0
    seconds: float = 0.0
    seed: int = 1
    late_one_in: int = 0


@dataclass(frozen=True, slots=True)
class FeedProgress:
    """The feeder's progress; `at` is the shop's time."""

    lines: int = 0
    events: int = 0
    at: str = ""
    done: bool = False


def count_lines(feed: Feed) -> int:
    """Return how many order lines a feed has, without parsing them.

    Raises:
        FeedError: the file cannot be read.
    """
    if feed.input is None:
        return feed.rows or GENERATED_ROWS
    try:
        with _open(feed.input) as file:
            lines = sum(1 for _ in file) - 1
    except (OSError, UnicodeDecodeError) as error:
        raise _cannot_read(feed.input, error) from error
    return lines if feed.rows is None else min(lines, feed.rows)


def _cannot_read(path: Path, error: OSError | UnicodeDecodeError) -> FeedError:
    if isinstance(error, gzip.BadGzipFile):
        return FeedError(f"cannot read {path}: its name ends in .gz, but it is not compressed")
    if isinstance(error, UnicodeDecodeError):
        return FeedError(f"cannot read {path}: it is not UTF-8 text")
    return FeedError(f"cannot read {path}: {error.strerror or error}")


def read_lines(feed: Feed) -> Iterator[OrderLine]:
    """Yield the order lines of a feed.

    Raises:
        FeedError: the file cannot be read, or its first line does not name the columns.
    """
    if feed.input is None:
        yield from generate_lines(feed.rows or GENERATED_ROWS, feed.seed)
        return
    try:
        with _open(feed.input) as file:
            rows = csv.reader(file)
            header = next(rows, [])
            if tuple(header) != COLUMNS:
                raise FeedError(f"{feed.input} is not a file of order lines: it must begin with {','.join(COLUMNS)}")
            for number, row in enumerate(rows):
                if number == feed.rows:
                    return
                yield row
    except (OSError, UnicodeDecodeError) as error:
        raise _cannot_read(feed.input, error) from error


def with_late_orders(lines: Iterable[OrderLine], one_in: int) -> Iterator[OrderLine]:
    """Yield the lines; hold those of one order in `one_in` back until the shop's clock is three days on."""
    held: deque[tuple[str, OrderLine]] = deque()
    for line in lines:
        at = line[4] if len(line) == len(COLUMNS) else ""
        while held and _MOMENT.fullmatch(at) and held[0][0] <= at:
            yield held.popleft()[1]
        if one_in and _MOMENT.fullmatch(at) and zlib.crc32(line[0].encode()) % one_in == 0:
            held.append((str(datetime.fromisoformat(at) + _LATE), line))
        else:
            yield line
    for _, line in held:
        yield line


def feed_lines(
    broker: ShopBroker,
    feed: Feed,
    report: Callable[[FeedProgress], None] = lambda progress: None,
    wait_after_first: Callable[[], object] = lambda: None,
) -> FeedProgress:
    """Produce every event of a feed and return when all are acknowledged.

    Events that are in the topics already, from a feeder that was killed, are not sent again: the events are the same
    each time, and each partition has the first ones of those that belong to it.

    Args:
        broker: it must have the topics.
        feed: what to produce.
        report: called with the progress about five times a second.
        wait_after_first: called when the first lines are in the topics; the rest follows when it returns.

    Raises:
        FeedError: the input cannot be read, or an event could not be delivered.
    """
    per_line_s = feed.seconds / max(count_lines(feed), 1) if feed.seconds and not feed.speed else 0.0
    sender = _Sender(broker, feed.speed, per_line_s, report)
    shop = ShopEvents()
    for line in with_late_orders(read_lines(feed), feed.late_one_in):
        sender.advance_to(line[4] if len(line) == len(COLUMNS) else "")
        for event in shop.line(line):
            sender.send(event)
        sender.count_line()
        if sender.lines == FIRST_LINES:
            sender.flush()
            wait_after_first()
            sender.begin()
    for event in shop.last_payments():
        sender.send(event)
    return sender.finish()


class FeederProcess:
    """Runs `feed_lines` in a separate process; call `progress()` regularly, and `go_on()` after the first lines."""

    def __init__(self, broker: ShopBroker, feed: Feed) -> None:
        # Spawned, not forked: the parent has threads (the broker's, Spark's), which a fork would not copy.
        context = multiprocessing.get_context("spawn")
        self._receiver, sender = context.Pipe(duplex=False)
        self._go = context.Event()
        self._process = context.Process(target=_run, args=(sender, broker, feed, self._go), daemon=True)
        self._progress = FeedProgress()
        self._process.start()
        sender.close()

    def progress(self) -> FeedProgress:
        """Return the newest progress.

        Raises:
            FeedError: the feeder failed.
        """
        try:
            while self._receiver.poll():
                message = self._receiver.recv()
                if isinstance(message, str):
                    raise FeedError(message)
                self._progress = message
        except EOFError:
            if not self._progress.done:
                raise FeedError("the feeder stopped before its last line") from None
        return self._progress

    def go_on(self) -> None:
        """Feed what follows the first lines."""
        self._go.set()

    def stop(self) -> None:
        """Terminate the process."""
        self._process.terminate()
        self._process.join()
        self._receiver.close()


class _Sender:
    def __init__(
        self, broker: ShopBroker, speed: float, per_line_s: float, report: Callable[[FeedProgress], None]
    ) -> None:
        from confluent_kafka import Producer

        self.lines = 0
        self._events = 0
        self._failed: Any = None
        self._producer = Producer({**_PRODUCER_CONFIG, **broker.library_settings(), "on_delivery": self._delivered})
        self._speed = speed
        self._per_line_s = per_line_s
        self._began_s = time.monotonic()
        self._report = report
        self._at = ""
        self._pace: tuple[float, datetime] | None = None
        self._next_report_s = 0.0
        self._partitions = {plan.name: plan.partitions for plan in TOPICS}
        self._there = records_per_partition(broker)
        self._passed: Counter[tuple[str, int]] = Counter()
        self._sent_of_line = False

    def advance_to(self, at: str) -> None:
        """Move the shop's clock. Wait for acknowledgements on a new day, and with a speed for the moment."""
        if at == self._at or not _MOMENT.fullmatch(at):
            return
        if at[:10] > self._at[:10]:
            self.flush()
        self._at = max(at, self._at)
        if self._speed:
            self._wait_for(datetime.fromisoformat(at))
        now_s = time.monotonic()
        if now_s >= self._next_report_s:
            self._next_report_s = now_s + _REPORT_EVERY_S
            self._report(FeedProgress(self.lines, self._events, self._at))
            self._began_s += time.monotonic() - now_s  # a report that takes long does not change the pace

    def begin(self) -> None:
        """Begin to spread the lines; those before are not counted."""
        self._began_s = time.monotonic() - self.lines * self._per_line_s

    def count_line(self) -> None:
        """Count a line. Wait if the lines are to be spread and this one is early."""
        self.lines += 1
        if not self._sent_of_line:  # all of it was there already: it takes no time
            self._began_s -= self._per_line_s
        self._sent_of_line = False
        if self._per_line_s:
            ahead_s = self.lines * self._per_line_s - (time.monotonic() - self._began_s)
            if ahead_s > _SHORTEST_WAIT_S:
                self._producer.poll(0)
                time.sleep(ahead_s)

    def send(self, event: Event) -> None:
        if self._there and self._is_there(event):
            self._events += 1
            return
        self._sent_of_line = True
        while True:
            try:
                self._producer.produce(event.topic, event.value, event.key)
                break
            except BufferError:
                self._producer.poll(0.05)
        self._events += 1
        if self._events % 1000 == 0:
            self._producer.poll(0)

    def _is_there(self, event: Event) -> bool:
        partition = partition_for(event.key, self._partitions[event.topic])
        assert partition is not None, "the partitioner chooses by the key"
        where = event.topic, partition
        self._passed[where] += 1
        return self._passed[where] <= self._there.get(where, 0)

    def finish(self) -> FeedProgress:
        self.flush()
        progress = FeedProgress(self.lines, self._events, self._at, done=True)
        self._report(progress)
        return progress

    def flush(self) -> None:
        self._producer.flush()
        if self._failed is not None:
            raise FeedError(f"an event could not be delivered: {self._failed.str()}")

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is not None:
            self._failed = error

    def _wait_for(self, moment: datetime) -> None:
        if self._pace is None:
            self._pace = (time.monotonic(), moment)
        began_s, first = self._pace
        ahead_s = (moment - first).total_seconds() / self._speed - (time.monotonic() - began_s)
        if ahead_s > 0:
            self._producer.poll(0)
            time.sleep(ahead_s)


def _open(path: Path) -> Any:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return open(path, encoding="utf-8", newline="")


def _run(sender: Connection, broker: ShopBroker, feed: Feed, go: GoOn) -> None:
    try:
        feed_lines(broker, feed, sender.send, go.wait)
    except FeedError as error:
        sender.send(str(error))
    except (BrokenPipeError, KeyboardInterrupt):
        pass
