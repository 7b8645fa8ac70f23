"""`barnabas start` and `barnabas storage`: from a command line to a running node.

- Later sources win: defaults, the properties file, the environment, `--set`, then `--listen` and `--data-dir`.
- A mistake is one line on standard error, `barnabas: the mistake and its remedy`, with exit code 1. A stop by signal exits with 0.
- When the broker answers requests it prints `barnabas ready on HOST:PORT`, flushed, with the real port in place of 0.
- The first SIGTERM or SIGINT stops cleanly; a second one has its default effect.

Process settings, made only here
- RLIMIT_NOFILE is raised to the hard limit: partitions and connections hold descriptors, and 1,024 are soon used up.
- Objects made during the start live until the end; `gc.freeze` takes them out of every later collection. The threshold of the
  youngest generation rises from 700 to 20,000 objects: a request makes hundreds of objects that die with its response, none of
  them in a cycle, so that a collection in the middle of a burst only costs time. Cycles are still found, later.
- The loop is uvloop's if it is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from barnabas.server.cannot_start import CannotStart, check_system
from barnabas.server.config import BrokerConfig, ConfigError
from barnabas.server.config_sources import DEFAULT_LISTEN, ConfigSources
from barnabas.server.log_lines import LineFormatter

if sys.platform != "win32":  # where `run` says that it cannot
    import resource

__all__ = ["run"]

logger = logging.getLogger(__name__)

_LEVELS = ("debug", "info", "warning", "error")
_SYNC_THREADS = 16


class _Mistake(Exception):
    """A mistake of the user, in one line."""


def run(command: str, arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    try:
        check_system()
        return _start(arguments) if command == "start" else _storage(arguments)
    except (_Mistake, ConfigError, CannotStart) as mistake:
        print(f"barnabas: {mistake}", file=sys.stderr)
        return 1


def _start(arguments: Sequence[str]) -> int:
    options = _start_parser().parse_args(arguments)
    _log_to_stderr(options.log_level)
    sources = _sources(options)
    config = sources.config()
    sources.log_ignored(config)
    _raise_file_limit()
    return _serve(config)


def _start_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="barnabas start", description="Run one node: a broker and its controller.")
    parser.add_argument("file", nargs="?", metavar="FILE", help="a server.properties file, as for Apache Kafka")
    parser.add_argument("--data-dir", metavar="DIR", help="the data directory; an empty one is formatted (log.dirs)")
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        action="append",
        help=f"address to listen on; port 0 picks a free port (default {DEFAULT_LISTEN}; listeners)",
    )
    parser.add_argument(
        "--metrics-listen",
        metavar="HOST:PORT",
        help="serve /metrics for Prometheus on this address; port 0 picks a free port (barnabas.metrics.listen)",
    )
    parser.add_argument("-c", "--config", metavar="FILE", help="the same as FILE")
    parser.add_argument(
        "--set",
        "--override",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="one setting; repeatable",
    )
    parser.add_argument("--log-level", choices=_LEVELS, default="info", help="lowest level to log (default info)")
    return parser


def _sources(options: argparse.Namespace) -> ConfigSources:
    if options.file and options.config:
        raise ConfigError("name one properties file: --config FILE, or FILE alone")
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
            logger.info("Cannot raise the limit of open files above %d: %s", soft, error)


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
    from barnabas.server.broker import BrokerServer

    # A sync waits for the device, not the processor: many at once cost hardly more than one. The executor makes threads as needed.
    loop.set_default_executor(ThreadPoolExecutor(_SYNC_THREADS, "barnabas-sync"))
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop_once, loop, stop)
    server = BrokerServer(config, loop=loop, disk=OsDisk(), now_ms=epoch_ms, random=random.Random())
    await server.start()
    # The module's docstring explains the freeze and the threshold.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    for address in server.addresses:
        print(f"barnabas ready on {address}", flush=True)
    stopped = asyncio.ensure_future(stop.wait())
    failed = asyncio.ensure_future(server.wait_failed())
    await asyncio.wait((stopped, failed), return_when=asyncio.FIRST_COMPLETED)
    for task in (stopped, failed):
        task.cancel()
    await server.stop()
    return 1 if server.failure is not None else 0


def _stop_once(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.remove_signal_handler(number)
    stop.set()


def _storage(arguments: Sequence[str]) -> int:
    from barnabas.server.storage_commands import run_storage

    return run_storage(arguments)
