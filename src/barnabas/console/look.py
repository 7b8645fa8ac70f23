"""One look at a cluster: what its overview shows. Two looks give rates.

The topics are asked for once, and serve all parts; what is asked for about many partitions or groups goes in bites. A part that the
cluster cannot answer is the error in its place; if no broker answers, the look has nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from barnabas.cli.cluster_nodes import nodes_of
from barnabas.cli.cluster_status import status_of
from barnabas.cli.failure import Failure
from barnabas.cli.output import Found, Table, found_rows
from barnabas.cli.topic_sizes import stored_bytes
from barnabas.cli.txn import behind_in, held_back_at
from barnabas.client.admin import Admin, TopicPartition
from barnabas.client.errors import ClientError
from barnabas.client.partition_descriptions import TopicDescription
from barnabas.console.bites import Bites
from barnabas.console.group_lags import GroupLag, group_lags
from barnabas.protocol.errors import KafkaError
from barnabas.words.byte_sizes import format_bytes

R = TypeVar("R")

Topics = Mapping[str, TopicDescription] | KafkaError | Failure

MOST = 10
"""Topics and groups that an overview shows."""
_GROUPS_OF_A_BITE = 100
"""Each group's offsets are a request of their own."""


class TopicTotals(NamedTuple):
    """A topic's logs, all partitions together.

    Attributes:
        end: the sum of the high watermarks; None if a partition has no leader.
        size_bytes: of the leaders' logs.
    """

    partitions: int
    end: int | None
    size_bytes: int


class Look(NamedTuple):
    """The answers of a cluster.

    Attributes:
        at_s: on a clock that never goes back.
        time_ms: epoch milliseconds.
    """

    at_s: float
    time_ms: int
    health: Found | KafkaError | Failure
    nodes: Found | KafkaError | Failure
    topics: Mapping[str, TopicTotals] | KafkaError | Failure
    groups: Mapping[str, GroupLag] | KafkaError | Failure
    held_back: Found | KafkaError | Failure

    @property
    def silence(self) -> ClientError | None:
        """Why no broker has answered; None if one has."""
        return self.health if isinstance(self.health, ClientError) else None


def look(admin: Admin, at_s: float, time_ms: int, bites: Bites | None = None, topics: Topics | None = None) -> Look:
    """Ask a cluster for everything that its overview shows.

    Args:
        bites: how much one question asks for.
        topics: what `all_topics` has returned a moment ago; None to ask for them.
    """
    bites = bites or Bites()
    topics = all_topics(admin, bites) if topics is None else topics
    if isinstance(topics, ClientError):
        return Look(at_s, time_ms, topics, topics, topics, topics, topics)
    if isinstance(topics, KafkaError | Failure):
        error, groups = topics, _tried(lambda: _groups(admin, bites))
        return Look(at_s, time_ms, error, error, error, groups, error)
    partitions = {
        TopicPartition(name, index): one for name, each in topics.items() for index, one in each.partitions.items()
    }
    health = _tried(lambda: status_of(admin, partitions))
    if isinstance(health, ClientError):
        return Look(at_s, time_ms, health, health, health, health, health)
    nodes = _tried(lambda: nodes_of(admin, partitions.values(), dials_controllers=False))
    places = _tried(lambda: _places(admin, partitions, bites))
    return Look(
        at_s,
        time_ms,
        health,
        nodes,
        places
        if isinstance(places, KafkaError | Failure)
        else _tried(lambda: _totals(admin, topics, places.ends, bites)),
        _tried(lambda: _groups(admin, bites)),
        places
        if isinstance(places, KafkaError | Failure)
        else _tried(lambda: held_back_at(admin, time_ms, places.behind)),
    )


def all_topics(admin: Admin, bites: Bites) -> Topics:
    """Return all topics with their partitions, the first thing that a look asks for; an error in the place of the answer."""
    bites.begin()
    return _tried(lambda: admin.describe_all_topics(bites.size, bites.rest))


def _tried(ask: Callable[[], R]) -> R | KafkaError | Failure:
    try:
        return ask()
    except (KafkaError, Failure) as error:
        return error


class _Places(NamedTuple):
    """Ends of partitions; of those that an open transaction holds back, the last stable offset and the end."""

    ends: dict[TopicPartition, int]
    behind: dict[TopicPartition, tuple[int, int]]


def _places(admin: Admin, partitions: Iterable[TopicPartition], bites: Bites) -> _Places:
    found = _Places({}, {})
    for bite in bites.of(partitions):
        ends, behind = behind_in(admin, bite)
        found.ends.update(ends)
        found.behind.update(behind)
    return found


def _groups(admin: Admin, bites: Bites) -> dict[str, GroupLag]:
    found: dict[str, GroupLag] = {}
    for bite in bites.of((each.group_id for each in admin.list_groups()), _GROUPS_OF_A_BITE):
        found |= group_lags(admin, bite)
    return found


def _totals(
    admin: Admin, topics: Mapping[str, TopicDescription], ends: Mapping[TopicPartition, int], bites: Bites
) -> dict[str, TopicTotals]:
    leaders = {
        TopicPartition(name, index): one.leader
        for name, each in topics.items()
        for index, one in each.partitions.items()
    }
    sizes: Counter[str] = Counter()
    for bite in bites.of(leaders):
        sizes.update(
            {name: each.leaders for name, each in stored_bytes(admin, {at: leaders[at] for at in bite}).items()}
        )
    totals = {}
    for name, each in topics.items():
        known = [ends[at] for at in (TopicPartition(name, index) for index in each.partitions) if at in ends]
        end = sum(known) if len(known) == len(each.partitions) else None
        totals[name] = TopicTotals(len(each.partitions), end, sizes[name])
    return totals


def rate_of(topic: str, now: Look, before: Look | None) -> float | None:
    """Return the records a second that a topic got between two looks; None if that is not known."""
    if before is None or isinstance(now.topics, Exception) or isinstance(before.topics, Exception):
        return None
    seconds = now.at_s - before.at_s
    new, old = now.topics.get(topic), before.topics.get(topic)
    if new is None or old is None or new.end is None or old.end is None or seconds <= 0:
        return None
    # A topic that was deleted and created again starts from offset 0.
    return round(max(0, new.end - old.end) / seconds, 3)


def records_rate(now: Look, before: Look | None) -> float | None:
    """Return the records a second that all topics got between two looks; None if that is not known."""
    if isinstance(now.topics, Exception):
        return None
    known = [each for each in (rate_of(name, now, before) for name in now.topics) if each is not None]
    return round(sum(known), 3) if known else None


def growth_rate(now: Look, before: Look | None) -> float | None:
    """Return the bytes a second by which the leaders' logs grew between two looks; None if that is not known.

    A topic whose logs shrank, because old segments were deleted or compacted, is not counted.
    """
    if before is None or isinstance(now.topics, Exception) or isinstance(before.topics, Exception):
        return None
    seconds = now.at_s - before.at_s
    if seconds <= 0:
        return None
    old = before.topics
    grown = (each.size_bytes - old[name].size_bytes for name, each in now.topics.items() if name in old)
    return round(sum(each for each in grown if each > 0) / seconds, 3)


def rates_found(now: Look, before: Look | None) -> Found | KafkaError | Failure:
    """Return how much the cluster stores, and how many records it gets."""
    if isinstance(now.topics, KafkaError | Failure):
        return now.topics
    rate = records_rate(now, before)
    size = sum(each.size_bytes for each in now.topics.values())
    seconds = None if before is None else round(now.at_s - before.at_s, 1)
    data = {
        "topics": len(now.topics),
        "partitions": sum(each.partitions for each in now.topics.values()),
        "size_bytes": size,
        "records_per_sec": rate,
        "window_s": seconds,
    }
    words = (
        *(data[name] for name in ("topics", "partitions")),
        format_bytes(size),
        None if rate is None else f"{rate:,.1f}",
        None if seconds is None else f"{seconds:g} s",
    )
    return Found(data, [Table(("TOPICS", "PARTITIONS", "SIZE", "RECORDS/S", "MEASURED-OVER"), [words], vertical=True)])


def largest_topics(
    now: Look, before: Look | None, containing: str = "", most: int = MOST
) -> Found | KafkaError | Failure:
    """Return the topics that take most room, the largest first.

    Args:
        containing: a part of their names.
    """
    if isinstance(now.topics, KafkaError | Failure):
        return now.topics
    named = [each for each in now.topics.items() if containing in each[0]]
    largest = sorted(named, key=lambda each: (-each[1].size_bytes, each[0]))[:most]
    data = [
        {
            "name": name,
            "partitions": each.partitions,
            "size_bytes": each.size_bytes,
            "records_per_sec": rate_of(name, now, before),
        }
        for name, each in largest
    ]
    rows = []
    for each in data:
        rate = each["records_per_sec"]
        rows.append(
            (
                each["name"],
                each["partitions"],
                format_bytes(now.topics[str(each["name"])].size_bytes),
                None if rate is None else f"{rate:,.1f}",
            )
        )
    return Found(data, [Table(("NAME", "PARTITIONS", "SIZE", "RECORDS/S"), rows)])


def latest_groups(now: Look, containing: str = "", most: int = MOST) -> Found | KafkaError | Failure:
    """Return the groups that are farthest behind.

    Args:
        containing: a part of their names.
    """
    if isinstance(now.groups, KafkaError | Failure):
        return now.groups
    named = {name: each for name, each in now.groups.items() if containing in name}
    return found_rows(("GROUP", "STATE", "TYPE", "MEMBERS", "TOTAL-LAG"), farthest_behind(named, most))


def farthest_behind(groups: Mapping[str, GroupLag], most: int = MOST) -> list[GroupLag]:
    """Return the groups with the largest lag, the largest first."""
    return sorted(groups.values(), key=lambda each: (-each.total_lag, each.group))[:most]
