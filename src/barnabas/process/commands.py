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
import importlib
import logging
import os
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from barnabas.config.cannot_start import CannotStart, check_system
from barnabas.config.config import BrokerConfig, ConfigError
from barnabas.config.endpoints import parse_port
from barnabas.config.sources import DEFAULT_LISTEN, ConfigSources, UsageMistake
from barnabas.net.addresses import metrics_address
from barnabas.net.json_log_lines import JsonFormatter, log_what_ends_the_process
from barnabas.net.log_lines import LineFormatter
from barnabas.node.full_collections import FullCollections
from barnabas.process.arguments import Parser, print_error
from barnabas.process.local_cluster import NODES_MAX, OWN_SETTINGS
from barnabas.process.stop_signals import LEFT, StopSignals
from barnabas.process.supervisor import open_secure_dev, run_cluster
from barnabas.words.hidden_values import hide_values
from barnabas.words.kafka_words import in_plain_words
from barnabas.words.printable import printable

if sys.platform != "win32":  # where `run` says that it cannot
    import resource

__all__ = ["run"]

logger = logging.getLogger(__name__)

_LEVELS = ("debug", "info", "warning", "error")
_FORMATS = ("text", "json")
_SYNC_THREADS = 16


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
    if options.log_format == "text" or options.nodes is not None:
        # The process that starts a cluster speaks to a person; the logs of its nodes are in their files.
        _log_to_stderr(options.log_level, LineFormatter())
        return _start_nodes(parser, options)
    json_lines = JsonFormatter()
    _log_to_stderr(options.log_level, json_lines)
    log_what_ends_the_process()
    try:
        return _start_nodes(parser, options, json_lines)
    except (ConfigError, CannotStart) as mistake:
        logger.error("%s", in_plain_words(str(mistake)).message)
        return 1


def _start_nodes(parser: Parser, options: argparse.Namespace, json_lines: JsonFormatter | None = None) -> int:
    try:
        if options.nodes is not None:
            return _start_cluster(options)
        if options.faults is not None:
            raise UsageMistake("--faults is for a cluster: pass --nodes N too, such as --nodes 3")
        if options.port is not None or options.restart:
            raise UsageMistake("--port and --restart are for --nodes N; one node has --listen HOST:PORT")
        sources = _sources(options)
        hint = _secure(options, sources) if options.secure_dev else ""
        config = sources.config()
    except UsageMistake as mistake:
        parser.error(str(mistake))
    hide_values(config.provided)
    if json_lines is not None:
        json_lines.node_id = config.node_id
    sources.log_ignored(config)
    _raise_file_limit()
    return _serve(config, stop_at_end_of_input=options.stop_at_end_of_input, hint=hint)


def _start_cluster(options: argparse.Namespace) -> int:
    for name in ("file", "config", "listen"):
        if getattr(options, name):
            word = "FILE" if name == "file" else f"--{name.replace('_', '-')}"
            raise UsageMistake(f"{word} is for one node; a cluster has --data-dir, --port and --set")
    if options.faults is not None:
        for name, is_given in (
            ("--secure-dev", options.secure_dev),
            ("--restart", options.restart),
            ("--metrics-listen", options.metrics_listen),
            ("--log-level", options.log_level != "info"),
            ("--log-format", options.log_format != "text"),
        ):
            if is_given:
                raise UsageMistake(f"--faults and {name} exclude each other: remove one of the two")
    elif not options.data_dir:
        raise UsageMistake("no data directory (pass --data-dir DIR)")
    is_number = options.nodes.isascii() and options.nodes.isdigit() and len(options.nodes) < 9
    if not is_number or not 1 <= int(options.nodes) <= NODES_MAX:
        raise UsageMistake(f"--nodes {printable(options.nodes)}: must be a number from 1 to {NODES_MAX}")
    port = None if options.port is None else parse_port(options.port)
    if options.port is not None and port is None:
        raise UsageMistake(f"--port {printable(options.port)}: must be a number from 0 to 65535")
    metrics_address(options.metrics_listen or "", "--metrics-listen")
    checked = ConfigSources(None, {})
    checked.add_settings(options.settings)
    for name in checked.properties:
        if name in OWN_SETTINGS:
            raise UsageMistake(f"--set {name}: each node of a cluster has its own")
    # What is wrong with a setting is said once, before anything is made.
    BrokerConfig.from_properties(checked.properties)
    if options.faults is not None:
        # A start without faults loads none of it, and the room of embedded brokers stands above this one.
        module = importlib.import_module("barnabas.embedded.start_with_faults")
        code: int = module.run(options.faults, int(options.nodes), options.data_dir or None, port, checked.properties)
        return code
    arguments = [word for setting in options.settings for word in ("--set", setting)]
    if options.insecure:
        arguments.append("--insecure")
    arguments += ["--log-level", options.log_level, "--log-format", options.log_format]
    return run_cluster(
        options.data_dir,
        int(options.nodes),
        port,
        restart=options.restart,
        arguments=arguments,
        secure_dev=options.secure_dev,
        metrics_listen=options.metrics_listen or "",
    )


def _secure(options: argparse.Namespace, sources: ConfigSources) -> str:
    """Give a node alone TLS, a login and ACLs; return the line for its user.

    Raises:
        UsageMistake: other options are in the way.
        CannotStart: the directory is not a node's, or its files cannot be used.
    """
    if options.file or options.config:
        raise UsageMistake("--secure-dev is for a node without FILE, whose settings it makes; remove one of the two")
    if not options.data_dir:
        raise UsageMistake("--secure-dev needs a data directory (pass --data-dir DIR)")
    try:
        opened = open_secure_dev(Path(options.data_dir), is_alone=True)
    except OSError as error:
        raise CannotStart(
            f"cannot use {options.data_dir}: {error.strerror or error} (pass another --data-dir)"
        ) from None
    addresses = [address.rpartition("://")[2] for address in _listened(options)]
    sources.properties = {**opened.settings(addresses), **sources.properties}
    return opened.hint


def _listened(options: argparse.Namespace) -> list[str]:
    """Return the addresses of `--listen`; with `--secure-dev` each has TLS and a login."""
    if not options.secure_dev:
        return options.listen or []
    addresses = options.listen or [DEFAULT_LISTEN]
    return [each if "://" in each else f"SASL_SSL://{each}" for each in addresses]


def _start_parser() -> Parser:
    parser = Parser(
        prog="barnabas start",
        usage="barnabas start [OPTIONS] [FILE]",
        description="Run one node, or a cluster on this machine. FILE is a server.properties, as for Apache Kafka.",
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
        help="Serve /metrics, /healthz and /readyz there; port 0 picks a free one; of N nodes each has a port, from PORT on.",
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
    parser.add_argument(
        "--log-format",
        choices=_FORMATS,
        default="text",
        help="A line of text for each event, or a JSON object.  [default: text]",
    )
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="Start although other machines reach a port without a login.",
    )
    parser.add_argument("--nodes", metavar="N", help="Start a cluster of N nodes on this machine, below --data-dir.")
    parser.add_argument("--port", metavar="PORT", help="The first port of that cluster.  [default: 9092]")
    parser.add_argument(
        "--faults", metavar="HOST:PORT", help="Faults for tests of that cluster by HTTP, from this machine alone."
    )
    parser.add_argument("--restart", action="store_true", help="Start a node of that cluster again if it ends.")
    parser.add_argument(
        "--secure-dev", action="store_true", help="TLS, a login and ACLs, made below --data-dir for development."
    )
    parser.add_argument("--stop-at-end-of-input", action="store_true", help=argparse.SUPPRESS)
    return parser


def _sources(options: argparse.Namespace) -> ConfigSources:
    if options.file and options.config:
        raise UsageMistake("name one properties file: --config FILE, or FILE alone")
    sources = ConfigSources(options.file or options.config, os.environ)
    sources.add_settings(options.settings)
    sources.add_listeners(_listened(options))
    if options.metrics_listen:
        sources.properties["barnabas.metrics.listen"] = options.metrics_listen
    if options.data_dir:
        sources.properties["log.dirs"] = options.data_dir
    if options.insecure:
        sources.properties["barnabas.insecure"] = "true"
    return sources


def _log_to_stderr(level: str, formatter: logging.Formatter) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
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


def _serve(config: BrokerConfig, *, stop_at_end_of_input: bool, hint: str) -> int:
    loop = new_event_loop()
    try:
        # One run for start, service and stop: uvloop loses a signal that arrives between two runs.
        return loop.run_until_complete(_serve_until_stopped(config, loop, stop_at_end_of_input, hint))
    finally:
        loop.close()


async def _serve_until_stopped(
    config: BrokerConfig, loop: asyncio.AbstractEventLoop, stop_at_end_of_input: bool, hint: str
) -> int:
    # The broker's modules take most of a start: `barnabas storage` does not need them, and a mistake is reported before.
    from barnabas.log.disk import OsDisk
    from barnabas.node.node import Node

    # A sync waits for the device, not the processor: many at once cost hardly more than one. The executor makes threads as needed.
    loop.set_default_executor(ThreadPoolExecutor(_SYNC_THREADS, "barnabas-sync"))
    signals = StopSignals(loop)
    if stop_at_end_of_input:
        signals.heed_input()
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
    if hint:
        print(hint, flush=True)
    failed = asyncio.ensure_future(node.wait_failed())
    await asyncio.wait((signals.asked, failed), return_when=asyncio.FIRST_COMPLETED)
    failed.cancel()
    await node.stop(with_others=_others_have_left(signals) if signals.with_others else None)
    signals.ignore()
    return 1 if node.failure is not None else 0


async def _others_have_left(signals: StopSignals) -> None:
    """Say that this node's broker has left; return when every other has."""
    print(LEFT.decode(), end="", flush=True)
    await signals.input_ended


def _storage(arguments: Sequence[str]) -> int:
    from barnabas.process.storage_commands import run_storage

    return run_storage(arguments)
