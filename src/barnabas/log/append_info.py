"""The result of an append: the offsets that a produce response carries. Source: Kafka's `LogAppendInfo`."""

from __future__ import annotations

LOG_APPEND_TIME_OFF = -1


class AppendInfo:
    """The result of an append.

    Attributes:
        base_offset, last_offset: of a duplicate, those of the first append.
        log_append_time_ms: -1 with CreateTime.
        log_start_offset: set by `PartitionLog`, -1 before.
    """

    __slots__ = (
        "base_offset",
        "is_duplicate",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
        "max_timestamp",
    )

    def __init__(
        self,
        base_offset: int,
        last_offset: int,
        max_timestamp: int,
        log_append_time_ms: int = LOG_APPEND_TIME_OFF,
        is_duplicate: bool = False,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_start_offset = -1
        self.max_timestamp = max_timestamp
        self.log_append_time_ms = log_append_time_ms
        self.is_duplicate = is_duplicate

    def __repr__(self) -> str:
        return f"<AppendInfo {self.base_offset}..{self.last_offset}{' duplicate' if self.is_duplicate else ''}>"
