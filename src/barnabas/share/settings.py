"""ShareSettings: the settings of a share group, typed, as a partition's leader needs them.

Sources: KIP-932; Kafka's `ShareGroupConfigProvider`, `ShareGroupDLQManager`, `ShareGroupAutoOffsetResetStrategy`.
"""

from __future__ import annotations

import re
from typing import Protocol

from barnabas.replication.fetch_reader import READ_UNCOMMITTED
from barnabas.replication.offset_lookup import READ_COMMITTED
from barnabas.replication.partition import Partition
from barnabas.share.window import Limits

__all__ = ["DeadLetters", "GroupSettings", "ShareSettings"]

_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+(?:\.\d{1,9})?)S)?)?",
    re.IGNORECASE,
)
_BY_DURATION = "by_duration:"


class DeadLetters(Protocol):
    """Writes records that could not be delivered to dead letter topics; `dead_letters.DeadLetterWriter` is one."""

    def is_enabled(self, group_id: str) -> bool:
        """Return whether the group names such a topic and the cluster allows it."""
        ...

    async def write(
        self, group_id: str, source: Partition, first: int, last: int, delivery_count: int, *, rejected: bool
    ) -> None:
        """Write the records of a range if possible; never raises."""
        ...


class GroupSettings(Protocol):
    """The settings in force for a group, by name."""

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
        """Return how long a member holds a record."""
        return self._groups.int_value(group_id, "share.record.lock.duration.ms")

    def limits(self, group_id: str, now: float) -> Limits:
        """Return the settings for acquiring and acknowledging; `now` is loop time."""
        groups = self._groups
        return Limits(
            max_delivery_count=groups.int_value(group_id, "share.delivery.count.limit"),
            max_record_locks=groups.int_value(group_id, "share.partition.max.record.locks"),
            lock_until=now + self.lock_duration_ms(group_id) / 1000,
            renew_enabled=bool(groups.value(group_id, "share.renew.acknowledge.enable")),
            dead_letters=self.dead_letters is not None and self.dead_letters.is_enabled(group_id),
        )

    def isolation_level(self, group_id: str) -> int:
        """Return 0 for read_uncommitted, 1 for read_committed."""
        level = self._groups.value(group_id, "share.isolation.level")
        return READ_COMMITTED if level == "read_committed" else READ_UNCOMMITTED

    def reset_timestamp(self, group_id: str, now_ms: int) -> int:
        """Return where a new group starts, as a timestamp of ListOffsets: -1 latest, -2 earliest, or a time."""
        strategy = str(self._groups.value(group_id, "share.auto.offset.reset")).strip()
        if strategy.lower().startswith(_BY_DURATION):
            return now_ms - duration_ms(strategy[len(_BY_DURATION) :])
        return -2 if strategy.lower() == "earliest" else -1


def duration_ms(text: str) -> int:
    """Return the milliseconds of an ISO 8601 duration of days, hours, minutes and seconds (Java's `Duration.parse`)."""
    match = _DURATION.fullmatch(text.strip())
    assert match is not None, f"{text!r} was checked when it was set"
    days, hours, minutes, seconds = (float(match[name] or 0) for name in ("days", "hours", "minutes", "seconds"))
    total = round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
    return -total if match["sign"] == "-" else total
