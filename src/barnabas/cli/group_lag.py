"""How far a group is behind, in each partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from barnabas.cli.log_bounds import log_bounds
from barnabas.cli.output import Table
from barnabas.cli.wording import counted
from barnabas.client.admin import (
    LATEST,
    Admin,
    GroupDescription,
    GroupMember,
    OffsetAndTimestamp,
    TopicMetadata,
    TopicPartition,
)
from barnabas.client.group_offsets import ShareOffset
from barnabas.client.offsets import READ_COMMITTED
from barnabas.client.share_states import ShareState

LAG_COLUMNS = (
    "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-START-OFFSET", "LOG-END-OFFSET", "LAG", "LAG-TO-LAST-STABLE-OFFSET",
    "MEMBER-ID", "CLIENT-ID", "HOST",
)  # fmt: skip
OFFSET, LAG, STABLE_LAG = (LAG_COLUMNS.index(each) for each in ("CURRENT-OFFSET", "LAG", "LAG-TO-LAST-STABLE-OFFSET"))
_END = LAG_COLUMNS.index("LOG-END-OFFSET")
_STABLE_LAG_NAME = LAG_COLUMNS[STABLE_LAG]
_HIDDEN_FIRST = ("LOG-START-OFFSET", "HOST", "MEMBER-ID", "LOG-END-OFFSET", "CLIENT-ID", "CURRENT-OFFSET")


def lag_rows(admin: Admin, found: GroupDescription) -> list[tuple[Any, ...]]:
    """Return a row of `LAG_COLUMNS` for each partition that the group reads, and of each topic that it committed in.

    The lag goes to the log end, as Kafka's tools count it. The lag to the last stable offset leaves out the records that an open
    transaction holds back from readers of committed records.

    A share group has a start offset, its coordinator counts the lag, and several members may read a partition. For its lag to the last
    stable offset see `with_stable_share_lags`.
    """
    is_share = found.type == "share"
    shared = admin.list_share_group_offsets(found.group_id) if is_share else {}
    committed = {} if is_share else admin.list_group_offsets(found.group_id)
    readers: dict[TopicPartition, list[GroupMember]] = {}
    for member in found.members:
        for where in member.assignment:
            readers.setdefault(where, []).append(member)
    rows = []
    bounds = log_bounds(admin, sorted({*shared, *committed, *readers, *_beside(admin, committed)}))
    # Asked for after the ends: what was appended in between is not taken for records that a transaction holds back.
    stable_ends = admin.list_offsets(dict.fromkeys(committed, LATEST), isolation_level=READ_COMMITTED)
    for where, (start, end) in bounds.items():
        offset, lag = shared.get(where, (None, None))
        stable_lag = None
        if where in committed:
            offset = committed[where].offset
            lag = None if end is None else max(0, end - offset)
            stable_end = stable_ends[where]
            if lag is not None and isinstance(stable_end, OffsetAndTimestamp):
                stable_lag = min(lag, max(0, stable_end.offset - offset))
        rows.append((*where, offset, start, end, lag, stable_lag, *_names(readers.get(where, ()))))
    return rows


def share_offsets(rows: Iterable[tuple[Any, ...]]) -> dict[TopicPartition, ShareOffset]:
    """Return a share group's offsets out of its rows: of the partitions in which it has begun."""
    return {TopicPartition(*row[:2]): ShareOffset(row[OFFSET], row[LAG]) for row in rows if row[OFFSET] is not None}


def with_stable_share_lags(
    admin: Admin, rows: Sequence[tuple[Any, ...]], states: Mapping[TopicPartition, ShareState]
) -> list[tuple[Any, ...]]:
    """Return a share group's rows with the lag to the last stable offset where the state is known."""
    stable_ends = admin.list_offsets(dict.fromkeys(states, LATEST), isolation_level=READ_COMMITTED)
    found = []
    for row in rows:
        where = TopicPartition(*row[:2])
        end, lag, stable_end = row[_END], row[LAG], stable_ends.get(where)
        if None not in (end, lag) and isinstance(stable_end, OffsetAndTimestamp):
            stable_lag = max(0, lag - states[where].unfinished_between(stable_end.offset, end))
            row = (*row[:STABLE_LAG], stable_lag, *row[STABLE_LAG + 1 :])
        found.append(row)
    return found


def lag_table(rows: Sequence[tuple[Any, ...]]) -> Table:
    """Return the rows as a table; a narrow terminal hides the lag to the last stable offset first, unless the two lags differ."""
    hidden_first = (*_HIDDEN_FIRST, _STABLE_LAG_NAME) if held_back(rows) else (_STABLE_LAG_NAME, *_HIDDEN_FIRST)
    return Table(LAG_COLUMNS, rows, hidden_first=hidden_first)


def total(rows: Iterable[tuple[Any, ...]], column: int) -> int:
    """Return the sum of a column; partitions in which it is not known are not counted."""
    return sum(row[column] for row in rows if row[column] is not None)


def total_stable_lag(rows: Iterable[tuple[Any, ...]]) -> int | None:
    """Return the lag to the last stable offsets; None if it is known of no partition."""
    known = [row for row in rows if row[STABLE_LAG] is not None]
    return total(known, STABLE_LAG) if known else None


def held_back(rows: Iterable[tuple[Any, ...]]) -> int:
    """Return how many records open transactions hold back."""
    return sum(row[LAG] - row[STABLE_LAG] for row in rows if row[STABLE_LAG] is not None)


def lag_text(rows: Sequence[tuple[Any, ...]], *, is_share: bool = False) -> str:
    """Return the total lag, how much of it open transactions hold back, and which partitions it does not count.

    Args:
        is_share: most share groups read uncommitted records: it is not said what transactions hold back.
    """
    without, uncommitted = (sum(row[column] is None for row in rows) for column in (LAG, OFFSET))
    not_begun = "without a start offset" if is_share else "without a commit"
    reasons = [
        f"{counted(count, 'partition')} {what}"
        for count, what in (
            (uncommitted, not_begun),
            (without - uncommitted, "of unknown lag"),
        )
        if count
    ]
    held = 0 if is_share else held_back(rows)
    notes = [f"held back by open transactions: {held}"] if held else []
    if reasons:
        notes.append(f"not counted: {', '.join(reasons)}")
    return f"{total(rows, LAG)} ({'; '.join(notes)})" if notes else str(total(rows, LAG))


def _beside(admin: Admin, committed: Iterable[TopicPartition]) -> Iterator[TopicPartition]:
    """Yield every partition of the topics that a group committed in: a group without members names no others."""
    for name, found in admin.describe_topics(sorted({each.topic for each in committed})).items():
        if isinstance(found, TopicMetadata):
            yield from (TopicPartition(name, each.partition) for each in found.partitions)


def _names(members: Sequence[GroupMember]) -> Sequence[str | None]:
    """Return the members' ids, client ids and hosts, each joined by commas."""
    columns = zip(*((each.member_id, each.client_id, each.host) for each in members), strict=True)
    return [",".join(dict.fromkeys(column)) for column in columns] or (None, None, None)
