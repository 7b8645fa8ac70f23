"""Moves the offsets of groups at the target after those at the source.

- A group with members at the target is left alone: it works there.
- An offset at the target that lies beyond the translated one is left alone: the group has worked there. It goes back only if this run has
  set it itself, that is, when the group was rewound at the source.
- The metadata of an offset is copied; Kafka Streams keeps its time there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from barnabas.client.admin import EARLIEST, Admin, CommittedOffset, GroupDescription, TopicPartition, result
from barnabas.mirror.notes import Where
from barnabas.mirror.progress import Progress
from barnabas.protocol.errors import ErrorCode, KafkaError

_OF_SHARES = "share"
_IS_ACTIVE = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_MEMBER_EPOCH,
    }
)


class GroupOffsets:
    """Moves groups.

    Args:
        say: prints a line.
    """

    def __init__(self, source: Admin, target: Admin, say: Callable[[str], None]) -> None:
        self._source = source
        self._target = target
        self._say = say
        self._set: dict[tuple[str, TopicPartition], int] = {}
        self._said: set[str] = set()

    def __repr__(self) -> str:
        return f"<GroupOffsets {len(self._set)}>"

    def move(self, partitions: Mapping[Where, Progress]) -> None:
        """Move every group of the source that has committed offsets of mirrored partitions.

        Raises:
            KafkaError: a cluster does not answer.
        """
        starts = self._log_starts(partitions)
        for listing in self._source.list_groups():
            if listing.type != _OF_SHARES and not listing.group_id.startswith("__"):
                self._move(listing.group_id, partitions, starts)

    def _log_starts(self, partitions: Mapping[Where, Progress]) -> dict[TopicPartition, int]:
        wanted = {TopicPartition(*where): EARLIEST for where in partitions}
        return {where: result(found).offset for where, found in self._target.list_offsets(wanted).items()}

    def _move(self, group: str, partitions: Mapping[Where, Progress], starts: Mapping[TopicPartition, int]) -> None:
        wanted = {
            where: CommittedOffset(max(partitions[where].translate(found.offset), starts[where]), found.metadata)
            for where, found in self._source.list_group_offsets(group).items()
            if where in partitions
        }
        if not wanted or all(self._set.get((group, where)) == each.offset for where, each in wanted.items()):
            return
        if self._is_active(group):
            self._say_active(group)
            return
        changed = self._changed(group, wanted)
        for where, outcome in self._target.alter_group_offsets(group, changed).items() if changed else ():
            if isinstance(outcome, KafkaError):
                if outcome.code in _IS_ACTIVE:  # a member has just come
                    self._say_active(group)
                    return
                raise outcome
            self._set[group, where] = changed[where].offset

    def _changed(
        self, group: str, wanted: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, CommittedOffset]:
        """Return the offsets to commit."""
        changed = {}
        now = self._target.list_group_offsets(group, wanted)
        for where, each in wanted.items():
            there = now[where].offset if where in now else None
            if there == each.offset:
                self._set[group, where] = there
            elif there is None or there < each.offset or there == self._set.get((group, where)):
                changed[where] = each
            else:
                self._say_once(
                    f"group {group} is at {there} of {where} at the target, beyond {each.offset}: it is not moved back"
                )
        return changed

    def _is_active(self, group: str) -> bool:
        found = self._target.describe_groups([group])[group]
        if isinstance(found, GroupDescription):
            return bool(found.members)
        if found.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return False
        raise found

    def _say_active(self, group: str) -> None:
        self._say_once(f"group {group} has members at the target: its offsets are not touched")

    def _say_once(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._say(line)
