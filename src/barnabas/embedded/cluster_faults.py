"""The faults of a `barnabas.Cluster`: of its network, its disks, its clocks, and in its answers; each can be removed by itself.

Each ordered fault is a small `FaultPlan`. The nodes get all of them merged, after every change. A fault counts its strikes in a file of
the cluster's folder, which its nodes share.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from barnabas.embedded.cluster_arguments import both_ways, ordered_pairs
from barnabas.embedded.fault_arguments import checked_ahead, checked_seconds
from barnabas.embedded.fault_plan import (
    EVERY_API,
    NO_FAULTS,
    ClockFault,
    DiskFault,
    FaultKind,
    FaultPlan,
    RequestFault,
    merged,
)
from barnabas.embedded.fault_tickets import UNLIMITED, FaultTickets, InjectedFault
from barnabas.embedded.faults_in_answers import FaultsInAnswers, request_settings

__all__ = ["ClusterFaults", "Nodes"]

__tracebackhide__ = True  # pytest's reports end at the caller's line

Nodes = int | Iterable[int]

_TICKETS = "fault-"


class _Ordered(NamedTuple):
    injected: InjectedFault
    plan: FaultPlan


class ClusterFaults(FaultsInAnswers):
    """Faults of a cluster's network, disks and clocks; those in answers are of `FaultsInAnswers`.

    Methods return when the fault is in effect at every node that runs. A node that is down or paused gets it when it runs again.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._folder = Path()
        self._plan = NO_FAULTS
        self._ordered: dict[int, _Ordered] = {}
        self._numbers = 0

    @property
    def faults(self) -> tuple[InjectedFault, ...]:
        """The faults that were ordered and not removed, also those that have struck as often as they should."""
        with self._lock:
            return tuple(each.injected for each in self._ordered.values())

    def partition(self, left: Nodes, right: Nodes) -> InjectedFault:
        """Cut the network between two sets of nodes, both ways; no node may be in both."""
        one, other = self._apart(left, right)
        settings = {"kind": "partition", "left": sorted(one), "right": sorted(other)}
        return self._cut(settings, both_ways(one, other))

    def cut(self, source: Nodes, target: Nodes) -> InjectedFault:
        """Cut one way: nothing that the first nodes send reaches the second ones."""
        one, other = self._apart(source, target)
        return self._cut({"kind": "cut", "from": sorted(one), "to": sorted(other)}, ordered_pairs(one, other))

    def _cut(self, settings: Mapping[str, object], pairs: set[tuple[int, int]]) -> InjectedFault:
        return self._order(
            settings, lambda path: FaultPlan(cuts=frozenset(pairs), tickets=dict.fromkeys(pairs, (path,)))
        )

    def delay(self, between: int | tuple[int, int], seconds: float) -> InjectedFault:
        """Slow the network down: everything that two nodes send each other takes so much longer.

        Args:
            between: two nodes. One node means everything between it and all others, and each request of a client to it.
            seconds: 0 ends the delay.
        """
        checked_seconds(seconds)
        if isinstance(between, int):
            (one,) = self._set(between)
            pairs, slow = both_ways({one}, self._node_ids()), {one}
        else:
            first, second = between
            pairs, slow = both_ways(*self._apart(first, second)), set()

        def plan(path: str) -> FaultPlan:
            late = RequestFault(FaultKind.DELAY_REQUEST, EVERY_API, seconds=seconds, times=UNLIMITED, tickets=path)
            return FaultPlan(
                delays=dict.fromkeys(pairs, seconds),
                tickets=dict.fromkeys(pairs, (path,)),
                requests=dict.fromkeys(slow, (late,)) if seconds else {},
            )

        settings = {
            "kind": "delay",
            "between": between if isinstance(between, int) else list(between),
            "seconds": seconds,
        }
        return self._order(settings, plan, lambda old: bool(old.delays) and old.delays.keys() <= pairs)

    def fill_disk(self, node: int) -> InjectedFault:
        """Let a node's disk be full: each write fails with ENOSPC. A node that has no other disk ends, as Apache Kafka's does."""
        self._set(node)
        return self._order(
            {"kind": "disk_full", "node": node}, lambda path: FaultPlan(disks={node: DiskFault(full=(path,))})
        )

    def slow_disk(self, node: int, seconds: float) -> InjectedFault:
        """Let each write and each sync of a node's disk take so many seconds longer; the node does nothing else during a write."""
        self._set(node)
        checked_seconds(seconds)
        return self._order(
            {"kind": "disk_slow", "node": node, "seconds": seconds},
            lambda path: FaultPlan(disks={node: DiskFault(slow_s=seconds, slow=(path,))}),
        )

    def move_clock(self, seconds: float, of: Nodes | None = None) -> InjectedFault:
        """Set the wall clocks of nodes ahead, or back if negative; timers, such as session timeouts, do not notice.

        Args:
            of: the nodes; None for all. Several orders add up.
        """
        checked_ahead(seconds)
        nodes = sorted(self._node_ids() if of is None else self._set(of))
        return self._order(
            {"kind": "clock", "nodes": nodes, "seconds": seconds},
            lambda path: FaultPlan(clocks=dict.fromkeys(nodes, ClockFault(seconds, (path,)))),
        )

    def heal(self) -> None:
        """Remove every fault. Nodes that are down or paused stay so."""
        with self._lock:
            self._ordered.clear()
            self._change(NO_FAULTS)

    def _inject(self, fault: RequestFault, node: int | None) -> InjectedFault:
        where = self._node_ids() if node is None else self._set(node)

        def plan(path: str) -> FaultPlan:
            numbered = fault._replace(number=self._numbers, tickets=path)
            return FaultPlan(requests=dict.fromkeys(where, (numbered,)))

        return self._order(request_settings(fault, node), plan, times=fault.times, nth=fault.nth)

    def _order(
        self,
        settings: Mapping[str, object],
        plan: Callable[[str], FaultPlan],
        replaces: Callable[[FaultPlan], bool] = lambda old: False,
        *,
        times: int = UNLIMITED,
        nth: int = 1,
    ) -> InjectedFault:
        """Let a fault happen.

        Args:
            plan: makes it, with the file of its tickets.
            replaces: whether it ends an earlier one.
        """
        with self._lock:
            self._node_ids()
            self._numbers += 1
            number, path = self._numbers, str(self._folder / f"{_TICKETS}{self._numbers}")
            injected = InjectedFault(number, settings, FaultTickets(path, times, nth), lambda: self._remove(number))
            kept = {each: old for each, old in self._ordered.items() if not replaces(old.plan)}
            self._ordered = {**kept, number: _Ordered(injected, plan(path))}
            self._change(merged(each.plan for each in self._ordered.values()))
            return injected

    def _remove(self, number: int) -> None:
        with self._lock:
            if self._ordered.pop(number, None) is not None:
                self._change(merged(each.plan for each in self._ordered.values()))

    def _forget_faults(self, folder: Path) -> None:
        """Begin without a fault, and without the counts of an earlier cluster in this folder."""
        self._plan = NO_FAULTS
        self._ordered.clear()
        self._numbers = 0
        for old in folder.glob(f"{_TICKETS}*"):
            old.unlink()

    def _node_ids(self) -> Collection[int]:
        """Return all nodes of the running cluster."""
        raise NotImplementedError

    def _set(self, nodes: Nodes) -> set[int]:
        """Return nodes that exist."""
        raise NotImplementedError

    def _apart(self, left: Nodes, right: Nodes) -> tuple[set[int], set[int]]:
        """Return two sets of nodes that a fault can lie between."""
        one, other = self._set(left), self._set(right)
        if not one or not other:
            raise ValueError("one side has no node: name nodes on both sides")
        if both := one & other:
            raise ValueError(f"node {min(both)} is on both sides: a node always reaches itself")
        return one, other

    def _change(self, plan: FaultPlan) -> None:
        """Tell every node of a new plan."""
        raise NotImplementedError
