"""What a share group may set, and who is asked beyond this broker's logs: the seams of share partitions. Data plane.

    GroupSettings   the group's settings, by name, as they are now
    Persister       keeps a share partition's state; whoever coordinates it may be another broker
    DeadLetters     takes the records that could not be delivered (KIP-1191)

Sources: KIP-932; Kafka's `Persister`, `ShareGroupConfigProvider`, `ShareGroupDLQManager`, `ShareGroupAutoOffsetResetStrategy`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from barnabas.replication.fetch_reader import READ_COMMITTED, READ_UNCOMMITTED
from barnabas.replication.partition import Partition
from barnabas.share.window import Limits

__all__ = ["DeadLetters", "GroupSettings", "PersistedState", "Persister", "ShareSettings"]

_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE,
)
_BY_DURATION = "by_duration:"
StateRange = tuple[int, int, int, int]
"""First offset, last offset, delivery state, delivery count."""


class PersistedState(NamedTuple):
    """A share partition as it was written down; start offset -1: the group has not begun."""

    state_epoch: int
    start_offset: int
    batches: Sequence[StateRange]


class Persister(Protocol):
    """Keeps states. Both calls fail with a KafkaError that says whether the leader is still the leader."""

    def read_state(
        self, group_id: str, topic_id: bytes, partition: int, leader_epoch: int
    ) -> asyncio.Future[PersistedState]: ...

    def write_state(
        self,
        group_id: str,
        topic_id: bytes,
        partition: int,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateRange],
    ) -> asyncio.Future[None]: ...


class DeadLetters(Protocol):
    """Writes to dead letter topics."""

    def is_enabled(self, group_id: str) -> bool:
        """Whether the group names such a topic and the cluster allows it."""
        ...

    def write(
        self, group_id: str, source: Partition, first: int, last: int, delivery_count: int, *, rejected: bool
    ) -> asyncio.Future[None]:
        """Write the records of a range; the future is done when all is tried, it never fails."""
        ...


class GroupSettings(Protocol):
    """A group's settings in force, typed."""

    def value(self, group_id: str, name: str) -> object: ...

    def int_value(self, group_id: str, name: str) -> int: ...


class ShareSettings:
    """The settings of share groups that partition leaders need."""

    def __init__(self, groups: GroupSettings, dead_letters: DeadLetters | None = None) -> None:
        self._groups = groups
        self.dead_letters = dead_letters

    def __repr__(self) -> str:
        return f"<ShareSettings {self._groups!r}>"

    def lock_duration_ms(self, group_id: str) -> int:
        """How long a member holds a record."""
        return self._groups.int_value(group_id, "share.record.lock.duration.ms")

    def limits(self, group_id: str, now: float) -> Limits:
        """All that acquiring and acknowledging need; `now` is loop time."""
        groups = self._groups
        return Limits(
            max_delivery_count=groups.int_value(group_id, "share.delivery.count.limit"),
            max_record_locks=groups.int_value(group_id, "share.partition.max.record.locks"),
            lock_until=now + self.lock_duration_ms(group_id) / 1000,
            renew_enabled=bool(groups.value(group_id, "share.renew.acknowledge.enable")),
            dead_letters=self.dead_letters is not None and self.dead_letters.is_enabled(group_id),
        )

    def isolation_level(self, group_id: str) -> int:
        """0, read_uncommitted, or 1, read_committed."""
        level = self._groups.value(group_id, "share.isolation.level")
        return READ_COMMITTED if level == "read_committed" else READ_UNCOMMITTED

    def reset_timestamp(self, group_id: str, now_ms: int) -> int:
        """Where a new group begins, as a timestamp of ListOffsets: -1 latest, -2 earliest, or a time."""
        strategy = str(self._groups.value(group_id, "share.auto.offset.reset")).strip()
        if strategy.lower().startswith(_BY_DURATION):
            return now_ms - duration_ms(strategy[len(_BY_DURATION) :])
        return -2 if strategy.lower() == "earliest" else -1


def duration_ms(text: str) -> int:
    """An ISO 8601 duration of days, hours, minutes and seconds (Java's `Duration.parse`), in milliseconds."""
    match = _DURATION.fullmatch(text.strip())
    assert match is not None, f"{text!r} was checked when it was set"
    days, hours, minutes, seconds = (float(match[name] or 0) for name in ("days", "hours", "minutes", "seconds"))
    total = round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
    return -total if match["sign"] == "-" else total
