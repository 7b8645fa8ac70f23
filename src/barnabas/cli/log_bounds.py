"""Where the logs of partitions begin and end."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.client.admin import EARLIEST, LATEST, Admin, OffsetAndTimestamp, TopicPartition

Bounds = tuple[int | None, int | None]


def log_bounds(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
    """Return each partition's log start offset and high watermark; None if it is gone or its leader does not answer."""
    wanted = list(partitions)
    first, last = (admin.list_offsets(dict.fromkeys(wanted, position)) for position in (EARLIEST, LATEST))

    def offset(outcome: object) -> int | None:
        return outcome.offset if isinstance(outcome, OffsetAndTimestamp) else None

    return {each: (offset(first[each]), offset(last[each])) for each in wanted}
