"""A `server.properties` of a node, read as `barnabas start` reads it, up to the point where a start would change something.

The mistakes are the sentences with which the start ends: of the settings (`ConfigSources.config`), of the node (`Node.check`), of the
key stores of its listeners, and of ports that are open to other machines. A file of another machine has its directories and key stores
there, so that they are not looked at here.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from barnabas.adopt.given_directory import GivenDirectory, read_directory
from barnabas.cli.failure import Failure
from barnabas.client.properties import line_of
from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.config.config_checks import check_advertised, check_protection
from barnabas.config.config_table import config_schema
from barnabas.config.environment import from_environment
from barnabas.config.sources import ConfigSources, unknown_setting
from barnabas.log.disk import OsDisk
from barnabas.metadata.config_schema import ConfigError, ConfigResourceType
from barnabas.metadata.image import MetadataImage
from barnabas.net.renewed_stores import RenewedStores
from barnabas.net.security_of_listeners import securities
from barnabas.node.node import Node
from barnabas.node.open_ports import planned_open_ports, refuse_open_ports
from barnabas.words.hidden_values import hide_values
from barnabas.words.kafka_words import in_plain_words

__all__ = ["GivenFile", "OwnSetting", "read_file"]


@dataclass(frozen=True)
class OwnSetting:
    """A setting of the file that is worth a word.

    Attributes:
        line: None if a variable of the environment has it.
        meaning: what the setting is about, or why it is unknown.
    """

    name: str
    line: int | None
    meaning: str


@dataclass(frozen=True)
class GivenFile:
    """A file of settings.

    Attributes:
        node_id: None if the settings do not parse.
        mistakes: each is a sentence with which `barnabas start` would end.
        unknown: settings that neither Apache Kafka nor barnabas has.
        without_effect: settings that barnabas ignores although they are not the default.
        variables: variables of this shell that are settings too, as for `barnabas start`.
        settings: how many settings the file has.
        is_alone: it names no other node of the cluster.
        addresses: hosts and ports at which it listens; an empty host means every address.
        controller_address: where other controllers reach it; None if it has none, or listens at every address.
    """

    path: str
    node_id: int | None = None
    roles: tuple[str, ...] = ()
    mistakes: tuple[str, ...] = ()
    unknown: tuple[OwnSetting, ...] = ()
    without_effect: tuple[OwnSetting, ...] = ()
    directories: tuple[GivenDirectory, ...] = ()
    variables: tuple[str, ...] = ()
    settings: int = 0
    is_alone: bool = False
    addresses: tuple[tuple[str, int], ...] = ()
    controller_address: tuple[str, int] | None = None


def read_file(path: str, environ: Mapping[str, str], now_ms: int) -> GivenFile:
    """Return what a start with this file would say.

    Args:
        environ: the variables of the start.

    Raises:
        Failure: the file cannot be read.
    """
    variables = tuple(variable for _, variable in from_environment(environ).values())
    try:
        sources = ConfigSources(path, environ)
    except ConfigError as error:
        raise Failure(str(error)) from None
    settings = len(sources.properties)
    try:
        config = sources.config(served=False)
    except ConfigError as error:
        return GivenFile(path, mistakes=(_words(error),), variables=variables, settings=settings)
    hide_values(config.provided)
    directories = tuple(map(read_directory, config.log_dirs))
    meanings = config_schema().of(ConfigResourceType.BROKER)
    return GivenFile(
        path,
        config.node_id,
        config.process_roles,
        tuple(dict.fromkeys(_mistakes(config, is_here=any(each.is_here for each in directories), now_ms=now_ms))),
        tuple(OwnSetting(name, line_of(path, name), unknown_setting(name)) for name in config.unknown),
        tuple(OwnSetting(name, line_of(path, name), meanings[name].documentation) for name in config.without_effect),
        directories,
        variables,
        settings,
        config.is_alone,
        tuple((each.host, each.port) for each in (*config.listeners, *config.controller_listeners)),
        next(((each.host, each.port) for each in config.controller_listeners if each.host), None),
    )


def _mistakes(config: BrokerConfig, *, is_here: bool, now_ms: int) -> list[str]:
    """Return what ends the start; more than the first mistake, where the checks do not need each other."""
    found = []
    keys = config_schema().of(ConfigResourceType.BROKER)
    checks: list[Callable[[], None]] = [
        lambda: check_advertised(config),
        lambda: check_protection(config.properties, keys, config),
    ]
    for check in checks:
        try:
            check()
        except ConfigError as error:
            found.append(_words(error))
    if found:
        return found
    loop = asyncio.new_event_loop()
    try:
        node = Node(config, loop=loop, disk=OsDisk(), now_ms=lambda: now_ms, random=random.Random(0))
        try:
            node.check()
        except (CannotStart, ConfigError) as error:
            # A directory on another machine is not formatted here.
            if is_here or not str(error).startswith(config.log_dirs):
                found.append(_words(error))
        if is_here:
            found += _of_stores(config, loop, now_ms)
        found += _of_ports(config)
    except (CannotStart, ConfigError) as error:
        found.append(_words(error))
    finally:
        loop.close()
    return found


def _of_stores(config: BrokerConfig, loop: asyncio.AbstractEventLoop, now_ms: int) -> list[str]:
    """Return why the key stores and logins of a listener cannot be used."""
    stores = RenewedStores(loop, config.node_id)
    found = []
    for endpoint in (*config.listeners, *config.controller_listeners):
        try:
            securities(config, [endpoint], MetadataImage, lambda: now_ms, stores)
        except CannotStart as error:
            found.append(_words(error))
    return found


def _of_ports(config: BrokerConfig) -> list[str]:
    """Return why a start refuses a port that other machines reach; Apache Kafka starts with it."""
    try:
        refuse_open_ports(config, planned_open_ports(config))
    except CannotStart as error:
        return [_words(error)]
    return []


def _words(error: Exception) -> str:
    return in_plain_words(str(error)).message
