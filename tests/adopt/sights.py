"""What `barnabas adopt next` may see of a made-up cluster of three nodes, each a broker and a voter, of which node 1 leads the quorum.

In place node 2 changes; with `--beside` node 4 comes, and node 2 leaves.
"""

from __future__ import annotations

from typing import Any

from barnabas.adopt.beside_sight import Coming, Leaving, Sight
from barnabas.adopt.observation import OwnNode, Seen, SeenNode
from barnabas.client.program import Program

KAFKA, OURS, STOPPED, SILENT, UNKNOWN = (
    Program.KAFKA,
    Program.BARNABAS,
    Program.STOPPED,
    Program.SILENT,
    Program.UNKNOWN,
)
HELD = OwnNode(2, is_held=True)
FREE = OwnNode(2, is_held=False)


def node(node_id: int, program: Program, **fields: Any) -> SeenNode:
    given = {"behind": 0, "voter_lag": 0, "caught_up_ago_ms": 0, **fields}
    return SeenNode(node_id, ("broker", "controller"), program, **given)


def seen(*programs: Program, leader: int = 1, **of_two: Any) -> Seen:
    """Return a cluster whose nodes 1, 2, 3 are these programs; `of_two` are further attributes of node 2."""
    nodes = {n: node(n, program, **(of_two if n == 2 else {})) for n, program in enumerate(programs, 1)}
    return Seen("4L6g3nShT-eMCtK--X86sw", nodes, leader, 5)


BOTH = ("broker", "controller")
NEW = Coming(4, BOTH, Program.SILENT, is_formatted=False, is_held=False, serves=False, is_voter=False, lag=None)
OLD = Leaving(2, BOTH, is_registered=True, serves=True, runs=True, replicas=5, is_voter=True)
THERE = NEW._replace(program=Program.BARNABAS, is_formatted=True, is_held=True, serves=True, lag=0)
GONE = OLD._replace(roles=(), is_registered=False, serves=False, runs=False, replicas=0, is_voter=False)


def sight(coming: Coming = NEW, leaving: Leaving = OLD, **fields: Any) -> Sight:
    """Return a dynamic quorum that node 1 leads, with these nodes."""
    return Sight(coming, leaving, **{"leader": 1, "can_vote": True, "nodes": (1, 2, 3), **fields})
