"""The file of `barnabas topic apply`: what topics should be, in TOML.

    [defaults]
    partitions = 6
    replication-factor = 3

    [defaults.configs]
    min.insync.replicas = 2

    [topics.orders]
    partitions = 12

    [topics.orders.configs]
    cleanup.policy = ["compact", "delete"]
    retention.ms = 604800000

    [topics."orders.dlq"]
    replicas = [[1, 2, 3], [2, 3, 1]]

A topic takes from `defaults` what it does not say itself, each setting alone. `replicas` names the brokers of each partition, the
preferred leader first, and stands instead of `partitions` and `replication-factor`. What is said nowhere is the cluster's: a new topic
gets the brokers' default, and one that exists keeps what it has.
TOML reads `retention.ms` as a table within a table, so the names of settings are put together again: quotes make no difference.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable

_COUNTS = ("partitions", "replication-factor")
_KEYS = (*_COUNTS, "replicas", "configs")
_DEFAULTS = (*_COUNTS, "configs")
_MOST = {"partitions": 2**31 - 1, "replication-factor": 2**15 - 1}
_KEPT_BY = {
    "barnabas.ordered.growth": "`barnabas topic grow --ordered`",
    "leader.replication.throttled.replicas": "`barnabas cluster throttle`",
    "follower.replication.throttled.replicas": "`barnabas cluster throttle`",
}
KEPT = frozenset(_KEPT_BY)
"""Settings of topics that a file neither sets nor takes back: commands keep their own state in them."""


class BadTopicFile(ValueError):
    """The file cannot be used; the text is one line that names it, and the line if one can be found."""


class WantedTopic(NamedTuple):
    """A topic of the file, with what it takes from the defaults.

    Attributes:
        partitions: None if the file does not say.
        replication_factor: None if the file does not say.
        replicas: the brokers of each partition, the preferred leader first; None if the file does not name them.
        configs: every setting that the topic has of its own, as text.
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    replicas: tuple[tuple[int, ...], ...] | None = None
    configs: Mapping[str, str] = {}


def read_wanted_topics(path: Path) -> list[WantedTopic]:
    """Return the topics of a file, in its order.

    Raises:
        BadTopicFile: it cannot be read, is not TOML, or says something that is not a topic's.
    """
    shown = printable(str(path))
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        raise BadTopicFile(f"{shown}: {(error.strerror or str(error)).lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadTopicFile(f"{shown}: it is not TOML: {printable(str(error))}") from None
    return _Reader(shown, text.splitlines()).topics(document)


class _Reader:
    def __init__(self, shown: str, lines: list[str]) -> None:
        self._shown = shown
        self._lines = lines

    def topics(self, document: dict[str, Any]) -> list[WantedTopic]:
        for key in document:
            if key not in ("defaults", "topics"):
                meant = did_you_mean(key, ("defaults", "topics"))
                wrong = f"unknown table {printable(key)}{meant}"
                raise self._wrong((), key, f"{wrong}; a file has [defaults] and [topics.NAME]")
        found = document.get("topics")
        if not isinstance(found, dict) or not found:
            raise BadTopicFile(f"{self._shown}: it names no topic; write [topics.NAME]")
        defaults = self._section(("defaults",), document.get("defaults", {}), _DEFAULTS)
        return [self._topic(name, each, defaults) for name, each in found.items()]

    def _topic(self, name: str, found: Any, defaults: dict[str, Any]) -> WantedTopic:
        own = self._section(("topics", name), found, _KEYS)
        configs = {**defaults.get("configs", {}), **own.get("configs", {})}
        if "replicas" in own:
            for key in _COUNTS:
                if key in own:
                    raise self._wrong(("topics", name), key, f"{key} contradicts replicas: leave one of them out")
            return WantedTopic(name, replicas=own["replicas"], configs=configs)
        both = {**defaults, **own}
        return WantedTopic(name, both.get("partitions"), both.get("replication-factor"), None, configs)

    def _section(self, where: tuple[str, ...], found: Any, keys: tuple[str, ...]) -> dict[str, Any]:
        """Return what a section says, each value checked."""
        if not isinstance(found, dict):
            raise self._wrong(where[:-1], where[-1], f"write [{'.'.join(map(_as_key, where))}] with {', '.join(keys)}")
        said: dict[str, Any] = {}
        for key, value in found.items():
            if key not in keys:
                raise self._wrong(where, key, self._unknown(where, key, value, keys))
            if key in _COUNTS:
                if type(value) is not int or not 1 <= value <= _MOST[key]:
                    raise self._wrong(where, key, f"{key} must be a number, at least 1")
                said[key] = value
            elif key == "replicas":
                said[key] = self._replicas(where, value)
            else:
                said[key] = self._configs(where, value)
        return said

    def _unknown(self, where: tuple[str, ...], key: str, value: Any, keys: tuple[str, ...]) -> str:
        wrong = f"unknown key {printable(key)}"
        meant = did_you_mean(key, keys)
        if isinstance(value, dict) and where[0] == "topics" and not meant:
            whole = _as_key(f"{where[1]}.{key}")
            return f"{wrong}; a name with a dot stands in quotes: [topics.{whole}]"
        return wrong + (meant or f"; there are {', '.join(keys)}, and settings stand under configs")

    def _replicas(self, where: tuple[str, ...], found: Any) -> tuple[tuple[int, ...], ...]:
        if not isinstance(found, list) or not found or not all(isinstance(each, list) and each for each in found):
            raise self._wrong(where, "replicas", "replicas must list the brokers of each partition: [[1, 2], [2, 3]]")
        for partition, brokers in enumerate(found):
            if not all(type(each) is int and each >= 0 for each in brokers):
                raise self._wrong(where, "replicas", f"replicas of partition {partition} must be ids of brokers")
            if len(set(brokers)) < len(brokers):
                raise self._wrong(where, "replicas", f"replicas of partition {partition} name a broker twice")
            if len(brokers) != len(found[0]):
                wrong = f"partition {partition} has another number of replicas than partition 0"
                raise self._wrong(where, "replicas", wrong)
        return tuple(tuple(each) for each in found)

    def _configs(self, where: tuple[str, ...], found: Any) -> dict[str, str]:
        if not isinstance(found, dict):
            raise self._wrong(where, "configs", f"write [{'.'.join(map(_as_key, where))}.configs] with settings")
        configs: dict[str, str] = {}
        for name, value in _flat(found):
            if name in configs:
                raise self._wrong(where, name, f"{printable(name)} stands there twice, with quotes and without")
            if name in _KEPT_BY:
                raise self._wrong(where, name, f"{name} is not for a file: {_KEPT_BY[name]} keeps its state there")
            text = _text_of(value)
            if text is None:
                wrong = f"{printable(name)} must be a text, a number, true or false, or a list of texts"
                raise self._wrong(where, name, wrong)
            configs[name] = text
        return configs

    def _wrong(self, where: tuple[str, ...], key: str, wrong: str) -> BadTopicFile:
        line = self._line_of(where, key)
        at = self._shown if line is None else f"{self._shown}, line {line}"
        section = (
            "defaults: " if where == ("defaults",) else f"topic {printable(where[1])}: " if len(where) == 2 else ""
        )
        return BadTopicFile(f"{at}: {section}{wrong}")

    def _line_of(self, where: tuple[str, ...], key: str) -> int | None:
        """Return the line where a key stands in its section; None if the file has another form than one table a topic."""
        header = tuple(where)
        inside = not header
        for number, line in enumerate(self._lines, start=1):
            table = _table_named(line)
            if table is not None:
                if table[: len(header) + 1] == (*header, key):
                    return number
                inside = table[: len(header)] == header
            elif inside and _key_named(line) == key:
                return number
        return None


def _table_named(line: str) -> tuple[str, ...] | None:
    """Return the names of a line `[a.b]`; None of any other line."""
    found = re.match(r"\s*\[([^\[\]]+)\]\s*(#.*)?$", line)
    if found is None:
        return None
    try:
        names: list[str] = []
        document: Any = tomllib.loads(line)
        while document:
            ((name, document),) = document.items()
            names.append(name)
    except tomllib.TOMLDecodeError:
        return None
    return tuple(names)


def _key_named(line: str) -> str | None:
    """Return the key of a line `key = value`, its parts joined by dots."""
    name, equals, _ = line.partition("=")
    try:
        return next((key for key, _ in _flat(tomllib.loads(f"{name}= 0"))), None) if equals else None
    except tomllib.TOMLDecodeError:
        return None


def _flat(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the values of a table and of those within it, each with its dotted name."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{rest}", each) for rest, each in _flat(value))
        else:
            yield name, value


def _text_of(value: Any) -> str | None:
    """Return a setting's value as brokers have it; None if it cannot be one."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list) and all(isinstance(each, str | int) and not isinstance(each, bool) for each in value):
        return ",".join(map(str, value))
    return None


def _as_key(name: str) -> str:
    """Return a name as a key of TOML."""
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else f'"{printable(name)}"'
