"""The rebalances of a group as a picture: a column for each, a lane for each member.

A column has the epoch, a bar as high as the rebalance took long, and the time of day. Columns stand side by side, not to the scale of time:
some rebalances follow each other within a second and others after days. In a member's lane stands what it got and what it lost, and a dot
if it was the member that caused the rebalance. A template draws all this; the tables below the picture have every fact of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.cli.wording import counted
from barnabas.client.groups import GroupRebalance
from barnabas.words.printable import printable
from barnabas.words.times import format_time_ms

COLUMNS_MAX, LANES_MAX = 12, 12
LABEL, COLUMN, LANE, BARS, FOOT = 170, 84, 26, 70, 24
"""Width of the lanes' names and of a column; height of a lane, of the longest bar, and of the times below."""
TOP = 34
_NAME_CHARACTERS_MAX = 22
_MINUS = "−"


class Column(NamedTuple):
    """A rebalance.

    Attributes:
        x: its middle.
        height: of its bar.
        took: such as `1.3 s`, `goes on` or `superseded`.
        clock: the time of day at which it began, in UTC.
        title: its cause.
        has_ended: if not, the bar has no end.
    """

    x: float
    epoch: int
    height: float
    took: str
    clock: str
    title: str
    has_ended: bool


class Mark(NamedTuple):
    """Partitions that a member got and lost in a rebalance, such as `+3 −1`; whether the member was the cause."""

    x: float
    words: str
    is_cause: bool


class Lane(NamedTuple):
    """A member.

    Attributes:
        name: its client id, or its member id if the rebalances do not tell more; cut.
        title: its whole member id.
    """

    y: float
    name: str
    title: str
    marks: Sequence[Mark]


class Timeline(NamedTuple):
    """The picture; `described` says in a sentence what it shows."""

    columns: Sequence[Column]
    lanes: Sequence[Lane]
    described: str
    width: float
    height: float
    label: int = LABEL
    base: int = TOP + BARS
    """Where the bars stand."""


def rebalance_timeline(rebalances: Sequence[GroupRebalance]) -> Timeline | None:
    """Return the picture of a group's last rebalances, the oldest first; None if there was no rebalance."""
    shown = rebalances[-COLUMNS_MAX:]
    if not shown:
        return None
    longest = max((_took_ms(each) or 0 for each in shown), default=0) or 1
    columns = [_column(index, each, longest) for index, each in enumerate(shown)]
    members = _members(shown)
    names = {each.member_id: each.client_id for each in shown if each.client_id}
    lanes = [
        _lane(TOP + BARS + 30 + LANE * index, member, names.get(member) or member, shown)
        for index, member in enumerate(members[:LANES_MAX])
    ]
    return Timeline(
        columns,
        lanes,
        _described(shown, len(members) - len(lanes)),
        LABEL + COLUMN * len(columns),
        TOP + BARS + 20 + LANE * len(lanes) + FOOT,
    )


def _column(index: int, rebalance: GroupRebalance, longest_ms: int) -> Column:
    took_ms = _took_ms(rebalance)
    height = BARS if took_ms is None else max(2.0, round(BARS * took_ms / longest_ms, 1))
    words = "goes on" if took_ms is None else _seconds(took_ms)
    return Column(
        _middle(index),
        rebalance.epoch,
        height,
        "superseded" if rebalance.superseded else words,
        format_time_ms(rebalance.started_ms)[11:19],
        printable(rebalance.cause),
        took_ms is not None,
    )


def _middle(index: int) -> float:
    return LABEL + COLUMN * (index + 0.5)


def _took_ms(rebalance: GroupRebalance) -> int | None:
    return None if rebalance.ended_ms is None else max(0, rebalance.ended_ms - rebalance.started_ms)


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def _members(rebalances: Sequence[GroupRebalance]) -> list[str]:
    """Return the members that the rebalances name, in the order in which they appear."""
    found: dict[str, None] = {}
    for each in rebalances:
        for member in (each.member_id, *(id_ for one in each.moved for id_ in (one.from_member, one.to_member))):
            if member:
                found.setdefault(member)
    return list(found)


def _lane(y: float, member: str, name: str, rebalances: Sequence[GroupRebalance]) -> Lane:
    marks = []
    for index, each in enumerate(rebalances):
        got = sum(one.to_member == member for one in each.moved)
        lost = sum(one.from_member == member for one in each.moved)
        words = " ".join([f"+{got}"] * bool(got) + [f"{_MINUS}{lost}"] * bool(lost))
        if words or each.member_id == member:
            marks.append(Mark(_middle(index), words, each.member_id == member))
    return Lane(y, _cut(printable(name)), printable(member), marks)


def _cut(name: str) -> str:
    return name if len(name) <= _NAME_CHARACTERS_MAX else f"{name[: _NAME_CHARACTERS_MAX - 1]}…"


def _described(shown: Sequence[GroupRebalance], others: int) -> str:
    moved = sum(len(each.moved) for each in shown)
    ended = [(took, each) for each in shown if (took := _took_ms(each)) is not None]
    parts = [
        f"{counted(len(shown), 'rebalance')} from {format_time_ms(shown[0].started_ms)} to "
        f"{format_time_ms(shown[-1].started_ms)}; {counted(moved, 'partition')} moved."
    ]
    if ended:
        took, longest = max(ended, key=lambda each: each[0])
        parts.append(f"The longest, epoch {longest.epoch}, took {_seconds(took)}: {printable(longest.cause)}.")
    causes = Counter(each.client_id for each in shown if each.client_id)
    if causes and (most := causes.most_common(1)[0])[1] > 1:
        parts.append(f"Client {printable(most[0])} caused {most[1]} of them.")
    if others > 0:
        parts.append(f"The table has {counted(others, 'more member')}.")
    return " ".join(parts)
