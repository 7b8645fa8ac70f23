"""A data directory of a node of Apache Kafka on this machine, as `barnabas adopt check` reads it: nothing is locked or changed.

The formats of records are those of the first batch of each segment: Apache Kafka before 0.11 wrote v0 and v1, and later releases kept
such segments as they were.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from barnabas.log import log_files, meta_properties
from barnabas.log.disk import OsDisk
from barnabas.log.meta_properties import InvalidMetaProperties, MetaProperties
from barnabas.records.record_batch import MAGIC, PREFIX_BYTES, length_and_magic

__all__ = ["GivenDirectory", "read_directory"]

_SEGMENT = ".log"


@dataclass(frozen=True)
class GivenDirectory:
    """A directory that a file of settings names.

    Attributes:
        is_here: whether it is on this machine; otherwise nothing else is known.
        meta: its identity; None if it has none.
        unreadable: why it, or a part of it, could not be read; empty if it could.
        segments: how many segments were looked at.
        old_segments: paths of those whose records have format v0 or v1.
        free_bytes, total_bytes: of its file system.
    """

    path: str
    is_here: bool = True
    meta: MetaProperties | None = None
    unreadable: str = ""
    segments: int = 0
    old_segments: tuple[str, ...] = ()
    free_bytes: int = 0
    total_bytes: int = 0


def read_directory(path: str) -> GivenDirectory:
    """Return a directory as it is now."""
    if not os.path.isdir(path):
        return GivenDirectory(path, is_here=False)
    meta, unreadable, magics = None, "", {}
    usage = shutil.disk_usage(path)
    try:
        meta = meta_properties.read(OsDisk(), path)
        magics = dict(_magics(Path(path)))
    except (InvalidMetaProperties, OSError) as error:
        unreadable = getattr(error, "strerror", None) or str(error)
    old = tuple(segment for segment, magic in magics.items() if magic < MAGIC)
    return GivenDirectory(path, True, meta, unreadable, len(magics), old, usage.free, usage.total)


def _magics(root: Path) -> Iterator[tuple[str, int]]:
    """Yield the format of the first batch of each segment that has one."""
    for partition in sorted(root.iterdir()):
        if log_files.parse_partition_dir_name(partition.name) is None or not partition.is_dir():
            continue
        for segment in sorted(partition.glob(f"*{_SEGMENT}")):
            try:
                with segment.open("rb") as file:
                    begin = file.read(PREFIX_BYTES)
            except FileNotFoundError:
                continue  # The running node has deleted it meanwhile.
            # A segment that was made in advance has zeros.
            if len(begin) == PREFIX_BYTES and any(begin[8:12]):
                yield str(segment), length_and_magic(begin)[1]
