"""The machine of `barnabas adopt next` and `back`: from what is seen now to what comes next. No I/O, and no memory but `asked`.

    runs as the other program ──STOP──► runs still ──WAIT──► away, directory held ──WAIT──► away, directory free
                                                                                                    │ START
        DONE ◄── in sync, caught up ◄──WAIT── runs as the wanted program ◄──WAIT── not there yet ◄──┘

- A run that was killed left no trace, so the next run looks and goes on from the same place.
- The caller asks `gate` before STOP alone: a node that is away is helped by nothing but its start.
- A doubt is about other nodes while this one changes. The caller stops when it lasts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from barnabas.adopt.change import Act, Step, Turn
from barnabas.adopt.observation import OwnNode, Seen, SeenNode
from barnabas.cli.wording import counted, listed
from barnabas.client.program import Program, other_program

__all__ = ["doubts", "gate", "next_step", "next_turn", "order", "unhealthy"]

_CAUGHT_UP_BEFORE_MS = 5_000
_CAUGHT_UP_AFTER_MS = 2_000
_VOTERS_MIN = 3


def next_turn(seen: Seen | None, own: OwnNode, wanted: Program, asked: Act | None) -> Turn:
    """Return what comes next, with the doubts: none between STOP and START, because the node that is away is started first."""
    step = next_step(seen, own, wanted, asked)
    # A command that failed explains nothing when the node is where it shall be.
    return Turn(step, () if asked == Act.STOP else doubts(seen, own), own.is_held == (asked == Act.STOP))


def next_step(seen: Seen | None, own: OwnNode, wanted: Program, asked: Act | None = None) -> Step:
    """Return what comes next.

    Args:
        seen: None if no broker answers.
        wanted: the program that the node shall become.
        asked: the last of STOP and START that this run has asked for.
    """
    if seen is None:
        return _unseen(own, asked)
    node = seen.nodes.get(own.id)
    if node is None:
        return _unknown(seen, own)
    if node.program == wanted:
        left = tuple(_not_back(node, seen))
        return Step(Act.WAIT, left) if left else Step(Act.DONE)
    if node.program == Program.STOPPED:
        return _away(own, asked)
    if node.program == Program.SILENT:
        return Step(Act.WAIT, (f"node {own.id} does not answer: {node.why}",))
    if asked == Act.STOP:
        return Step(Act.WAIT, (f"node {own.id} still runs",))
    if node.program == Program.UNKNOWN:
        return Step(Act.REFUSE, (f"which program node {own.id} runs cannot be seen: {node.why}",))
    if asked == Act.START:
        again = f"{node.program.value} runs on node {own.id} again: a service manager may restart it; disable that service first"
        return Step(Act.REFUSE, (again,))
    return Step(Act.STOP)


def _unseen(own: OwnNode, asked: Act | None) -> Step:
    if own.is_held or own.listens:
        return Step(Act.WAIT, ("no broker answers, and a process has the directory",))
    if asked == Act.START:
        return Step(Act.WAIT, ("no broker answers",))
    if own.is_alone or asked == Act.STOP:
        return Step(Act.START, needs_health=False)
    return Step(Act.REFUSE, ("no broker of the cluster answers: name several with -b, of other nodes than this one",))


def _unknown(seen: Seen, own: OwnNode) -> Step:
    if seen.leader < 0:
        return Step(Act.WAIT, ("no broker says who leads the quorum",))
    known = listed(sorted(seen.nodes))
    return Step(Act.REFUSE, (f"node {own.id} is not part of this cluster, whose nodes are {known}",))


def _away(own: OwnNode, asked: Act | None) -> Step:
    if own.is_held:
        return Step(Act.WAIT, (f"nothing answers at the address of node {own.id}, and a process has its directory",))
    if asked == Act.START:
        return Step(Act.WAIT, (f"node {own.id} is not there yet",))
    if own.listens:
        return Step(Act.WAIT, (f"node {own.id} has left its directory, and still listens",))
    return Step(Act.START, needs_health=False)


def _not_back(node: SeenNode, seen: Seen) -> Iterator[str]:
    if seen.leader < 0:
        yield "the quorum has no leader"
    if node.is_down:
        yield f"the cluster does not count node {node.id} as serving yet"
    if seen.behind:
        yield f"{counted(seen.behind, 'replica')} not in sync"
    if not node.is_caught_up(_CAUGHT_UP_AFTER_MS):
        yield f"its metadata log is {counted(node.voter_lag or 0, 'record')} behind"


def gate(seen: Seen, own: OwnNode) -> Iterator[str]:
    """Yield what forbids to stop a node now."""
    if not own.is_held:
        yield (
            f"node {own.id} runs, and no process has the lock of its directory: this is another directory, another machine, or a copy"
        )
    yield from unhealthy(seen, {own.id})
    if seen.moving:
        yield f"the replicas of {counted(seen.moving, 'partition')} move: wait until `barnabas cluster status` counts none"
    if not seen.problems and seen.behind:
        yield f"{counted(seen.behind, 'replica')} not in sync: wait, or see `barnabas cluster status`"
    for each in seen.voters:
        if not each.is_caught_up(_CAUGHT_UP_BEFORE_MS):
            yield f"the metadata log of controller {each.id} is {counted(each.voter_lag or 0, 'record')} behind: wait"


def unhealthy(seen: Seen, changing: Collection[int]) -> Iterator[str]:
    """Yield what is wrong with a cluster; its nodes that change may be away."""
    for problem, where, remedy in seen.problems:
        yield f"the cluster is not healthy: {problem}: {listed(list(where))} ({remedy})"
    named = {place for each in seen.problems for place in each.where}
    for each in seen.nodes.values():
        is_away = each.is_down or each.program == Program.STOPPED
        if each.id not in changing and is_away and named.isdisjoint((f"broker {each.id}", f"controller {each.id}")):
            yield f"node {each.id} is down: start it first; two nodes away may be more than the cluster bears"
    if seen.leader < 0:
        yield "the quorum has no leader: start a majority of its controllers"


def order(seen: Seen, wanted: Program) -> list[int]:
    """Return the nodes that are still the other program, in the best order to change them: the active controller last."""
    return sorted(seen.running(other_program(wanted)), key=lambda each: (each == seen.leader, each))


def doubts(seen: Seen | None, own: OwnNode) -> tuple[str, ...]:
    """Return what is wrong with the rest of the cluster while this node changes."""
    if seen is None:
        return ()
    others = [each.id for each in seen.nodes.values() if each.id != own.id and each.is_down]
    found = [f"node {each} is down, too" for each in others]
    if seen.leader < 0 and len(seen.voters) >= _VOTERS_MIN:
        found.append("the quorum has no leader")
    return tuple(found)
