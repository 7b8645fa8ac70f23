"""A rolling restart: which node is next, whether it may go, and whether it is back. Decides, and does nothing.

    CHECK   the cluster is well, and can spare the next node     -> Restart
    AWAY    the old process has ended, the new one serves, every partition is in sync, the quorum is well
            -> Elect, while preferred leaders do not lead        -> CHECK, or Finished

The caller looks at the cluster, passes what it saw to `step`, and carries out the action that `step` returns.

- One node is away at a time. Brokers without a vote go first, then voters, the active controller last: so it moves once.
- A node does not go while the cluster lacks anything, and not where clients would notice: without it, each partition keeps a leader and
  `min.insync.replicas`, and the quorum a majority. `may_interrupt` accepts the latter.
- The first doubt ends the walk. What was not restarted is in `left`.
- A single look may be old, because a broker learns of a change a moment after the controller: two in a row must be good.

Source: Kafka's operations guide and Strimzi's KafkaRoller (order, and the check of `min.insync.replicas`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.partition_descriptions import PartitionDescription
from barnabas.client.quorum import Quorum

__all__ = [
    "Action",
    "Doubt",
    "Elect",
    "Finished",
    "Look",
    "Restart",
    "RollingRestart",
    "Wait",
    "risk_of",
    "roles_of",
    "unrest_in",
]

SILENT_MS = 5_000
"""A voter that has not read from the leader for this long is not well; voters read twice a second."""
_GOOD_LOOKS = 2
_NAMED_MAX = 5


class Look(NamedTuple):
    """The cluster at one moment.

    Attributes:
        serving, fenced: ids of brokers.
        quorum: None if the brokers are too old to describe it.
        moving: partitions whose replicas move.
        min_isr: `min.insync.replicas` by topic; a topic that is absent has 1.
    """

    serving: Collection[int]
    fenced: Collection[int]
    quorum: Quorum | None
    partitions: Mapping[TopicPartition, PartitionDescription]
    moving: Collection[TopicPartition]
    min_isr: Mapping[str, int]

    @property
    def voters(self) -> list[int]:
        return [] if self.quorum is None else [each.id for each in self.quorum.voters]

    @property
    def nodes(self) -> list[int]:
        """Every broker and every voter, in the order in which they are restarted."""
        found = {*self.serving, *self.fenced, *self.voters}
        return sorted(found, key=self.turn)

    def turn(self, node: int) -> tuple[bool, bool, int]:
        """Return the place of a node in the order."""
        leads = self.quorum is not None and node == self.quorum.leader
        return (leads, node in self.voters, node)


class Restart(NamedTuple):
    """Restart this node, then call `restarted`."""

    node: int


class Elect(NamedTuple):
    """Elect the preferred leaders of these partitions."""

    partitions: Sequence[TopicPartition]


class Wait(NamedTuple):
    """Look again in a moment."""

    why: str


class Doubt(NamedTuple):
    """Stop: something is not as it should be.

    Attributes:
        may_be_accepted: only clients would notice; `may_interrupt` goes on.
    """

    why: str
    may_be_accepted: bool = False


class Finished(NamedTuple):
    """Every node was restarted."""


Action = Restart | Elect | Wait | Doubt | Finished


class RollingRestart:
    """The walk over the nodes.

    Args:
        nodes: those to restart, in any order.
        within_ms: how long a node may take from its restart until all is well again.
        may_interrupt: go on where partitions or the quorum do without service while a node is away.

    Attributes:
        left: the nodes that were not restarted, or are not back.
        done: those that are back, with the milliseconds that each took.
    """

    def __init__(self, nodes: Iterable[int], *, within_ms: int, may_interrupt: bool = False) -> None:
        self.left = list(nodes)
        self.done: dict[int, int] = {}
        self._within_ms = within_ms
        self._may_interrupt = may_interrupt
        self._away: int | None = None
        self._since_ms = 0
        self._good = 0

    def __repr__(self) -> str:
        return f"<RollingRestart left={self.left} away={self._away} done={list(self.done)}>"

    def step(self, look: Look | str, now_ms: int, *, has_ended: bool = True) -> Action:
        """Return what to do now.

        Args:
            look: the cluster; a sentence if it did not answer.
            now_ms: on a clock that does not go back.
            has_ended: the process that the node had before its restart is gone.
        """
        if self._away is None:
            return self._check(look, now_ms)
        action = self._settle(self._away, look, has_ended=has_ended)
        if not isinstance(action, Finished):
            if now_ms - self._since_ms > self._within_ms and not isinstance(action, Doubt):
                why = action.why if isinstance(action, Wait) else "the preferred leaders do not take over"
                return Doubt(f"{why}, {(now_ms - self._since_ms) // 1000} s after node {self._away} was restarted")
            return action
        self.done[self._away] = now_ms - self._since_ms
        self.left.remove(self._away)
        self._away = None
        return self._check(look, now_ms)

    def _check(self, look: Look | str, now_ms: int) -> Action:
        if not self.left:
            return Finished()
        if isinstance(look, str):
            return Doubt(look)
        if (why := unrest_in(look)) is not None:
            return Doubt(why)
        node = min(self.left, key=look.turn)
        if not self._may_interrupt and (why := risk_of(look, node)) is not None:
            return Doubt(why, may_be_accepted=True)
        self._away, self._since_ms, self._good = node, now_ms, 0
        return Restart(node)

    def _settle(self, node: int, look: Look | str, *, has_ended: bool) -> Action:
        if isinstance(look, str):
            self._good = 0
            return Wait(look)
        why = None
        if not has_ended:
            why = f"node {node} still runs in the process that it had before"
        elif node in look.fenced:
            why = f"broker {node} does not serve"
        elif node not in look.serving and node not in look.voters:
            why = f"node {node} is not part of the cluster"
        why = why or unrest_in(look)
        if why is not None:
            self._good = 0
            return Wait(why)
        if others := not_preferred(look):
            self._good = 0
            return Elect(others)
        self._good += 1
        return (
            Finished() if self._good >= _GOOD_LOOKS else Wait("the cluster is well, which a second look must confirm")
        )


def unrest_in(look: Look) -> str | None:
    """Return the first thing that the cluster lacks, as a sentence; None if it is well."""
    silent = [] if look.quorum is None else [each.id for each in look.quorum.silent_voters(SILENT_MS)]
    offline = [at for at, each in look.partitions.items() if each.leader < 0]
    short = [at for at, each in look.partitions.items() if len(each.isr) < len(each.replicas)]
    if look.quorum is not None and look.quorum.leader < 0:
        return "the quorum has no leader"
    if look.fenced:
        return f"broker {_named(sorted(look.fenced))} does not serve"
    if silent:
        return f"controller {_named(silent)} does not read the metadata log"
    if offline:
        return f"no replica leads {_named(sorted(offline))}"
    if look.moving:
        return f"replicas of {_named(sorted(look.moving))} are being moved"
    return f"not every replica is in sync of {_named(sorted(short))}" if short else None


def risk_of(look: Look, node: int) -> str | None:
    """Return what clients miss while a node of a cluster that is well is away, as a sentence; None if nothing."""
    voters = look.voters
    if node in voters and (len(voters) - 1) * 2 <= len(voters):
        return f"without node {node} the quorum of {len(voters)} has no majority"
    alone = []
    rejecting = []
    for at, each in sorted(look.partitions.items()):
        others = set(each.isr) - {node}
        if node not in each.replicas:
            continue
        if not others:
            alone.append(at)
        elif len(others) < min(look.min_isr.get(at.topic, 1), len(each.replicas)):
            rejecting.append(at)
    if alone:
        return f"without node {node} no replica is left of {_named(alone)}"
    if rejecting:
        return f"without node {node} fewer replicas than min.insync.replicas are left of {_named(rejecting)}"
    return None


def not_preferred(look: Look) -> list[TopicPartition]:
    """Return the partitions whose preferred leader is in sync and does not lead."""
    return [at for at, each in sorted(look.partitions.items()) if each.leader != each.replicas[0] in each.isr]


def roles_of(look: Look, node: int) -> str:
    """Return what a node is: `broker`, `controller`, both, or the active controller."""
    is_active = look.quorum is not None and node == look.quorum.leader
    roles = ["broker"] if node in {*look.serving, *look.fenced} else []
    if node in look.voters:
        roles.append("active controller" if is_active else "controller")
    return " and ".join(roles)


def _named(things: Sequence[object]) -> str:
    first = ", ".join(map(str, things[:_NAMED_MAX]))
    more = len(things) - _NAMED_MAX
    return f"{first} and {more} more" if more > 0 else first
