"""Long requests in pieces: a turn of the loop handles at most one piece.

A request may name 100,000 partitions. Its topics are cut into pieces that are handled one by one, with a turn of the loop after each; a
topic with more partitions than a piece holds is cut too, and `extend_topics` puts it together again in the response.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T")

PIECE = 1_000
"""Partitions, or other elements, of a piece."""


def is_one_piece(topics: list[Any], field: str = "partitions", size: int | None = None) -> bool:
    """Return whether a request has so few partitions that they are one piece."""
    if size is None:
        size = PIECE
    if len(topics) == 1:
        return len(getattr(topics[0], field)) <= size
    return len(topics) <= size and len(topics) + sum(map(len, map(attrgetter(field), topics))) <= size


def pieces(topics: list[T], field: str = "partitions", size: int | None = None) -> Iterator[list[T]]:
    """Cut the topics of a request into pieces; a request of few partitions is one piece.

    Args:
        field: holds a topic's partitions.
        size: how many partitions a piece may have; `PIECE` by default.
    """
    return iter((topics,)) if is_one_piece(topics, field, size) else _cut(topics, field, size or PIECE)


def _cut(topics: list[T], field: str, size: int) -> Iterator[list[T]]:
    piece: list[T] = []
    room = size
    for topic in topics:
        partitions = getattr(topic, field)
        while len(partitions) > room:
            head = copy.copy(topic)
            setattr(head, field, partitions[:room])
            yield [*piece, head]
            partitions = partitions[room:]
            topic = copy.copy(topic)
            setattr(topic, field, partitions)
            piece, room = [], size
        piece.append(topic)
        room -= max(len(partitions), 1)
        if room <= 0:
            yield piece
            piece, room = [], size
    if piece:
        yield piece


def extend_topics(topics: list[Any], more: list[Any], field: str = "partitions") -> None:
    """Add the topics of the next piece; the first may go on with the last topic.

    Args:
        field: holds a topic's partitions.
    """
    if topics and more and _key(topics[-1]) == _key(more[0]):
        getattr(topics[-1], field).extend(getattr(more[0], field))
        more = more[1:]
    topics += more


def _key(topic: Any) -> tuple[str, bytes | None]:
    return topic.name, getattr(topic, "topic_id", None)
