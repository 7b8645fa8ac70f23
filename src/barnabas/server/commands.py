"""`barnabas start` and `barnabas storage`: from a command line to a running node.

- Later sources win: defaults, the properties file, the environment, `--set`, then `--listen` and `--data-dir`.
- A failure is one line on standard error, `error: what is wrong (what to do)`, with exit code 1; a wrong command line prints its
  usage too and exits with 2 (`arguments`). A stop by signal exits with 0.
- When the broker answers requests it prints `barnabas ready on HOST:PORT`, flushed, with the real port in place of 0.
- The first SIGTERM or SIGINT stops cleanly, also during the start. One that arrives a second later or more
  ends the process at once, as a kill does.

Process settings, made only here
- RLIMIT_NOFILE is raised to the hard limit: partitions and connections hold descriptors, and 1,024 are soon used up.
- Python looks for cycles seldom, and not while it handles a long request (`full_collections`).
- The loop is uvloop's if it is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from barnabas.kafka_words import in_plain_words
from barnabas.server.arguments import Parser, UsageMistake, print_error
from barnabas.server.cannot_start import CannotStart, check_system
from barnabas.server.config import BrokerConfig, ConfigError
from barnabas.server.config_sources import DEFAULT_LISTEN, ConfigSources
from barnabas.server.full_collections import FullCollections
from barnabas.server.log_lines import LineFormatter

if sys.platform != "win32":  # where `run` says that it cannot
    import resource

__all__ = ["run"]

logger = logging.getLogger(__name__)

_LEVELS = ("debug", "info", "warning", "error")
_SYNC_THREADS = 16
# `timeout` and task runners signal both the process and its group: the same signal arrives twice.
_ONE_SIGNAL_SECONDS = 1.0


def run(command: str, arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    try:
        check_system()
        return _start(arguments) if command == "start" else _storage(arguments)
    except (ConfigError, CannotStart) as mistake:
        print_error(in_plain_words(str(mistake)).message)
        return 1


def _start(arguments: Sequence[str]) -> int:
    parser = _start_parser()
    options = parser.parse_args(arguments)
    _log_to_stderr(options.log_level)
    try:
        sources = _sources(options)
        config = sources.config()
    except UsageMistake as mistake:
        parser.error(str(mistake))
    sources.log_ignored(config)
    _raise_file_limit()
    return _serve(config)


def _start_parser() -> Parser:
    parser = Parser(
        prog="barnabas start",
        usage="barnabas start [OPTIONS] [FILE]",
        description="Run one node: a broker and its controller. FILE is a server.properties, as for Apache Kafka.",
    )
    parser.add_argument("file", nargs="?", metavar="FILE")
    parser.add_argument("--data-dir", metavar="DIR", help="The data directory, log.dirs; an empty one is formatted.")
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        action="append",
        help=f"Address to serve; port 0 picks a free one; repeat.  [default: {DEFAULT_LISTEN}]",
    )
    parser.add_argument(
        "--metrics-listen",
        metavar="HOST:PORT",
        help="Serve /metrics, /healthz and /readyz there; port 0 picks a free one.",
    )
    parser.add_argument("-c", "--config", metavar="FILE", help="The same as FILE.")
    parser.add_argument(
        "--set",
        "--override",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="A setting; repeat.",
    )
    parser.add_argument("--log-level", choices=_LEVELS, default="info", help="What to log at least.  [default: info]")
    return parser


def _sources(options: argparse.Namespace) -> ConfigSources:
    if options.file and options.config:
        raise UsageMistake("name one properties file: --config FILE, or FILE alone")
    sources = ConfigSources(options.file or options.config, os.environ)
    sources.add_settings(options.settings)
    sources.add_listeners(options.listen or ())
    if options.metrics_listen:
        sources.properties["barnabas.metrics.listen"] = options.metrics_listen
    if options.data_dir:
        sources.properties["log.dirs"] = options.data_dir
    return sources


def _log_to_stderr(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler])


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError) as error:
            why = getattr(error, "strerror", None) or error
            logger.info("Cannot raise the limit of open files above %d: %s", soft, why)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's loop if uvloop is installed, else asyncio's."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def epoch_ms() -> int:
    """Return the wall clock, in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def _serve(config: BrokerConfig) -> int:
    loop = new_event_loop()
    try:
        # One run for start, service and stop: uvloop loses a signal that arrives between two runs.
        return loop.run_until_complete(_serve_until_stopped(config, loop))
    finally:
        loop.close()


async def _serve_until_stopped(config: BrokerConfig, loop: asyncio.AbstractEventLoop) -> int:
    # The broker's modules take most of a start: `barnabas storage` does not need them, and a mistake is reported before.
    from barnabas.log.disk import OsDisk
    from barnabas.server.node import Node

    # A sync waits for the device, not the processor: many at once cost hardly more than one. The executor makes threads as needed.
    loop.set_default_executor(ThreadPoolExecutor(_SYNC_THREADS, "barnabas-sync"))
    signals = _Signals(loop)
    node = Node(config, loop=loop, disk=OsDisk(), now_ms=epoch_ms, random=random.Random())
    start = loop.create_task(node.start())
    await asyncio.wait((start, signals.asked), return_when=asyncio.FIRST_COMPLETED)
    if not start.done():
        start.cancel()
        await asyncio.wait((start,))
        logger.info("Stopped before the broker was ready")
        return 0
    start.result()
    FullCollections(loop).begin()
    for address in node.addresses:
        print(f"barnabas ready on {address}", flush=True)
    failed = asyncio.ensure_future(node.wait_failed())
    await asyncio.wait((signals.asked, failed), return_when=asyncio.FIRST_COMPLETED)
    failed.cancel()
    await node.stop()
    signals.ignore()
    return 1 if node.failure is not None else 0


class _Signals:
    """SIGTERM and SIGINT: the first asks for a stop, a later one ends the process.

    Attributes:
        asked: done when a signal has asked for a stop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.asked: asyncio.Future[None] = loop.create_future()
        self._loop = loop
        self._first_at = 0.0
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._arrived, number)

    def __repr__(self) -> str:
        return f"<_Signals asked={self.asked.done()}>"

    def ignore(self) -> None:
        """Let no later signal change how the process ends."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)

    def _arrived(self, number: signal.Signals) -> None:
        if not self.asked.done():
            self._first_at = self._loop.time()
            logger.info("Stopping: %s (another one ends the process at once, as a kill does)", number.name)
            self.asked.set_result(None)
        elif self._loop.time() - self._first_at >= _ONE_SIGNAL_SECONDS:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)


def _storage(arguments: Sequence[str]) -> int:
    from barnabas.server.storage_commands import run_storage

    return run_storage(arguments)
