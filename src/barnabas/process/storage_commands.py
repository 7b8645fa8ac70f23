"""`barnabas storage format|random-uuid|info`: Kafka's `kafka-storage`.

Flags are Kafka's; `--data-dir` replaces the properties file. An older `--release-version` lets an older Apache Kafka run on the
directory later. `--add-scram` may leave the password out: then it comes from the environment, a prompt or the standard input.

The first voters in a directory (`_first_voters`)

    controller.quorum.voters is set     none: the settings name them (kraft.version 0)
    --standalone                        this node alone
    --initial-controllers LIST          those of the list
    --no-initial-controllers            none: this controller joins a quorum that exists
    none of these, a broker             none
    none of these, a node alone         this node alone, since there is nobody else
    none of these, another controller   an error, as in Kafka: two nodes that each took themselves for the quorum would be two clusters

Several directories (`log.dirs`, `metadata.log.dir`) each get an id of their own. One has the first voters: that of the metadata log.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.config.cannot_start import CannotStart, remedies
from barnabas.config.config import BrokerConfig, ConfigError
from barnabas.config.quorum_config import BOOTSTRAP_SERVERS, VOTERS, parse_initial_controllers
from barnabas.config.sources import ConfigSources, UsageMistake
from barnabas.directory.data_directory import check_is_free
from barnabas.directory.storage import format_directory, info, is_in_use, random_uuid
from barnabas.given_secret import given_secret
from barnabas.log import meta_properties
from barnabas.log.disk import OsDisk
from barnabas.log.meta_properties import META_PROPERTIES, InvalidMetaProperties, MetaProperties
from barnabas.metadata.metadata_version import (
    FEATURES,
    LATEST_PRODUCTION,
    OLDEST_FORMAT,
    FeatureRange,
    release_level,
)
from barnabas.process.arguments import Parser, print_error
from barnabas.protocol.messages import UserScramCredentialRecord
from barnabas.protocol.metadata_versions import NAMES
from barnabas.raft.voters import VoterSet
from barnabas.security.sasl.scram_argument import parse_scram_argument
from barnabas.words.hidden_values import hide_values
from barnabas.words.kafka_words import in_plain_words
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable

__all__ = ["run_storage"]

PASSWORD_VARIABLE = "BARNABAS_USER_PASSWORD"

_BROKER = {True: "running", False: "stopped", None: "-"}


def run_storage(arguments: Sequence[str]) -> int:
    """Run one storage command and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    if options.command == "random-uuid":
        print(random_uuid(random.SystemRandom()))
        return 0
    try:
        config = _config(options)
        return _show(config) if options.command == "info" else _format(options, config)
    except UsageMistake as mistake:
        options.parser.error(str(mistake))
    except OSError as error:
        where = printable(error.filename or "")
        print_error(f"cannot use the data directory {where}: {error.strerror or error} (pass another --data-dir)")
    except (CannotStart, ConfigError) as error:
        print_error(in_plain_words(str(error)).message)
    return 1


def _show(config: BrokerConfig) -> int:
    """Print what the directories hold, as names and values like the other commands, and their problems on standard error."""
    disk = OsDisk()
    found = info(
        disk, config.all_dirs, lambda each: check_is_free(disk, each, remedies(config.embedded).other_directory)
    )
    blocks = [
        f"DIRECTORY     {printable(directory)}\n"
        f"CLUSTER-ID    {meta.cluster_id}\n"
        f"NODE-ID       {meta.node_id}\n"
        f"DIRECTORY-ID  {meta.directory_id or '-'}\n"
        f"BROKER        {_BROKER[is_in_use(disk, directory)]}"
        for directory, meta in found.formatted.items()
    ]
    if blocks:
        print("\n\n".join(blocks))
    for problem in found.problems:
        print_error(problem)
    return 1 if found.problems else 0


def _parser() -> Parser:
    prog = "barnabas storage"
    words = "Format or describe a data directory."
    parser = Parser(prog=prog, usage=f"{prog} [OPTIONS] COMMAND [ARGS]...", description=words)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", prog=prog)
    words = "Print a random id, for --cluster-id."
    commands.add_parser("random-uuid", help=words, description=words, usage=f"{prog} random-uuid")
    for name, words in (("info", "Describe a data directory."), ("format", "Format an empty directory for a node.")):
        command = commands.add_parser(name, help=words, description=words, usage=f"{prog} {name} [OPTIONS]")
        command.set_defaults(parser=command)
        command.add_argument("-c", "--config", metavar="FILE", help="A server.properties file.")
        command.add_argument("--data-dir", metavar="DIR", help="The data directory, log.dirs.")
        if name == "format":
            _add_format_options(command)
    return parser


def _add_format_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-t", "--cluster-id", metavar="ID", help="The cluster's id.  [default for a node alone: a random one]"
    )
    first = command.add_mutually_exclusive_group()
    first.add_argument("-s", "--standalone", action="store_true", help="Be the first voter of a new quorum, alone.")
    first.add_argument(
        "-I",
        "--initial-controllers",
        metavar="LIST",
        help="The first voters of a new quorum, as ID@HOST:PORT:DIRECTORY-ID,...; the same on all of them.",
    )
    first.add_argument(
        "-N", "--no-initial-controllers", action="store_true", help="Join a quorum that exists, as a controller."
    )
    command.add_argument("-g", "--ignore-formatted", action="store_true", help="Skip a directory that is formatted.")
    command.add_argument(
        "-r", "--release-version", metavar="RELEASE", help="The release whose metadata format to begin with, as 4.3."
    )
    command.add_argument(
        "-f", "--feature", metavar="NAME=LEVEL", action="append", default=[], help="The level of a feature; repeat."
    )
    command.add_argument(
        "-S", "--add-scram", metavar="USER", action="append", default=[],
        help="A user of a new cluster, as 'SCRAM-SHA-512=[name=alice]'; its password is asked for. Repeat.",
    )  # fmt: skip


def _config(options: argparse.Namespace) -> BrokerConfig:
    sources = ConfigSources(options.config, os.environ)
    if options.data_dir:
        sources.properties["log.dirs"] = options.data_dir
    config = sources.config(served=False)
    hide_values(config.provided)
    return config


def _level(release: str | None) -> int:
    """Return the metadata.version of `--release-version`."""
    level = LATEST_PRODUCTION if release is None else release_level(release)
    if level is None or level < OLDEST_FORMAT:
        names = f"{NAMES[OLDEST_FORMAT]} to {NAMES[LATEST_PRODUCTION]}"
        raise CannotStart(f"--release-version {printable(release or '')}: must be a release from {names}")
    return level


def _levels(features: Sequence[str], *, is_dynamic: bool) -> dict[str, int]:
    """Return the levels of `--feature`s.

    Args:
        is_dynamic: whether the quorum can change, which is what kraft.version says.
    """
    levels = {}
    for text in features:
        name, separator, level = text.partition("=")
        known = {**FEATURES, "kraft.version": FeatureRange(0, 1, 1)}
        if name == "metadata.version":
            releases = f"{NAMES[OLDEST_FORMAT]} to {NAMES[LATEST_PRODUCTION]}"
            raise CannotStart(f"--feature {printable(text)}: pass --release-version instead, from {releases}")
        if not separator:
            raise CannotStart(f"--feature {printable(text)}: must be NAME=LEVEL with one of {', '.join(sorted(known))}")
        if name not in known:
            what = f"there is no feature {printable(name)}{did_you_mean(name, known)}"
            raise CannotStart(f"--feature {printable(text)}: {what} (the features are {', '.join(sorted(known))})")
        low, high, _ = known[name]
        if not level.isascii() or not level.isdigit() or not low <= int(level) <= high:
            raise CannotStart(f"--feature {printable(text)}: the level must be from {low} to {high}")
        levels[name] = int(level)
    # It is not among the first records: the voters' checkpoint has it, or there is none.
    kraft_version = levels.pop("kraft.version", None)
    if kraft_version == 1 and not is_dynamic:
        raise CannotStart(
            f"--feature kraft.version=1: needs --standalone, --initial-controllers or --no-initial-controllers, without {VOTERS}"
        )
    if kraft_version == 0 and is_dynamic:
        raise CannotStart(f"--feature kraft.version=0: such a quorum is named by {VOTERS}; remove the option")
    return levels


class _FirstVoters(NamedTuple):
    """What a directory says of the quorum: nothing, this node alone, or `voters`."""

    standalone: bool = False
    voters: VoterSet | None = None


def _first_voters(options: argparse.Namespace, config: BrokerConfig) -> _FirstVoters:
    """Return what the directory is to say of the quorum.

    Raises:
        CannotStart: the options and the settings contradict each other.
    """
    new = "--standalone" if options.standalone else "--initial-controllers" if options.initial_controllers else ""
    if new and config.quorum_voters:
        raise CannotStart(
            f"{new} is for a quorum that can change, but {VOTERS} names one that does not "
            f"(remove the option, or set {BOOTSTRAP_SERVERS} instead)"
        )
    if options.standalone and not config.is_controller:
        raise CannotStart("--standalone is for controllers, but this node is a broker alone (remove the option)")
    if options.no_initial_controllers and config.is_alone and not config.quorum_voters:
        raise CannotStart(
            f"--no-initial-controllers is for a node that joins a quorum, but the settings name no other node (set {BOOTSTRAP_SERVERS})"
        )
    if options.initial_controllers:
        names = config.list_value("controller.listener.names")
        return _FirstVoters(voters=parse_initial_controllers(options.initial_controllers, names[0].upper()))
    if options.standalone:
        return _FirstVoters(standalone=True)
    if options.no_initial_controllers or config.quorum_voters or not config.is_controller:
        return _FirstVoters()
    if not config.is_alone:
        raise CannotStart(
            f"a controller without {VOTERS} needs one of --standalone, --initial-controllers and --no-initial-controllers"
        )
    return _FirstVoters(standalone=True)


def _users(arguments: Sequence[str]) -> list[UserScramCredentialRecord]:
    """Return the records of the users of `--add-scram`. One user with two mechanisms has one password.

    Raises:
        CannotStart: an argument is not a user, or a password is empty.
    """
    try:
        users = [parse_scram_argument(argument) for argument in arguments]
    except ValueError as error:
        raise CannotStart(f"--add-scram: {error}") from None
    passwords: dict[str, str] = {}
    records = []
    for user in users:
        if user.needs_password:
            if user.name not in passwords:
                passwords[user.name] = given_secret(PASSWORD_VARIABLE, f"Password of {user.name}", is_new=True)
            if not passwords[user.name]:
                raise CannotStart(
                    f"--add-scram: the password of {printable(user.name)} is empty "
                    f"(type one, or give one by {PASSWORD_VARIABLE} or a line of the standard input)"
                )
            user = user._replace(password=passwords[user.name])
        credential = user.credential(os.urandom)
        records.append(
            UserScramCredentialRecord(name=user.name, mechanism=user.mechanism.number, **credential._asdict())
        )
    return records


class _Unformatted(NamedTuple):
    """The directories of a node that have no owner yet; `owned` is one that has, of `cluster_id`."""

    directories: list[str]
    owned: str
    cluster_id: str | None


def _unformatted(disk: OsDisk, config: BrokerConfig, *, skips_formatted: bool) -> _Unformatted:
    """Return which directories are to be formatted; all of them are looked at before one is written.

    Raises:
        CannotStart: one is formatted already, belongs to another node, or holds other people's files.
    """
    left, owned, cluster_id = [], "", None
    for directory in config.all_dirs:
        if not disk.exists(f"{directory}/{META_PROPERTIES}"):
            check_is_free(disk, directory, remedies(config.embedded).other_directory)
            left.append(directory)
            continue
        if not skips_formatted:
            raise CannotStart(f"log directory {directory} is already formatted (--ignore-formatted skips it)")
        owner = _owner(disk, directory, config.node_id)
        if cluster_id not in (None, owner.cluster_id):
            raise CannotStart(f"{printable(owned)} and {printable(directory)} belong to different clusters")
        owned, cluster_id = directory, owner.cluster_id
        print(f"{directory} is already formatted; skipped.")
    return _Unformatted(left, owned, cluster_id)


def _owner(disk: OsDisk, directory: str, node_id: int) -> MetaProperties:
    try:
        owner = meta_properties.read(disk, directory)
    except InvalidMetaProperties as error:
        raise CannotStart(f"cannot read {printable(directory)}/{META_PROPERTIES}: {error}") from None
    assert owner is not None, directory
    if owner.node_id != node_id:
        raise CannotStart(f"{printable(directory)} belongs to node {owner.node_id}, not to {node_id}")
    return owner


def _format(options: argparse.Namespace, config: BrokerConfig) -> int:
    first = _first_voters(options, config)
    is_dynamic = first.standalone or first.voters is not None or options.no_initial_controllers
    version = _level(options.release_version)
    levels = _levels(options.feature, is_dynamic=is_dynamic and not config.quorum_voters)
    disk, draw = OsDisk(), random.SystemRandom()
    users = _users(options.add_scram)
    left = _unformatted(disk, config, skips_formatted=options.ignore_formatted)
    cluster_id = options.cluster_id or config.cluster_id or left.cluster_id
    if cluster_id is None:
        if not config.is_alone:
            raise UsageMistake(
                "--cluster-id is missing: all nodes of a cluster have the same (`barnabas storage random-uuid` prints a new one,"
                " `barnabas cluster info` that of a cluster that runs)"
            )
        cluster_id = random_uuid(draw)
    if left.cluster_id not in (None, cluster_id):
        raise CannotStart(
            f"{printable(left.owned)} belongs to cluster {left.cluster_id}, not to {printable(cluster_id)}"
            f" (pass --cluster-id {left.cluster_id}, or other directories)"
        )
    for directory in left.directories:
        disk.mkdir(directory)
        meta = format_directory(
            disk,
            directory,
            cluster_id,
            config.node_id,
            config,
            draw,
            now_ms=time.time_ns() // 1_000_000,
            metadata_version=version,
            levels=levels,
            standalone=first.standalone,
            initial_voters=first.voters,
            users=users,
            has_metadata=os.path.normpath(directory) == os.path.normpath(config.metadata_dir),
        )
        print(f"Formatted {directory} for node {meta.node_id} of cluster {meta.cluster_id}.")
    return 0
