"""Which files of a table a compaction puts together: small ones of one partition, until they have the wanted size.

A file joins smaller ones only if they come to half of it. So a compaction every few minutes copies a row some seven times, not each time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

_SMALL = 0.75
"""A file with less than this part of the wanted size is small."""
_HALF = 2

File = TypeVar("File")


class SmallFile(NamedTuple, Generic[File]):
    """A file of the table; those of one partition may be put together."""

    partition: Hashable
    size: int
    path: str
    file: File


def is_small(size: int, target_bytes: int) -> bool:
    """Return whether a file may be put together with others."""
    return size < _SMALL * target_bytes


def groups(files: Iterable[SmallFile[File]], target_bytes: int) -> Iterator[list[File]]:
    """Yield the files of each new file; they are two or more."""
    by_partition: dict[Hashable, list[SmallFile[File]]] = {}
    for each in files:
        by_partition.setdefault(each.partition, []).append(each)
    for found in by_partition.values():
        group: list[File] = []
        size = 0
        for each in sorted(found, key=lambda each: (each.size, each.path)):
            if group and (size + each.size > target_bytes or each.size > _HALF * size):
                if len(group) > 1:
                    yield group
                group, size = [], 0
            group.append(each.file)
            size += each.size
        if len(group) > 1:
            yield group
