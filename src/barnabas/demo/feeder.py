"""Sends the events to the broker: reads or generates order lines and produces their events.

It runs in a separate process, because encoding a million events as JSON takes a whole core for some seconds.

Events have the shop's time, which the pipeline's windows and watermarks use. The producer fills partitions in
parallel, so a reader could see Tuesday in one partition before Monday in another, and treat Monday's events as late.
Therefore the feeder waits, whenever the shop's day changes, until the broker has acknowledged everything sent so far.
Unread events then never span more than one day, and a watermark of one day loses nothing (see `pipeline`). Lines must
be in order of their dates.

With a speed, the feeder sends events that many times faster than they happened; without one, as fast as possible.
"""

from __future__ import annotations

import csv
import gzip
import multiprocessing
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from barnabas.demo.events import Event, ShopEvents
from barnabas.demo.generator import COLUMNS, OrderLine, generate_lines
from barnabas.demo.shop import ORDERS

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_REPORT_EVERY_S = 0.2
_PRODUCER_CONFIG = {
    **ORDERS.producer_config,
    "linger.ms": 20,
    "batch.size": 512 * 1024,
    "compression.type": "lz4",
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 128 * 1024,
    "delivery.report.only.error": True,
    "log_level": 3,
}


class FeedError(Exception):
    """The input has no order lines, or an event was not delivered; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Feed:
    """What to feed. Without an input, a shop generated from the seed."""

    input: Path | None = None
    rows: int | None = None
    speed: float = 0.0
    seed: int = 1


@dataclass(frozen=True, slots=True)
class FeedProgress:
    """The feeder's progress; `at` is the shop's time."""

    lines: int = 0
    events: int = 0
    at: str = ""
    done: bool = False


def read_lines(feed: Feed) -> Iterator[OrderLine]:
    """Yield the order lines of a feed.

    Raises:
        FeedError: the file cannot be read, or its first line does not name the columns.
    """
    if feed.input is None:
        yield from generate_lines(feed.rows or 50_000, feed.seed)
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
        raise FeedError(f"cannot read {feed.input}: {error}") from error


def feed_lines(
    bootstrap_servers: str, feed: Feed, report: Callable[[FeedProgress], None] = lambda progress: None
) -> FeedProgress:
    """Produce every event of a feed and return when all are acknowledged.

    Args:
        bootstrap_servers: the broker; the topics must exist.
        feed: what to produce.
        report: called with the progress about five times a second.

    Raises:
        FeedError: the input cannot be read, or an event could not be delivered.
    """
    sender = _Sender(bootstrap_servers, feed.speed, report)
    shop = ShopEvents()
    for line in read_lines(feed):
        sender.advance_to(line[4] if len(line) == len(COLUMNS) else "")
        for event in shop.line(line):
            sender.send(event)
        sender.lines += 1
    for event in shop.last_payments():
        sender.send(event)
    return sender.finish()


class FeederProcess:
    """Runs `feed_lines` in a separate process; call `progress()` regularly."""

    def __init__(self, bootstrap_servers: str, feed: Feed) -> None:
        # Spawned, not forked: the parent has threads (the broker's, Spark's), which a fork would not copy.
        context = multiprocessing.get_context("spawn")
        self._receiver, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(sender, bootstrap_servers, feed), daemon=True)
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

    def stop(self) -> None:
        """Terminate the process."""
        self._process.terminate()
        self._process.join()
        self._receiver.close()


class _Sender:
    def __init__(self, bootstrap_servers: str, speed: float, report: Callable[[FeedProgress], None]) -> None:
        from confluent_kafka import Producer

        self.lines = 0
        self._events = 0
        self._failed: Any = None
        self._producer = Producer(
            {**_PRODUCER_CONFIG, "bootstrap.servers": bootstrap_servers, "on_delivery": self._delivered}
        )
        self._speed = speed
        self._report = report
        self._at = ""
        self._pace: tuple[float, datetime] | None = None
        self._next_report_s = 0.0

    def advance_to(self, at: str) -> None:
        """Move the shop's clock. Wait for acknowledgements on a new day, and with a speed for the moment."""
        if at == self._at or not _MOMENT.fullmatch(at):
            return
        if at[:10] > self._at[:10]:
            self._flush()
        self._at = max(at, self._at)
        if self._speed:
            self._wait_for(datetime.fromisoformat(at))
        now_s = time.monotonic()
        if now_s >= self._next_report_s:
            self._next_report_s = now_s + _REPORT_EVERY_S
            self._report(FeedProgress(self.lines, self._events, self._at))

    def send(self, event: Event) -> None:
        while True:
            try:
                self._producer.produce(event.topic, event.value, event.key)
                break
            except BufferError:
                self._producer.poll(0.05)
        self._events += 1
        if self._events % 1000 == 0:
            self._producer.poll(0)

    def finish(self) -> FeedProgress:
        self._flush()
        progress = FeedProgress(self.lines, self._events, self._at, done=True)
        self._report(progress)
        return progress

    def _flush(self) -> None:
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


def _run(sender: Connection, bootstrap_servers: str, feed: Feed) -> None:
    try:
        feed_lines(bootstrap_servers, feed, sender.send)
    except FeedError as error:
        sender.send(str(error))
    except (BrokenPipeError, KeyboardInterrupt):
        pass
