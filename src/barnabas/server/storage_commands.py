"""`barnabas storage format|random-uuid|info`: Kafka's `kafka-storage`, for one node.

Flags are Kafka's (`--config`, `--cluster-id`, `--standalone`, `--ignore-formatted`); `--data-dir` replaces the properties file.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence

from barnabas.client.properties import read_properties
from barnabas.log.disk import OsDisk
from barnabas.log.errors import in_words
from barnabas.log.meta_properties import META_PROPERTIES
from barnabas.server.arguments import Parser, UsageMistake, print_error
from barnabas.server.cannot_start import remedies
from barnabas.server.config import BrokerConfig, ConfigError
from barnabas.server.data_directory import check_is_free
from barnabas.server.storage import StorageError, format_directory, info, random_uuid

__all__ = ["run_storage"]


def run_storage(arguments: Sequence[str]) -> int:
    """Run one storage command and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
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
    except UsageMistake as mistake:
        parser.error(str(mistake))
    except OSError as error:
        print_error(in_words(error))
    except (StorageError, ConfigError) as error:
        print_error(error)
    return 1


def _parser() -> Parser:
    prog = "barnabas storage"
    parser = Parser(prog=prog, usage=f"{prog} ACTION [OPTIONS]", description="Format or describe a data directory.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", prog=prog)
    words = "print a random id, for --cluster-id"
    actions.add_parser("random-uuid", help=words, description=words, usage=f"{prog} random-uuid")
    for name, words in (("info", "describe a data directory"), ("format", "format an empty directory for a node")):
        action = actions.add_parser(name, help=words, description=words, usage=f"{prog} {name} [OPTIONS]")
        action.add_argument("-c", "--config", metavar="FILE", help="a server.properties file")
        action.add_argument("--data-dir", metavar="DIR", help="the data directory (log.dirs)")
        if name == "format":
            action.add_argument("-t", "--cluster-id", metavar="ID", help="the cluster's id (default: a random one)")
            action.add_argument(
                "--standalone", "-s", action="store_true", help="be the only voter of the quorum (always the case)"
            )
            action.add_argument(
                "-g", "--ignore-formatted", action="store_true", help="skip a directory that is already formatted"
            )
    return parser


def _config(options: argparse.Namespace) -> BrokerConfig:
    properties: dict[str, str] = {}
    if options.config:
        try:
            properties = read_properties(options.config)
        except OSError as error:
            raise StorageError(f"cannot read {options.config}: {error.strerror or error}") from None
        except ValueError as error:
            raise StorageError(str(error)) from None
    if options.data_dir:
        properties["log.dirs"] = options.data_dir
    if not properties.get("log.dirs") and not properties.get("log.dir"):
        raise UsageMistake("no data directory (pass --data-dir DIR, or set log.dirs in --config FILE)")
    return BrokerConfig.from_properties(properties)


def _format(options: argparse.Namespace, config: BrokerConfig) -> int:
    disk, draw = OsDisk(), random.SystemRandom()
    for directory in config.log_dirs:
        if options.ignore_formatted and disk.exists(f"{directory}/{META_PROPERTIES}"):
            print(f"{directory} is already formatted; skipped.")
            continue
        if not disk.exists(f"{directory}/{META_PROPERTIES}"):
            check_is_free(disk, directory, remedies(config.embedded).other_directory)
        disk.mkdir(directory)
        cluster_id = options.cluster_id or config.cluster_id
        now_ms = time.time_ns() // 1_000_000
        meta = format_directory(disk, directory, cluster_id, config.node_id, config, draw, now_ms=now_ms)
        print(f"Formatted {directory} for node {meta.node_id} of cluster {meta.cluster_id}.")
    return 0
