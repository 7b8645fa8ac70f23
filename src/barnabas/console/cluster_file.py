"""The file of several clusters, in TOML.

    [clusters.production]
    bootstrap-server = "kafka1:9092,kafka2:9092"
    command-config = "production.properties"

    [clusters.local]
    bootstrap-server = "localhost:9092"
    timeout-ms = 2000
    schemas = "http://localhost:8081"

    [[masks]]
    topics = ["orders", "payments-*"]
    fields = ["value.card.number", "key", "headers.token"]

`command-config` is a client's properties file, as the commands have it; a relative path begins at the folder of the TOML file. `schemas`
is a schema registry's address, or a folder of schemas. The clusters are shown in the order of the file.
`masks` are of all clusters: `decoding.masks`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.decoding.masks import MaskRule, Masks
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable

_KINDS: dict[str, type] = {"bootstrap-server": str, "command-config": str, "timeout-ms": int, "schemas": str}


class BadClusterFile(ValueError):
    """The file cannot be used; the text is one line that names it."""


class ClusterEntry(NamedTuple):
    """A cluster of the file; None is a command's default."""

    name: str
    bootstrap: str | None
    command_config: Path | None
    timeout_ms: int | None
    schemas: str | None = None
    masks: tuple[MaskRule, ...] = ()


def read_cluster_file(path: Path) -> list[ClusterEntry]:
    """Return the clusters in a file.

    Raises:
        BadClusterFile: it cannot be read, is not TOML, or has something that is not a cluster's.
    """
    shown = printable(str(path))
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadClusterFile(f"{shown}: {(error.strerror or str(error)).lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadClusterFile(f"{shown}: it is not TOML: {printable(str(error))}") from None
    clusters = document.pop("clusters", {})
    masks = _masks(shown, document.pop("masks", []))
    if document:
        raise BadClusterFile(
            f"{shown}: unknown table {printable(next(iter(document)))}; clusters are [clusters.NAME], masks [[masks]]"
        )
    if not isinstance(clusters, dict) or not clusters:
        raise BadClusterFile(f"{shown}: it has no cluster; write [clusters.NAME] with bootstrap-server")
    return [_entry(shown, path.parent, name, found)._replace(masks=masks) for name, found in clusters.items()]


def _masks(shown: str, found: Any) -> tuple[MaskRule, ...]:
    if not isinstance(found, list):
        raise BadClusterFile(f"{shown}: write [[masks]] with topics and fields")
    rules = tuple(_mask(f"{shown}: mask {number}", each) for number, each in enumerate(found, 1))
    try:
        Masks(rules)
    except ValueError as error:
        raise BadClusterFile(f"{shown}: {printable(str(error))}") from None
    return rules


def _mask(where: str, found: Any) -> MaskRule:
    if not isinstance(found, dict):
        raise BadClusterFile(f"{where}: write [[masks]] with topics and fields")
    for key in found:
        if key not in MaskRule._fields:
            raise BadClusterFile(f"{where}: unknown setting {printable(key)}{did_you_mean(key, MaskRule._fields)}")
    for key in MaskRule._fields:
        texts = found.get(key)
        # A rule that hides nothing by an oversight would show what it is there for.
        if not isinstance(texts, list) or not texts or not all(isinstance(each, str) and each for each in texts):
            raise BadClusterFile(f"{where}: {key} must be a list of texts, and not empty")
    return MaskRule(tuple(found["topics"]), tuple(found["fields"]))


def _entry(shown: str, folder: Path, name: str, found: Any) -> ClusterEntry:
    where = f"{shown}: cluster {printable(name)}"
    if not name or not isinstance(found, dict):
        raise BadClusterFile(f"{where}: write [clusters.NAME] with bootstrap-server")
    for key, value in found.items():
        if key not in _KINDS:
            raise BadClusterFile(f"{where}: unknown setting {printable(key)}{did_you_mean(key, _KINDS)}")
        if type(value) is not _KINDS[key]:
            kind = "a number" if _KINDS[key] is int else "a text"
            raise BadClusterFile(f"{where}: {key} must be {kind}")
    if found.get("timeout-ms", 1) < 1:
        raise BadClusterFile(f"{where}: timeout-ms must be at least 1")
    config = found.get("command-config")
    schemas = found.get("schemas")
    if schemas is not None and not schemas.startswith(("http://", "https://")):
        schemas = str(folder / schemas)
    return ClusterEntry(
        name,
        found.get("bootstrap-server"),
        None if config is None else folder / config,
        found.get("timeout-ms"),
        schemas,
    )
