"""How far a group is behind, in each partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from barnabas.cli.log_bounds import log_bounds
from barnabas.client.admin import Admin, GroupDescription, GroupMember, TopicMetadata, TopicPartition


def lag_rows(admin: Admin, found: GroupDescription) -> list[tuple[Any, ...]]:
    """Return a row for each partition that the group reads, and of each topic that it committed in: offsets, lag and members.

    A share group has a start offset, its coordinator counts the lag, and several members may read a partition.
    """
    is_share = found.type == "share"
    shared = admin.list_share_group_offsets(found.group_id) if is_share else {}
    committed = {} if is_share else admin.list_group_offsets(found.group_id)
    readers: dict[TopicPartition, list[GroupMember]] = {}
    for member in found.members:
        for where in member.assignment:
            readers.setdefault(where, []).append(member)
    rows = []
    for where, (start, end) in log_bounds(
        admin, sorted({*shared, *committed, *readers, *_beside(admin, committed)})
    ).items():
        offset, lag = shared.get(where, (None, None))
        if where in committed:
            offset = committed[where].offset
            lag = None if end is None else max(0, end - offset)
        rows.append((*where, offset, start, end, lag, *_names(readers.get(where, ()))))
    return rows


def _beside(admin: Admin, committed: Iterable[TopicPartition]) -> Iterator[TopicPartition]:
    """Yield every partition of the topics that a group committed in: a group without members names no others."""
    for name, found in admin.describe_topics(sorted({each.topic for each in committed})).items():
        if isinstance(found, TopicMetadata):
            yield from (TopicPartition(name, each.partition) for each in found.partitions)


def _names(members: Sequence[GroupMember]) -> Sequence[str | None]:
    """Return the members' ids, client ids and hosts, each joined by commas."""
    columns = zip(*((each.member_id, each.client_id, each.host) for each in members), strict=True)
    return [",".join(dict.fromkeys(column)) for column in columns] or (None, None, None)
