"""The file of several clusters, in TOML.

    [clusters.production]
    bootstrap-server = "kafka1:9092,kafka2:9092"
    command-config = "production.properties"

    [clusters.local]
    bootstrap-server = "localhost:9092"
    timeout-ms = 2000

`command-config` is a client's properties file, as the commands have it; a relative path begins at the folder of the TOML file. The clusters
are shown in the order of the file. The console reads such a file, and the profiles of the command line are one.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable

_KINDS: dict[str, type] = {"bootstrap-server": str, "command-config": str, "timeout-ms": int}


class BadClusterFile(ValueError):
    """The file cannot be used; the text is one line that names it."""


class ClusterEntry(NamedTuple):
    """A cluster of the file; None is a command's default."""

    name: str
    bootstrap: str | None
    command_config: Path | None
    timeout_ms: int | None


def read_cluster_file(path: Path) -> list[ClusterEntry]:
    """Return the clusters in a file.

    Raises:
        BadClusterFile: it cannot be read, is not TOML, or has something that is not a cluster's.
    """
    document = read_document(path)
    found = clusters_of(document, path)
    if not found:
        raise BadClusterFile(f"{printable(str(path))}: it has no cluster; write [clusters.NAME] with bootstrap-server")
    return found


def read_document(path: Path) -> dict[str, Any]:
    """Return the TOML document in a file.

    Raises:
        BadClusterFile: it cannot be read, or is not TOML.
    """
    shown = printable(str(path))
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadClusterFile(f"{shown}: {(error.strerror or str(error)).lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadClusterFile(f"{shown}: it is not TOML: {printable(str(error))}") from None


def clusters_of(document: dict[str, Any], path: Path) -> list[ClusterEntry]:
    """Return the clusters of a document; a relative path in it begins at the folder of `path`.

    Raises:
        BadClusterFile: the document has something that is not a cluster's.
    """
    shown = printable(str(path))
    clusters = document.pop("clusters", {})
    if document:
        raise BadClusterFile(f"{shown}: unknown table {printable(next(iter(document)))}; clusters are [clusters.NAME]")
    if not isinstance(clusters, dict):
        raise BadClusterFile(f"{shown}: it has no cluster; write [clusters.NAME] with bootstrap-server")
    return [_entry(shown, path.parent, name, found) for name, found in clusters.items()]


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
    return ClusterEntry(
        name, found.get("bootstrap-server"), None if config is None else folder / config, found.get("timeout-ms")
    )
