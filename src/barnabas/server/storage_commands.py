"""`barnabas storage format|random-uuid|info`: Kafka's `kafka-storage`, for one node. Shell.

Flags are Kafka's where it has them (`--config`, `--cluster-id`, `--standalone`, `--ignore-formatted`), with `--data-dir` in place of a
properties file for those who have none.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence

from barnabas.client.properties import read_properties
from barnabas.log.disk import OsDisk
from barnabas.server.config import BrokerConfig, ConfigError
from barnabas.server.storage import StorageError, format_directory, info, random_uuid

__all__ = ["run_storage"]


def run_storage(arguments: Sequence[str]) -> int:
    """Run one storage command; returns the exit code."""
    options = _parser().parse_args(arguments)
    if options.action == "random-uuid":
        print(random_uuid(random.SystemRandom()))
        return 0
    try:
        config = _config(options)
        if options.action == "info":
            found = info(OsDisk(), config.log_dirs)
            print(found.text)
            return found.exit_code
        return _format(options, config)
    except (StorageError, ConfigError, OSError) as error:
        print(f"barnabas storage {options.action}: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="barnabas storage", description="Format a data directory, or say what is in one."
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("random-uuid", help="print a random id, for --cluster-id")
    for name, words in (("info", "tell what a data directory holds"), ("format", "make an empty directory a node's")):
        action = actions.add_parser(name, help=words, description=words)
        action.add_argument("-c", "--config", metavar="FILE", help="a server.properties file")
        action.add_argument("--data-dir", metavar="DIR", help="the directory (log.dirs)")
        if name == "format":
            action.add_argument("-t", "--cluster-id", metavar="ID", help="the cluster's id; a random one when left out")
            action.add_argument(
                "--standalone", "-s", action="store_true", help="the only voter of its quorum (always so here)"
            )
            action.add_argument(
                "-g", "--ignore-formatted", action="store_true", help="leave a formatted directory as it is"
            )
    return parser


def _config(options: argparse.Namespace) -> BrokerConfig:
    properties: dict[str, str] = {}
    if options.config:
        try:
            properties = read_properties(options.config)
        except ValueError as error:
            raise StorageError(str(error)) from None
    if options.data_dir:
        properties["log.dirs"] = options.data_dir
    if not properties.get("log.dirs") and not properties.get("log.dir"):
        raise StorageError("no data directory: pass --data-dir DIR, or set log.dirs in --config FILE")
    return BrokerConfig.from_properties(properties)


def _format(options: argparse.Namespace, config: BrokerConfig) -> int:
    disk, draw = OsDisk(), random.SystemRandom()
    for directory in config.log_dirs:
        if options.ignore_formatted and disk.exists(f"{directory}/meta.properties"):
            print(f"{directory} is already formatted; nothing changed.")
            continue
        disk.mkdir(directory)
        cluster_id = options.cluster_id or config.cluster_id
        now_ms = time.time_ns() // 1_000_000
        meta = format_directory(disk, directory, cluster_id, config.node_id, config, draw, now_ms=now_ms)
        print(f"Formatted {directory} for node {meta.node_id} of cluster {meta.cluster_id}.")
    return 0
