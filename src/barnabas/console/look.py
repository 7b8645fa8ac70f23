"""One look at a cluster: what its overview shows. Two looks give rates.

The parts are asked for one after the other. A part that the cluster cannot answer is the error in its place; if no broker answers, the
look has nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from barnabas.cli.cluster_nodes import nodes_of
from barnabas.cli.cluster_status import status_of
from barnabas.cli.failure import Failure
from barnabas.cli.log_bounds import log_bounds
from barnabas.cli.output import Found, Table, found_rows
from barnabas.cli.topic_sizes import stored_bytes
from barnabas.cli.txn import held_back
from barnabas.client.admin import Admin, TopicPartition
from barnabas.client.errors import ClientError
from barnabas.console.group_lags import GroupLag, group_lags
from barnabas.protocol.errors import KafkaError
from barnabas.words.byte_sizes import format_bytes

R = TypeVar("R")

MOST = 10
"""Topics and groups that an overview shows."""


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


def look(admin: Admin, at_s: float, time_ms: int) -> Look:
    """Ask a cluster for everything that its overview shows."""
    health = _tried(lambda: status_of(admin))
    if isinstance(health, ClientError):
        return Look(at_s, time_ms, health, health, health, health, health)
    return Look(
        at_s,
        time_ms,
        health,
        _tried(lambda: nodes_of(admin)),
        _tried(lambda: _totals(admin)),
        _tried(lambda: group_lags(admin, [each.group_id for each in admin.list_groups()])),
        _tried(lambda: held_back(admin, time_ms)),
    )


def _tried(ask: Callable[[], R]) -> R | KafkaError | Failure:
    try:
        return ask()
    except (KafkaError, Failure) as error:
        return error


def _totals(admin: Admin) -> dict[str, TopicTotals]:
    topics = admin.list_topics(internal=True)
    leaders = {TopicPartition(each.name, one.partition): one.leader for each in topics for one in each.partitions}
    stored = stored_bytes(admin, leaders)
    bounds = log_bounds(admin, leaders)
    totals = {}
    for topic in topics:
        ends = [bounds[TopicPartition(topic.name, one.partition)][1] for one in topic.partitions]
        known = [each for each in ends if each is not None]
        size = stored[topic.name].leaders if topic.name in stored else 0
        totals[topic.name] = TopicTotals(len(ends), sum(known) if len(known) == len(ends) else None, size)
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
