"""The faults that a test has ordered, as a cluster sends them to its nodes.

    Cluster ── one line of JSON ──► each node: the whole plan, at the start and after each change

A node applies the whole plan and forgets the plan before it. So a node that was down or paused needs no history. Each ordered fault is a
plan of its own; `merged` makes one of all, in their order.

- `cuts`: pairs (from, to) of nodes; nothing that the first sends reaches the second.
- `delays`: seconds by pair (from, to); what the first sends reaches the second so much later.
- `tickets`: by pair, the files that count what a cut or a delay held back (`fault_tickets`).
- `requests`: what happens to clients' requests, by node.
- `disks`, `clocks`: by node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

__all__ = [
    "ANY_REQUEST",
    "EVERY_API",
    "NO_CLOCK_FAULT",
    "NO_DISK_FAULT",
    "NO_FAULTS",
    "ClockFault",
    "DiskFault",
    "FaultKind",
    "FaultPlan",
    "RequestFault",
    "Where",
    "merged",
]

Pair = tuple[int, int]

EVERY_API = -1


class FaultKind(StrEnum):
    """The ways in which a request of a client can go wrong."""

    FAIL = "fail"
    """The response has an error, and the request is not carried out."""
    DROP_CONNECTION = "drop_connection"
    """The connection closes, and the request is not carried out."""
    DROP_RESPONSE = "drop_response"
    """The request is carried out, and the connection closes instead of a response."""
    DELAY_REQUEST = "delay_request"
    """The request waits before it is carried out."""
    DELAY_RESPONSE = "delay_response"
    """The request is carried out, and its response waits."""
    DUPLICATE_RESPONSE = "duplicate_response"
    """The request is carried out, and its response is sent twice."""


class Where(NamedTuple):
    """The requests that a fault meets: those that name all of these; None means any.

    Attributes:
        client_id: of the client, as a whole.
    """

    topic: str | None = None
    partition: int | None = None
    client_id: str | None = None
    group: str | None = None


ANY_REQUEST = Where()


class RequestFault(NamedTuple):
    """A fault for requests of one API, or of every API.

    Attributes:
        api_key: EVERY_API for all.
        error_code: of FAIL.
        seconds: of the delays.
        times: how many requests; -1 for all.
        nth: the first request that it meets, of those that `where` names, counted from 1.
        number: the fault's own.
        tickets: the file that counts them (`fault_tickets`).
    """

    kind: FaultKind
    api_key: int
    where: Where = ANY_REQUEST
    error_code: int = 0
    seconds: float = 0.0
    times: int = 1
    nth: int = 1
    number: int = 0
    tickets: str = ""

    @classmethod
    def from_json(cls, kind: str, api_key: int, where: Iterable[Any], *rest: Any) -> RequestFault:
        return cls(FaultKind(kind), api_key, Where(*where), *rest)


class DiskFault(NamedTuple):
    """A disk that is full, slow or both.

    Attributes:
        slow_s: seconds that each write and each sync takes longer.
        full, slow: the files that count the writes that failed, and the calls that took longer; a disk without `full` has room.
    """

    slow_s: float = 0.0
    full: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()


class ClockFault(NamedTuple):
    """A wall clock that is ahead, or behind if the seconds are negative; `tickets` count how often a node took the time over."""

    seconds: float = 0.0
    tickets: tuple[str, ...] = ()


class FaultPlan(NamedTuple):
    """All faults of a cluster; `NO_FAULTS` has none."""

    cuts: frozenset[Pair] = frozenset()
    delays: Mapping[Pair, float] = {}
    tickets: Mapping[Pair, tuple[str, ...]] = {}
    requests: Mapping[int, tuple[RequestFault, ...]] = {}
    disks: Mapping[int, DiskFault] = {}
    clocks: Mapping[int, ClockFault] = {}

    def in_words(self) -> str:
        """Return the faults as a part of a sentence; empty without one."""
        words = [
            f"nodes {one} and {other} are cut from each other"
            for one, other in sorted(self.cuts)
            if one < other and (other, one) in self.cuts
        ]
        one_way = sorted((source, target) for source, target in self.cuts if (target, source) not in self.cuts)
        words += [f"nothing from node {source} reaches node {target}" for source, target in one_way]
        every = [fault for faults in self.requests.values() for fault in faults]
        if any(self.delays.values()) or any(_is_a_slow_nodes(fault) for fault in every):
            words.append("messages are delayed")
        if any(not _is_a_slow_nodes(fault) for fault in every):
            words.append("requests fail on purpose")
        words += [f"the disk of node {node} is full" for node, disk in self.disks.items() if disk.full]
        words += [f"the disk of node {node} is slow" for node, disk in self.disks.items() if disk.slow_s]
        words += [f"the clock of node {node} is wrong" for node, clock in self.clocks.items() if clock.seconds]
        return ", ".join(words)

    def to_json(self, node_id: int) -> dict[str, Any]:
        """Return what one node has to know, as `from_json` reads it."""
        return {
            "cuts": sorted(self.cuts),
            "delays": [[*pair, seconds] for pair, seconds in self.delays.items()],
            "tickets": [[*pair, files] for pair, files in self.tickets.items()],
            "requests": list(self.requests.get(node_id, ())),
            "disk": self.disks.get(node_id, NO_DISK_FAULT),
            "clock": self.clocks.get(node_id, NO_CLOCK_FAULT),
        }

    @classmethod
    def from_json(cls, node_id: int, found: Mapping[str, Any]) -> FaultPlan:
        slow_s, full, slow = found["disk"]
        seconds, clock_tickets = found["clock"]
        return cls(
            cuts=frozenset((source, target) for source, target in found["cuts"]),
            delays={(source, target): delay for source, target, delay in found["delays"]},
            tickets={(source, target): tuple(files) for source, target, files in found["tickets"]},
            requests={node_id: tuple(RequestFault.from_json(*each) for each in found["requests"])},
            disks={node_id: DiskFault(slow_s, tuple(full), tuple(slow))},
            clocks={node_id: ClockFault(seconds, tuple(clock_tickets))},
        )


NO_FAULTS = FaultPlan()
NO_DISK_FAULT = DiskFault()
NO_CLOCK_FAULT = ClockFault()


def merged(plans: Iterable[FaultPlan]) -> FaultPlan:
    """Return one plan of several: a later delay of a pair replaces an earlier one, the rest adds up."""
    cuts: set[Pair] = set()
    delays: dict[Pair, float] = {}
    cut_tickets: dict[Pair, tuple[str, ...]] = {}
    delay_tickets: dict[Pair, tuple[str, ...]] = {}
    requests: dict[int, tuple[RequestFault, ...]] = {}
    disks: dict[int, DiskFault] = {}
    clocks: dict[int, ClockFault] = {}
    for plan in plans:
        cuts |= plan.cuts
        for pair in plan.cuts:
            cut_tickets[pair] = cut_tickets.get(pair, ()) + plan.tickets.get(pair, ())
        for pair, seconds in plan.delays.items():
            delays[pair] = seconds
            delay_tickets[pair] = plan.tickets.get(pair, ()) if seconds else ()
        for node, faults in plan.requests.items():
            requests[node] = requests.get(node, ()) + faults
        for node, disk in plan.disks.items():
            had = disks.get(node, NO_DISK_FAULT)
            disks[node] = DiskFault(had.slow_s + disk.slow_s, had.full + disk.full, had.slow + disk.slow)
        for node, clock in plan.clocks.items():
            moved = clocks.get(node, NO_CLOCK_FAULT)
            clocks[node] = ClockFault(moved.seconds + clock.seconds, moved.tickets + clock.tickets)
    pairs = cut_tickets.keys() | delay_tickets.keys()
    tickets = {pair: cut_tickets.get(pair, ()) + delay_tickets.get(pair, ()) for pair in pairs}
    return FaultPlan(frozenset(cuts), delays, tickets, requests, disks, clocks)


def _is_a_slow_nodes(fault: RequestFault) -> bool:
    return fault.kind in (FaultKind.DELAY_REQUEST, FaultKind.DELAY_RESPONSE)
