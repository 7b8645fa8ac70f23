"""The faults that a test has ordered, as a cluster sends them to its nodes.

    Cluster ── one line of JSON ──► each node: the whole plan, at the start and after each change

A node applies the whole plan and forgets the plan before it. So a node that was down or paused needs no history.

- `cuts`: pairs (from, to) of nodes; nothing that the first sends reaches the second.
- `delays`: seconds by pair (from, to); what the first sends reaches the second so much later.
- `slow`: seconds by node; a client's request waits so long before this node handles it.
- `requests`: what happens to clients' requests of one API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["NO_FAULTS", "FaultPlan", "RequestFault"]


class RequestFault(NamedTuple):
    """A fault for the next requests of one API.

    Attributes:
        error_code: the response's error, and the request is not carried out; None: it is carried out, and the connection closes instead
            of a response.
        times: how many requests; -1 for all.
        tickets: the file that counts them (`fault_tickets`).
    """

    api_key: int
    error_code: int | None
    times: int
    tickets: str


class FaultPlan(NamedTuple):
    """All faults of a cluster; `NO_FAULTS` has none."""

    cuts: frozenset[tuple[int, int]] = frozenset()
    delays: Mapping[tuple[int, int], float] = {}
    slow: Mapping[int, float] = {}
    requests: Mapping[int, tuple[RequestFault, ...]] = {}
    """By node."""

    def in_words(self) -> str:
        """Return the faults as a part of a sentence; empty without one."""
        words = [
            f"nodes {one} and {other} are cut from each other"
            for one, other in sorted(self.cuts)
            if one < other and (other, one) in self.cuts
        ]
        one_way = sorted((source, target) for source, target in self.cuts if (target, source) not in self.cuts)
        words += [f"nothing from node {source} reaches node {target}" for source, target in one_way]
        if any((*self.delays.values(), *self.slow.values())):
            words.append("messages are delayed")
        if any(self.requests.values()):
            words.append("requests fail on purpose")
        return ", ".join(words)

    def to_json(self, node_id: int) -> dict[str, Any]:
        """Return what one node has to know, as `from_json` reads it."""
        return {
            "cuts": sorted(self.cuts),
            "delays": [[*pair, seconds] for pair, seconds in self.delays.items()],
            "slow": self.slow.get(node_id, 0.0),
            "requests": list(self.requests.get(node_id, ())),
        }

    @classmethod
    def from_json(cls, node_id: int, found: Mapping[str, Any]) -> FaultPlan:
        return cls(
            cuts=frozenset((source, target) for source, target in found["cuts"]),
            delays={(source, target): seconds for source, target, seconds in found["delays"]},
            slow={node_id: found["slow"]} if found["slow"] else {},
            requests={node_id: tuple(RequestFault(*each) for each in found["requests"])},
        )


NO_FAULTS = FaultPlan()
