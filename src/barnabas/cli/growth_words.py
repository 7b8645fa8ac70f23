"""Ordered growth in words: how far a topic is, and why a group does not have a partition yet."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.cli.failure import Failure
from barnabas.cli.wording import as_typed
from barnabas.client.admin import Admin, GroupDescription, TopicMetadata, TopicPartition
from barnabas.protocol.ordered_growth import SETTING, Generation, Hold, grown_partitions, hold_of


class Held(NamedTuple):
    """A partition that a group may not have yet, and why, for people."""

    topic: str
    partition: int
    waits: str


def growth_of(admin: Admin, topics: Iterable[str]) -> dict[str, tuple[Generation, ...]]:
    """Return the generations of topics that have grown in order.

    Raises:
        Failure: a newer release wrote one.
    """
    try:
        return admin.list_growth(topics)
    except ValueError as error:
        raise Failure(f"{SETTING} of a topic cannot be read by this release: {error}") from None


def growth_words(topic: str, generations: Iterable[Generation]) -> str:
    """Return how far the growth of a topic is."""
    *_, last = generations
    words = f"{last.before} to {last.after} partitions"
    if last.is_sealed:
        return f"{words}, sealed"
    return f"{words}, not sealed: `barnabas topic grow {as_typed(topic)} -p {last.after} --ordered` goes on"


def held_from(admin: Admin, group: GroupDescription) -> list[Held]:
    """Return the partitions that a group waits for."""
    if group.type not in ("classic", "consumer"):
        return []
    assigned = {each for member in group.members for each in member.assignment}
    committed = admin.list_group_offsets(group.group_id)
    growth = growth_of(admin, sorted({each.topic for each in (*assigned, *committed)}))
    found = []
    for name, metadata in (admin.describe_topics(sorted(growth)) if growth else {}).items():
        count = len(metadata.partitions) if isinstance(metadata, TopicMetadata) else 0

        def offset(partition: int, name: str = name) -> int | None:
            at = committed.get(TopicPartition(name, partition))
            return None if at is None else at.offset

        for partition in grown_partitions(growth[name], count):
            why = hold_of(growth[name], partition, offset)
            if why is not None and TopicPartition(name, partition) not in assigned:
                found.append(Held(name, partition, _words(name, why)))
    return found


def _words(topic: str, why: Hold) -> str:
    if why.fence is None:
        return "growth not sealed"
    committed = "nothing" if why.committed is None else why.committed
    return f"waits at the fence of {topic}-{why.parent} (committed {committed} of {why.fence})"
