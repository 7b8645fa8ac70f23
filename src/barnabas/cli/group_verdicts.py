"""Verdicts about groups from several looks at a cluster: `barnabas group list --verdict`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas.cli.group_lag import lag_rows
from barnabas.client.admin import Admin, GroupDescription, TopicPartition
from barnabas.client.lag_verdicts import Sample, Verdict, judge


class GroupVerdict(NamedTuple):
    """A group's verdict.

    Attributes:
        lag: of all partitions in the last sample.
        partitions: the verdict about each partition that was in every sample.
    """

    verdict: Verdict
    lag: int
    partitions: dict[TopicPartition, Verdict]

    @property
    def worst(self) -> list[str]:
        """The partitions that have the group's verdict, if that is not OK."""
        found = [str(where) for where, verdict in self.partitions.items() if verdict == self.verdict]
        return found if self.verdict else []


def verdicts(
    admin: Admin, group_ids: Iterable[str], samples: int, pause: Callable[[int], None]
) -> dict[str, GroupVerdict]:
    """Return the verdict about each group; a group that is gone has none.

    Args:
        samples: how many times to look.
        pause: called between two looks, with how many there were.
    """
    wanted = list(group_ids)
    looks = []
    for number in range(samples):
        if number:
            pause(number)
        looks.append(_look(admin, wanted))
    found = {}
    for group_id, (has_members, last) in looks[-1].items():
        windows = {
            where: [look[group_id][1][where] for look in looks if group_id in look and where in look[group_id][1]]
            for where in last
        }
        partitions = {
            where: judge(window, has_members=has_members) for where, window in windows.items() if len(window) == samples
        }
        lag = sum(each.lag for each in last.values())
        found[group_id] = GroupVerdict(max(partitions.values(), default=Verdict.OK), lag, partitions)
    return found


def _look(admin: Admin, group_ids: list[str]) -> dict[str, tuple[bool, dict[TopicPartition, Sample]]]:
    """Return whether each group has members, and a sample of each partition that it has committed in."""
    return {
        group_id: (
            bool(described.members),
            {
                TopicPartition(topic, partition): Sample(offset, lag)
                for topic, partition, offset, _, _, lag, *_ in lag_rows(admin, described)
                if offset is not None and lag is not None
            },
        )
        for group_id, described in admin.describe_groups(group_ids).items()
        if isinstance(described, GroupDescription)
    }
