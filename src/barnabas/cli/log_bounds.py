"""Where the logs of partitions begin and end, and the offsets of points in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.cli.failure import Failure
from barnabas.client.admin import EARLIEST, LATEST, Admin, OffsetAndTimestamp, TopicPartition, result
from barnabas.client.log_points import Anchor, Point
from barnabas.client.offsets import READ_UNCOMMITTED

Bounds = tuple[int | None, int | None]


def log_bounds(
    admin: Admin, partitions: Iterable[TopicPartition], isolation: int = READ_UNCOMMITTED
) -> dict[TopicPartition, Bounds]:
    """Return each partition's log start offset and high watermark; None if it is gone or its leader does not answer.

    Args:
        isolation: READ_COMMITTED returns the last stable offset in place of the high watermark.
    """
    wanted = list(partitions)
    first = admin.list_offsets(dict.fromkeys(wanted, EARLIEST))
    last = admin.list_offsets(dict.fromkeys(wanted, LATEST), isolation_level=isolation)

    def offset(outcome: object) -> int | None:
        return outcome.offset if isinstance(outcome, OffsetAndTimestamp) else None

    return {each: (offset(first[each]), offset(last[each])) for each in wanted}


def offsets_of(admin: Admin, point: Point, bounds: Mapping[TopicPartition, Bounds]) -> dict[TopicPartition, int]:
    """Return the offset of a point in each partition; an exact one as it is.

    Raises:
        Failure: a partition has no leader.
        KafkaError: a leader does not answer.
    """
    times: dict[TopicPartition, int] = {}
    if point.anchor is Anchor.TIME:
        found = admin.list_offsets(dict.fromkeys(bounds, point.number))
        # A leader that does not answer is an error: without a record that late the point is the end of the log.
        times = {where: result(each).offset for where, each in found.items() if result(each).offset >= 0}
    offsets = {}
    for where, (start, end) in bounds.items():
        if start is None or end is None:
            raise Failure(f"partition {where} has no leader now", f"`barnabas topic describe {where.topic}` says why")
        offsets[where] = point.resolve(start, end, times.get(where))
    return offsets
