"""Creations and deletions of a topic have one order that explains every answer: each took effect between its request and its answer.

The search of Wing and Gong, over the states "no topic" and "the topic with this id". A request without an answer may take effect at any
time after it was sent, or never. A refused one may have had its effect, at a try whose answer the broker has lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.simulation.history import History
from tests.simulation.topic_operation import Kind, Outcome, TopicOperation

State = bytes | None
UNSEEN = b"a topic whose id nobody has seen"
MOST_STATES = 300_000
"""After so many the search ends. Runs have some dozens of operations, and need a few hundred."""


def check(history: History) -> list[str]:
    asked = history.topic_operations
    created = {each.topic_id for each in asked if each.kind is Kind.CREATE and each.outcome is Outcome.DONE}
    seen = {each.topic_id for each in asked if each.topic_id is not None}
    others = sorted(each for each in seen - created if each is not None)
    found = [
        f"{each.client} saw {_named(each.topic_id)} at {each.ended:.6f}, before anybody had asked to create it"
        for each in asked
        if each.topic_id is not None and each.ended < _earliest(each.topic_id, asked, created)
    ]
    judged = [each for each in asked if each.kind is not Kind.LOOK]
    longest = _longest_explained(judged, others)
    if longest is not None:
        found.append("no order explains " + ", ".join(map(_told, longest)))
    return found


def _earliest(topic_id: State, asked: Sequence[TopicOperation], created: set[State]) -> float:
    """Return when the creation of a topic was asked for at the earliest."""
    creations = [each for each in asked if each.kind is Kind.CREATE]
    if topic_id in created:
        return min(each.began for each in creations if each.topic_id == topic_id)
    return min((each.began for each in creations if each.outcome is not Outcome.DONE), default=float("inf"))


def _longest_explained(asked: Sequence[TopicOperation], others: Sequence[bytes]) -> list[TopicOperation] | None:
    """Return None if an order explains all answers, else what remains of the order that goes furthest."""
    needed = sum(1 << index for index, each in enumerate(asked) if each.outcome is not Outcome.UNKNOWN)
    stack: list[tuple[int, State]] = [(0, None)]
    known = set(stack)
    best = 0
    while stack:
        done, state = stack.pop()
        if done & needed == needed:
            return None
        if (done & needed).bit_count() > (best & needed).bit_count():
            best = done
        for index in _next(asked, done, needed):
            for after in _after(asked[index], state, others):
                if (step := (done | 1 << index, after)) not in known:
                    known.add(step)
                    stack.append(step)
        assert len(known) < MOST_STATES, f"the order of {len(asked)} operations on a topic takes too long to find"
    return [each for index, each in enumerate(asked) if needed & ~best & 1 << index]


def _next(asked: Sequence[TopicOperation], done: int, needed: int) -> Iterator[int]:
    """Yield what may take effect next: those without an answer first, so that the search tries them last."""
    left = [index for index in range(len(asked)) if not done & 1 << index]
    deadline = min(asked[index].ended for index in left if needed & 1 << index)
    alike: set[tuple[Kind, State]] = set()
    for index in left:
        each = asked[index]
        if each.began > deadline or needed & 1 << index:
            continue
        # Two without an answer that do the same may take effect in the order in which they began.
        if (each.kind, each.topic_id) not in alike:
            alike.add((each.kind, each.topic_id))
            yield index
    yield from (index for index in reversed(left) if needed & 1 << index and asked[index].began <= deadline)


def _after(each: TopicOperation, state: State, others: Sequence[bytes]) -> Iterator[State]:
    """Yield the states that an operation may leave, nothing if it cannot have had its answer in this one."""
    if each.kind is Kind.READ:
        if state == each.topic_id:
            yield state
    elif each.kind is Kind.DELETE:
        if state == each.topic_id:
            yield None
        elif each.outcome is Outcome.REFUSED:
            yield state
    elif state is not None:
        if each.outcome is Outcome.REFUSED:
            yield state
    elif each.outcome is Outcome.DONE:
        yield each.topic_id
    else:
        yield UNSEEN
        yield from others


def _named(topic_id: State) -> str:
    return "no topic" if topic_id is None else f"topic {topic_id[-4:].hex()}"


def _told(each: TopicOperation) -> str:
    about = "" if each.topic_id is None and each.kind is Kind.CREATE else f" {_named(each.topic_id)}"
    return f"{each.kind.name.lower()}{about} of {each.client} {each.outcome.name.lower()} {each.began:.6f}-{each.ended:.6f}"
