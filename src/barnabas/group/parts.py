"""Long requests in parts: an operation of the coordinator is one turn of the loop, so a long request is several operations.

A request may name 100,000 partitions, but an operation reads the state of its group and returns records without a wait in between, so
that nothing else changes the group meanwhile. Each part has as many elements as a turn has time for. A topic with more partitions is
cut too, and `extend_topics` puts it together again in the response.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator
from typing import Any, TypeVar

from barnabas.turns import ELEMENT, TURN, pace

__all__ = ["extend_topics", "is_one_part", "parts", "parts_of"]

T = TypeVar("T")


def is_one_part(topics: list[Any], field: str = "partitions") -> bool:
    """Return whether a request has so few partitions that they are one part."""
    return _room(topics, field) >= 0


def _room(topics: list[Any], field: str) -> int:
    """Return how many more partitions would be in the same part; below 0 if there are too many for one."""
    room = TURN // ELEMENT - len(topics)
    for topic in topics:
        room -= len(getattr(topic, field))
        if room < 0:
            break
    return room


async def parts(topics: list[T], field: str = "partitions") -> AsyncIterator[list[T]]:
    """Cut the topics of a request into parts, and wait for a turn for each; a request of few partitions is one part.

    Args:
        field: holds a topic's partitions.
    """
    room = _room(topics, field)
    if room >= 0:
        await pace(TURN - ELEMENT * room)
        yield topics
        return
    for part in _cut(topics, field, TURN // ELEMENT):
        await pace(TURN)
        yield part


async def parts_of(items: list[T]) -> AsyncIterator[list[T]]:
    """As `parts`, for elements without others in them."""
    size = TURN // ELEMENT
    for start in range(0, max(len(items), 1), size):
        part = items[start : start + size]
        await pace(ELEMENT * len(part))
        yield part


def _cut(topics: list[T], field: str, size: int) -> Iterator[list[T]]:
    part: list[T] = []
    room = size
    for topic in topics:
        partitions = getattr(topic, field)
        while len(partitions) > room:
            head = copy.copy(topic)
            setattr(head, field, partitions[:room])
            yield [*part, head]
            partitions = partitions[room:]
            topic = copy.copy(topic)
            setattr(topic, field, partitions)
            part, room = [], size
        part.append(topic)
        room -= max(len(partitions), 1)
        if room <= 0:
            yield part
            part, room = [], size
    if part:
        yield part


def extend_topics(topics: list[Any], more: list[Any], field: str = "partitions") -> None:
    """Add the topics of the next part; the first may go on with the last topic.

    Args:
        field: holds a topic's partitions.
    """
    if topics and more and _key(topics[-1]) == _key(more[0]):
        getattr(topics[-1], field).extend(getattr(more[0], field))
        more = more[1:]
    topics += more


def _key(topic: Any) -> tuple[str, bytes | None]:
    return topic.name, getattr(topic, "topic_id", None)
