"""Changes of leaders and of in-sync replicas, for the log: on the active controller all of them, on another node those of its partitions.

    metadata ──► `publish`: changes that are alike form a group ──► `report`, each second: a line for each group

    pay-1, pay-4 and 118 more: broker 2 leads in place of broker 3; broker 3 left the ISR (broker 3 is fenced)

- A group has the partitions with the same change of leader and ISR. Its line names a few of them and counts the
  others, so the death of a broker of 10,000 partitions is a few lines.
- The cause is a change of the broker. The record that fences a broker follows those of its partitions, so the report looks for the cause
  only when it reports the group; a replica that left the ISR of a leader, and whose broker is well, waits for one more report.
- A new partition and a deleted one are no changes. `LeaderlessPartitions` explains why partitions have no leader.

Limit: a change that another one undoes before the metadata is published is not seen.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, NamedTuple

from barnabas.metadata.cluster_image import BrokerRegistration, ClusterDelta
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_registration import LEADER_RECOVERING, NO_LEADER, PartitionRegistration
from barnabas.metadata.topics_image import TopicsDelta
from barnabas.repeated_lines import RepeatedLines
from barnabas.turns import ELEMENT, pace

__all__ = ["PartitionChangeLog"]

logger = logging.getLogger(__name__)

REPORT_MS = 1_000
LINES_MAX = 60
"""Lines of a minute, before they are counted: clients may elect leaders and move replicas as often as they like."""
NAMED_MAX = 5
"""How many partitions a line names."""
GROUPS_MAX = 50
"""How many groups a report lists; it only counts the partitions of the others."""


_SAME_LEADER = (NO_LEADER, NO_LEADER)


class _Change(NamedTuple):
    """A change of one partition.

    Attributes:
        led, leads: the leader before and after; `_SAME_LEADER` if it is the same.
        why: the cause, if the partition itself shows it.
    """

    led: int
    leads: int
    left: tuple[int, ...]
    joined: tuple[int, ...]
    why: str | None


class _Group:
    """The partitions of one change."""

    __slots__ = ("count", "is_old", "named")

    def __init__(self) -> None:
        self.named: list[str] = []
        self.count = 0
        self.is_old = False

    def __repr__(self) -> str:
        return f"<_Group {self.names()}>"

    def add(self, name: str) -> None:
        self.count += 1
        if len(self.named) < NAMED_MAX:
            self.named.append(name)

    def names(self) -> str:
        more = self.count - len(self.named)
        return ", ".join(self.named) + (f" and {more:,} more" if more else "")


class PartitionChangeLog:
    """The changes since the last report.

    Args:
        broker_id: this node's.
        is_active: whether the controller of this node is the active one.
    """

    def __init__(self, broker_id: int, is_active: Callable[[], bool]) -> None:
        self._broker_id = broker_id
        self._is_active = is_active
        self._image = MetadataImage()
        self._groups: dict[_Change, _Group] = {}
        self._others = 0
        # Changes of brokers since the last report.
        self._events: dict[int, str] = {}

    def __repr__(self) -> str:
        return f"<PartitionChangeLog groups={len(self._groups)}>"

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> Coroutine[Any, Any, None] | None:
        """Note what a delta changes; a publisher of the `MetadataLoader`."""
        self._image = image
        if delta.cluster is not None:
            self._note_brokers(delta.cluster)
        return None if delta.topics is None else self._note_partitions(delta.topics)

    def _note_brokers(self, delta: ClusterDelta) -> None:
        for broker_id, after in delta.changed_brokers.items():
            event = _event(delta.image.brokers.get(broker_id), after)
            if event is not None:
                self._events[broker_id] = event

    async def _note_partitions(self, delta: TopicsDelta) -> None:
        is_active = self._is_active()
        for name, before, after in _changed(delta):
            await pace(ELEMENT)
            if is_active or after.leader == self._broker_id:
                self._note(name, before, after)

    def _note(self, name: str, before: PartitionRegistration, after: PartitionRegistration) -> None:
        left = tuple(replica for replica in before.isr if replica not in after.isr)
        joined = tuple(replica for replica in after.isr if replica not in before.isr)
        if before.leader == after.leader and not left and not joined:
            return
        leaders = (before.leader, after.leader) if before.leader != after.leader else _SAME_LEADER
        change = _Change(*leaders, left, joined, _why(before, after, left, joined))
        group = self._groups.get(change)
        if group is None:
            if len(self._groups) >= GROUPS_MAX:
                self._others += 1
                return
            group = self._groups[change] = _Group()
        group.add(name)

    def log(self, lines: RepeatedLines) -> None:
        """Log the report; the node calls this each `REPORT_MS`."""
        for line in self.report():
            lines.log(logger, logging.INFO, "leaders and in-sync replicas", line, at_most=LINES_MAX)

    def report(self) -> list[str]:
        """Return the lines of all changes since the last report, and forget the changes."""
        # A leader never falls behind: one that has left the ISR too is about to be fenced, or to register again.
        failing = {change.led for change in self._groups if change.led in change.left and change.why is None}
        lines, waiting = [], {}
        for change, group in self._groups.items():
            cause = self._cause(change, failing)
            if cause is None and not group.is_old:
                group.is_old = True
                waiting[change] = group
            else:
                lines.append(f"{group.names()}: {_what(change)} ({cause or _behind(change.left)})")
        if self._others:
            lines.append(f"{self._others:,} more partitions have another leader or other in-sync replicas")
        self._groups, self._others = waiting, 0
        if not waiting:
            self._events.clear()
        return lines

    def _cause(self, change: _Change, failing: set[int]) -> str | None:
        """Return why a partition has changed; None if replicas have left the ISR and nothing is known of their brokers."""
        if change.why is not None:
            return change.why
        concerned = change.left or ((change.led,) if change.led not in (change.leads, NO_LEADER) else ())
        causes = [cause for broker_id in concerned if (cause := self._fate(broker_id, failing)) is not None]
        if causes:
            return ", ".join(causes)
        if change.left:
            return None
        if change.leads == change.led:
            return f"{_brokers(change.joined)} caught up"
        return f"broker {change.leads} can lead again" if change.led == NO_LEADER else "elected"

    def _fate(self, broker_id: int, failing: set[int]) -> str | None:
        event = self._events.get(broker_id) or _state(self._image.cluster.brokers.get(broker_id))
        if event is None and broker_id in failing:
            event = "is about to be fenced"
        return None if event is None else f"broker {broker_id} {event}"


def _changed(delta: TopicsDelta) -> Iterator[tuple[str, PartitionRegistration, PartitionRegistration]]:
    """Yield the name of each partition that was there before, with its registration before and after."""
    for topic in delta.changed.values():
        for index, after in topic.partition_changes.items():
            before = topic.image.partitions.get(index)
            if before is not None:
                yield f"{topic.name}-{index}", before, after


def _event(before: BrokerRegistration | None, after: BrokerRegistration | None) -> str | None:
    if before is None or after is None:
        return "is not registered any more" if after is None else None
    if after.epoch != before.epoch:
        return "has restarted"
    if after.in_controlled_shutdown:
        return "shuts down"
    return "is fenced" if after.fenced and not before.fenced else None


def _state(broker: BrokerRegistration | None) -> str | None:
    if broker is None:
        return "is not registered any more"
    if broker.in_controlled_shutdown:
        return "shuts down"
    return "is fenced" if broker.fenced else None


def _why(
    before: PartitionRegistration, after: PartitionRegistration, left: tuple[int, ...], joined: tuple[int, ...]
) -> str | None:
    if after.leader_recovery_state == LEADER_RECOVERING != before.leader_recovery_state:
        return "unclean election, records may be lost"
    if any(replica not in after.replicas for replica in (*left, before.leader)) and before.replicas != after.replicas:
        return "reassigned"
    is_elected = before.leader not in (after.leader, NO_LEADER) and before.leader in after.isr
    if is_elected and after.leader == after.replicas[0] and not left and not joined:
        return "the preferred leader is elected"
    return None


def _what(change: _Change) -> str:
    said = []
    if change.leads != change.led:
        leads = "no broker leads" if change.leads == NO_LEADER else f"broker {change.leads} leads"
        said.append(leads if change.led == NO_LEADER else f"{leads} in place of broker {change.led}")
    if change.left:
        said.append(f"{_brokers(change.left)} left the ISR")
    if change.joined:
        said.append(f"{_brokers(change.joined)} joined the ISR")
    return "; ".join(said)


def _behind(replicas: tuple[int, ...]) -> str:
    return f"{_brokers(replicas)} fell behind"


def _brokers(ids: tuple[int, ...]) -> str:
    return ("broker " if len(ids) == 1 else "brokers ") + ", ".join(map(str, ids))
