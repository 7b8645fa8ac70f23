"""How far many groups are behind, asked for together: one look at the ends of all partitions that any of them reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.client.admin import LATEST, Admin, GroupDescription, OffsetAndTimestamp, TopicPartition
from barnabas.client.group_offsets import CommittedOffset
from barnabas.protocol.errors import KafkaError


class GroupLag(NamedTuple):
    """A group.

    Attributes:
        total_lag: records that it has yet to read; partitions whose leader does not answer are not counted.
    """

    group: str
    state: str
    type: str
    members: int
    total_lag: int


def group_lags(admin: Admin, group_ids: Iterable[str]) -> dict[str, GroupLag]:
    """Return the lag of each group; a group that is gone, or whose coordinator does not answer, is left out.

    Raises:
        ClientError: no broker answers.
    """
    described = {
        group_id: found
        for group_id, found in admin.describe_groups(group_ids).items()
        if isinstance(found, GroupDescription)
    }
    shared: dict[str, int] = {}
    committed: dict[str, dict[TopicPartition, CommittedOffset]] = {}
    for group_id, found in described.items():
        try:
            if found.type == "share":
                offsets = admin.list_share_group_offsets(group_id)
                shared[group_id] = sum(each.lag for each in offsets.values() if each.lag is not None)
            else:
                committed[group_id] = admin.list_group_offsets(group_id)
        except KafkaError:
            continue
    places = {where for offsets in committed.values() for where in offsets}
    ends = {
        where: found.offset
        for where, found in admin.list_offsets(dict.fromkeys(sorted(places), LATEST)).items()
        if isinstance(found, OffsetAndTimestamp)
    }
    lags = shared | {
        group_id: sum(max(0, ends[where] - each.offset) for where, each in offsets.items() if where in ends)
        for group_id, offsets in committed.items()
    }
    return {
        group_id: GroupLag(group_id, found.state, found.type, len(found.members), lags[group_id])
        for group_id, found in described.items()
        if group_id in lags
    }
