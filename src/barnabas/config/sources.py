"""The sources of a node's settings: the properties file, the environment, `--set`, and flags such as `--listen`. Later ones win.

- A name that nobody knows is an error if a person types it (`--set`). In a file or the environment it is a warning, as Kafka ignores
  it. Both name the setting that is most like it.
- The settings that this broker accepts and ignores are one line of the log.

A mistake is a `ConfigError`, in one line with its remedy; one in the command line itself is a `UsageMistake`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence

from barnabas.client.properties import line_of, read_properties
from barnabas.config.config import BrokerConfig, is_setting
from barnabas.config.endpoints import PROTOCOL_MAP, parse_port, security_protocols
from barnabas.config.environment import from_environment, on_every_address
from barnabas.metadata.config_schema import ConfigError
from barnabas.settings_table import near_setting
from barnabas.words.printable import printable

__all__ = ["DEFAULT_LISTEN", "ConfigSources", "UsageMistake", "unknown_setting"]

logger = logging.getLogger(__name__)

DEFAULT_LISTEN = "127.0.0.1:9092"
_PROTOCOLS = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"


class UsageMistake(ConfigError):
    """The command line is wrong; the text is one line that says how."""


class ConfigSources:
    """Collects properties, one source after the other.

    Args:
        path: a server.properties file, or None.
        environ: the environment's variables.

    Attributes:
        properties: text by Kafka's name.
    """

    def __init__(self, path: str | None, environ: Mapping[str, str]) -> None:
        self._path = path
        self.properties = {} if path is None else _read(path)
        self._variables: dict[str, str] = {}
        self._set: set[str] = set()
        self._cluster_id = environ.get("CLUSTER_ID")
        self._environ = environ
        for name, (value, variable) in from_environment(environ).items():
            self.properties[name] = value
            self._variables[name] = variable
        if "advertised.listeners" in self._variables and "listeners" not in self.properties:
            self.properties["listeners"] = on_every_address(self.properties["advertised.listeners"])

    def __repr__(self) -> str:
        return f"<ConfigSources properties={len(self.properties)} variables={len(self._variables)}>"

    def add_settings(self, settings: Sequence[str]) -> None:
        """Add what `--set` names, as `KEY=VALUE`."""
        for setting in settings:
            name, separator, value = setting.partition("=")
            name = name.strip()
            if not separator or not name:
                raise UsageMistake(f"--set {printable(setting)}: must be KEY=VALUE")
            if not is_setting(name):
                raise UsageMistake(f"--set {printable(name)}: {unknown_setting(name)}")
            self.properties[name] = value.strip()
            self._set.add(name)

    def add_listeners(self, addresses: Sequence[str]) -> None:
        """Add what `--listen` names, as `HOST:PORT` or `NAME://HOST:PORT`.

        Raises:
            UsageMistake: an address is not one, or `listeners` is given already: with `--set`, or with protection.
        """
        if not addresses:
            return
        listeners = [_listener(place, address) for place, address in enumerate(addresses)]
        self._check_replaced()
        self.properties["listeners"] = ",".join(listeners)
        protocols = self.properties.get(PROTOCOL_MAP, _PROTOCOLS)
        known = {pair.partition(":")[0].strip().upper() for pair in protocols.split(",")}
        names = [listener.partition("://")[0] for listener in listeners]
        more = [f"{name}:PLAINTEXT" for name in names if name.startswith("PLAINTEXT") and name not in known]
        if more:
            self.properties[PROTOCOL_MAP] = ",".join([protocols, *more])

    def _check_replaced(self) -> None:
        """Reject `--listen` in place of listeners that a person has typed too, or that would have had protection."""
        replaced = self.properties.get("listeners", "")
        if "listeners" in self._set:
            raise UsageMistake(f"--listen and --set listeners={printable(replaced)}: pass one of the two")
        protocols = security_protocols(self.properties.get(PROTOCOL_MAP, _PROTOCOLS))
        names = [listener.partition("://")[0].strip() for listener in replaced.split(",")]
        protected = [name for name in names if protocols.get(name.upper(), "PLAINTEXT") != "PLAINTEXT"]
        if protected:
            raise UsageMistake(
                f"--listen would replace the listener {printable(protected[0])} with {protocols[protected[0].upper()]} of "
                f"{self._where('listeners')} by one without protection: remove one of the two"
            )

    def config(self, *, served: bool = True) -> BrokerConfig:
        """Return the configuration.

        Args:
            served: False if no broker will run with it.

        Raises:
            ConfigError: a property does not parse, or no source names a data directory.
        """
        properties = self.properties
        directory = properties.get("log.dirs") or properties.get("log.dir")
        if not directory:
            raise UsageMistake("no data directory (pass --data-dir DIR, or set log.dirs in --config FILE)")
        properties.setdefault("listeners", f"PLAINTEXT://{DEFAULT_LISTEN}")
        made = BrokerConfig.from_properties(properties, served=served, environ=self._environ)
        if self._cluster_id and not os.path.exists(os.path.join(made.log_dirs[0], "meta.properties")):
            properties["cluster.id"] = self._cluster_id
            made = BrokerConfig.from_properties(properties, served=served, environ=self._environ)
        return made

    def log_ignored(self, config: BrokerConfig) -> None:
        """Log what the configuration has no use for: a line for each unknown setting, and one for those without effect."""
        for name in config.unknown:
            logger.warning("%s is ignored: %s", self._where(name), unknown_setting(name))
        if config.without_effect:
            logger.info("These settings have no effect in barnabas: %s", ", ".join(config.without_effect))

    def _where(self, name: str) -> str:
        """Return a property as its source has it: a variable's name, or the name with the file and its line."""
        if name in self._variables:
            return self._variables[name]
        line = None if self._path is None else line_of(self._path, name)
        return printable(name) if line is None else f"{printable(self._path or '')}, line {line}: {printable(name)}"


def unknown_setting(name: str) -> str:
    """Return the words for a name that no broker setting has, with the name that is most like it."""
    return f"there is no setting {printable(name)}{near_setting('broker', name)}"


def _read(path: str) -> dict[str, str]:
    try:
        return read_properties(path)
    except IsADirectoryError:
        raise UsageMistake(f"cannot read {printable(path)}: it is a directory (is it --data-dir?)") from None
    except OSError as error:
        raise UsageMistake(f"cannot read {printable(path)}: {(error.strerror or str(error)).lower()}") from None
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _listener(place: int, address: str) -> str:
    host, separator, port = address.rpartition(":")
    if not separator or parse_port(port) is None:
        raise UsageMistake(
            f"--listen {printable(address)}: must be HOST:PORT or NAME://HOST:PORT, as in {DEFAULT_LISTEN}"
        )
    if "://" in address:
        return address
    return f"PLAINTEXT://{host}:{port}" if place == 0 else f"PLAINTEXT{place + 1}://{host}:{port}"
