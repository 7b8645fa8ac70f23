"""What `barnabas adopt next --beside` may see: node 4 comes, of barnabas, and node 2 of three leaves; all are brokers and voters."""

from __future__ import annotations

from typing import Any

from barnabas.adopt.beside_sight import Coming, Leaving, Sight
from barnabas.client.program import Program

BOTH = ("broker", "controller")
NEW = Coming(4, BOTH, Program.SILENT, is_formatted=False, is_held=False, serves=False, is_voter=False, lag=None)
OLD = Leaving(2, BOTH, is_registered=True, serves=True, runs=True, replicas=5, is_voter=True)
THERE = NEW._replace(program=Program.BARNABAS, is_formatted=True, is_held=True, serves=True, lag=0)
GONE = OLD._replace(roles=(), is_registered=False, serves=False, runs=False, replicas=0, is_voter=False)


def sight(coming: Coming = NEW, leaving: Leaving = OLD, **fields: Any) -> Sight:
    """Return a dynamic quorum that node 1 leads, with these nodes."""
    return Sight(coming, leaving, **{"leader": 1, "can_vote": True, "nodes": (1, 2, 3), **fields})
