"""Ordered growth: which new partitions of a topic wait for which old ones, as the topic's setting says.

A key's partition is its hash modulo the number of partitions. When a topic grows to a multiple of its number of partitions, a key stays
where it is, or moves from partition `q % before` to the new partition `q`. So each new partition has one parent. The old records of
its keys are in the parent, below a fence: the parent's end after the last producer had learned the new number.

The topic setting `barnabas.ordered.growth` has one generation for each growth, oldest first, separated by `; `:

    4>12                                            the new partitions may not exist yet
    4>12 since=1764227000000                        they exist; producers may still use the old number
    4>12 since=1764227000000 fences=100,200,0,50    sealed: one fence for each of the four parents

A reader that begins a new partition when it has finished the parent up to the fence sees each key's records in the order of each
producer. The parent may be new itself, in an older generation: then the oldest unfinished fence counts.

A fence of 0 holds no group back: the parent had no records. Words that this release does not know are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

SETTING = "barnabas.ordered.growth"
"""The topic setting. Apache Kafka's brokers reject it with INVALID_CONFIG."""

_SIZES = re.compile(r"(\d{1,9})>(\d{1,9})", re.ASCII)
_FENCES = re.compile(r"\d{1,19}(,\d{1,19})*", re.ASCII)
_SINCE = re.compile(r"\d{1,19}", re.ASCII)


class Generation(NamedTuple):
    """One growth of a topic.

    Attributes:
        before, after: the number of partitions; `after` is a multiple of `before`.
        since_ms: when the new partitions were known to exist, epoch milliseconds; None before that.
        fences: an offset for each partition below `before`; None while producers may use the old number.
    """

    before: int
    after: int
    since_ms: int | None = None
    fences: tuple[int, ...] | None = None

    def parent_of(self, partition: int) -> int | None:
        """Return the partition in which the keys of a new partition were before; None unless this growth made it."""
        return partition % self.before if self.before <= partition < self.after else None

    @property
    def is_sealed(self) -> bool:
        """Whether the fences are set."""
        return self.fences is not None

    def __str__(self) -> str:
        since = "" if self.since_ms is None else f" since={self.since_ms}"
        fences = "" if self.fences is None else f" fences={','.join(map(str, self.fences))}"
        return f"{self.before}>{self.after}{since}{fences}"


class Hold(NamedTuple):
    """Why a group may not have a partition yet.

    Attributes:
        parent: the partition that the group must finish first.
        fence: up to this offset; None while the growth is not sealed.
        committed: the group's offset of the parent; None without one.
    """

    parent: int
    fence: int | None
    committed: int | None


@lru_cache(maxsize=1024)
def read_generations(text: str) -> tuple[Generation, ...]:
    """Return the generations that a topic's setting names, oldest first; none for an empty text.

    Raises:
        ValueError: the text is not valid.
    """
    generations = tuple(_read(part.strip()) for part in text.split(";")) if text.strip() else ()
    for older, newer in pairwise(generations):
        if newer.before < older.after:
            raise ValueError(f"{newer.before}>{newer.after} cannot follow {older.before}>{older.after}")
        if not older.is_sealed:
            raise ValueError(f"{older.before}>{older.after} has no fences, and is not the last")
    return generations


def _read(text: str) -> Generation:
    sizes, *words = text.split() or [""]
    found = _SIZES.fullmatch(sizes)
    if found is None:
        raise ValueError(f"'{sizes}' is not two numbers of partitions, such as 4>12")
    before, after = int(found[1]), int(found[2])
    if before < 1 or after <= before or after % before:
        raise ValueError(f"{after} is not a multiple of {before}")
    values = dict(word.partition("=")[::2] for word in words)
    since, fences = values.get("since"), values.get("fences")
    if since is not None and _SINCE.fullmatch(since) is None:
        raise ValueError(f"since={since} is not a time in milliseconds")
    offsets = None
    if fences is not None:
        offsets = tuple(map(int, fences.split(","))) if _FENCES.fullmatch(fences) else ()
        if len(offsets) != before:
            raise ValueError(f"fences={fences} is not {before} offsets")
        if since is None:
            raise ValueError("fences need since=, too")
    return Generation(before, after, None if since is None else int(since), offsets)


def write_generations(generations: Sequence[Generation]) -> str:
    """Return the text of the setting."""
    return "; ".join(map(str, generations))


def hold_of(generations: Sequence[Generation], partition: int, committed: Callable[[int], int | None]) -> Hold | None:
    """Return the oldest fence that a group has not reached before a partition; None if the group may have the partition.

    Args:
        committed: returns the group's offset of a partition, None without one.
    """
    found = None
    for generation in reversed(generations):
        parent = generation.parent_of(partition)
        if parent is None:
            continue
        fence = None if generation.fences is None else generation.fences[parent]
        if fence != 0:
            offset = committed(parent)
            if fence is None or offset is None or offset < fence:
                found = Hold(parent, fence, offset)
        partition = parent
    return found


def grown_partitions(generations: Sequence[Generation], count: int) -> Iterator[int]:
    """Yield the partitions that ordered growth has made, of a topic with `count` partitions."""
    for generation in generations:
        yield from range(generation.before, min(generation.after, count))


def is_spent(generation: Generation, log_starts: Sequence[int]) -> bool:
    """Return whether no reader can be below a fence any more: retention has deleted the records below every one.

    Args:
        log_starts: the log start offset of each parent.
    """
    return generation.fences is not None and all(
        fence <= start for fence, start in zip(generation.fences, log_starts, strict=True)
    )
