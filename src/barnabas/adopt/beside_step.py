"""The machine of `barnabas adopt next --beside`: from what is seen now to what comes next. No I/O, and no memory but `asked`.

    FORMAT ──► START ──► (in sync with the metadata log) ──► ADD_VOTER ──► MOVE ──► REMOVE_VOTER ──► STOP ──► FORGET ──► DONE
    the node that comes                                     if both vote          └──────── the node that leaves ────────┘

- Nothing is taken from the old node before the new one has it: a replica is copied first, and a voter is added first.
- A run that was killed left no trace but in the cluster and in the directory, so the next run looks and goes on from the same place.
- A node that leads the quorum is stopped before it loses its vote. Apache Kafka's node then asks only its bootstrap servers for the new
  leader; if these have all left, it waits for one until it is killed.
- The way back is the same with the two nodes exchanged, from any step on.
- A run that does not find the node that is to leave is refused: nothing tells a node that was replaced from a mistyped id.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.adopt.beside_sight import Coming, Leaving, Sight
from barnabas.adopt.change import Act, Step, Turn
from barnabas.cli.wording import counted, listed
from barnabas.client.program import Program, other_program

__all__ = ["beside_step", "beside_turn", "impossible"]

_LAG_MAX = 10
"""A node that is fewer records of the metadata log behind counts as caught up: a quorum at work writes some all the time."""


def beside_turn(sight: Sight | None, wanted: Program, asked: Act | None) -> Turn:
    """Return what comes next; `sight` is None if no broker answers."""
    return Turn(_wait("no broker answers") if sight is None else beside_step(sight, wanted, asked))


def beside_step(sight: Sight, wanted: Program, asked: Act | None = None) -> Step:
    """Return what comes next.

    Args:
        wanted: the program of the node that comes.
        asked: the last action that this run has asked for.
    """
    coming, leaving = sight.coming, sight.leaving
    if found := tuple(impossible(sight, wanted, asked)):
        return Step(Act.REFUSE, found)
    if sight.leader < 0:
        return _wait("the quorum has no leader")
    if not coming.is_formatted:
        return Step(Act.FORMAT)
    if not coming.is_held:
        if asked == Act.START:
            return _wait(f"node {coming.id} is not there yet")
        return Step(Act.START, needs_health=False)
    if left := tuple(_not_there(coming)):
        return _wait(*left)
    if leaving.is_voter and not coming.is_voter:
        return Step(Act.ADD_VOTER)
    if sight.moving:
        return _wait(f"the replicas of {counted(sight.moving, 'partition')} move")
    if leaving.replicas:
        return Step(Act.MOVE)
    if sight.behind:
        return _wait(f"{counted(sight.behind, 'replica')} not in sync")
    return _farewell(leaving, sight.leader, asked)


def _farewell(leaving: Leaving, leader: int, asked: Act | None) -> Step:
    """Return what is left to do with a node that holds nothing."""
    leads = leaving.id == leader
    if leaving.is_voter and not leads:
        return Step(Act.REMOVE_VOTER, needs_health=leaving.runs)
    if leaving.runs:
        is_asked = asked in (Act.STOP, Act.FORGET)
        return _wait(f"node {leaving.id} still runs") if is_asked else Step(Act.STOP)
    if leads:
        return _wait(f"the quorum still counts node {leaving.id} as its leader")
    if leaving.serves:
        return _wait(f"the cluster still counts node {leaving.id} as serving")
    return Step(Act.FORGET, needs_health=False) if leaving.is_registered else Step(Act.DONE)


def impossible(sight: Sight, wanted: Program, asked: Act | None = None) -> Iterator[str]:
    """Yield why a node cannot take the place of another one; `asked` as `beside_step` gets it."""
    coming, leaving = sight.coming, sight.leaving
    if coming.id == leaving.id:
        yield f"node {coming.id} cannot take its own place: the new node has another id; without --beside a node changes in place"
        return
    if coming.program == other_program(wanted):
        yield f"node {coming.id} runs {coming.program.value}, not {wanted.value}"
    if not leaving.roles and sight.leader >= 0 and not (coming.serves and asked):
        already = (
            f"; node {coming.id} is {wanted.value} already: if it has replaced node {leaving.id}, nothing is left to do,"
            " else correct --beside"
        )
        yield (
            f"node {leaving.id} is not part of this cluster, whose nodes are {listed(list(sight.nodes))}"
            f"{already if coming.serves and coming.program == wanted else ''}"
        )
    if leaving.is_voter and not sight.can_vote:
        yield (
            f"node {leaving.id} is a voter of a quorum that cannot change: controller.quorum.voters names its voters (kraft.version 0);"
            " let this node change in place, without --beside"
        )
    # A broker that was just forgotten looks like a controller without a vote: for some seconds it counts as a reader.
    is_forgotten = coming.serves and not leaving.is_registered and not leaving.is_voter
    missing = [each for each in leaving.roles if each not in coming.roles]
    if missing and not is_forgotten:
        yield f"node {leaving.id} is {listed(missing)} too, and the file of node {coming.id} has process.roles={','.join(coming.roles)}"


def _not_there(coming: Coming) -> Iterator[str]:
    if not coming.serves:
        yield f"the cluster does not count node {coming.id} as serving yet"
    elif "broker" in coming.roles and coming.program in (Program.STOPPED, Program.SILENT, Program.UNKNOWN):
        yield f"which program node {coming.id} runs cannot be seen yet"
    if coming.lag is None or coming.lag > _LAG_MAX:
        yield f"the metadata log of node {coming.id} is not complete yet"


def _wait(*reasons: str) -> Step:
    return Step(Act.WAIT, reasons)
