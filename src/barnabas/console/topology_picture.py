"""The topology of a Kafka Streams application as a picture: a box for each subtopology, and lines where records pass through the cluster.

A subtopology that reads an internal topic which another one writes stands to the right of it. A box has the topics that the subtopology
reads, the stores that it keeps and the internal topics that it writes, with as many lines as fit; the table below the picture has all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.cli.wording import counted
from barnabas.client.group_descriptions import Subtopology
from barnabas.words.printable import printable

BOX, GAP, LINE, MARGIN = 290, 60, 18, 10
"""Width of a box, and between boxes; height of a line of text."""
BOXES_MAX, LINES_MAX, CHARACTERS_MAX = 60, 9, 28


class Box(NamedTuple):
    """A subtopology; `lines` are what it reads, keeps and writes, in words."""

    x: float
    y: float
    height: float
    title: str
    lines: Sequence[str]


class Arrow(NamedTuple):
    """From a box that writes an internal topic to one that reads it; `path` is in SVG's commands, `title` the topic."""

    path: str
    title: str


class TopologyPicture(NamedTuple):
    """The picture; `described` says in a sentence what it shows."""

    boxes: Sequence[Box]
    arrows: Sequence[Arrow]
    described: str
    width: float
    height: float
    box: int = BOX
    line: int = LINE


def topology_picture(subtopologies: Sequence[Subtopology]) -> TopologyPicture | None:
    """Return the picture of an application; None without subtopologies."""
    shown = subtopologies[:BOXES_MAX]
    if not shown:
        return None
    columns = _columns(shown)
    boxes: dict[str, Box] = {}
    for depth, column in enumerate(columns):
        y = float(MARGIN)
        for each in column:
            lines = _lines(each)
            height = LINE * (len(lines) + 1.6)
            x = float(MARGIN + depth * (BOX + GAP))
            boxes[each.subtopology_id] = Box(x, y, height, f"Subtopology {_cut(each.subtopology_id)}", lines)
            y += height + MARGIN * 2
    arrows = [
        _arrow(boxes[writer.subtopology_id], boxes[reader.subtopology_id], topic)
        for writer in shown
        for reader in shown
        for topic in writer.repartition_sinks
        if topic in reader.repartition_sources
    ]
    stores = sum(len(each.changelogs) for each in subtopologies)
    described = f"{_subtopologies(len(subtopologies))}, {counted(stores, 'store')} with a changelog."
    if len(subtopologies) > len(shown):
        described += f" The picture has the first {len(shown)}."
    width = 2 * MARGIN + len(columns) * BOX + (len(columns) - 1) * GAP
    return TopologyPicture(
        list(boxes.values()), arrows, described, width, max(each.y + each.height for each in boxes.values()) + MARGIN
    )


def _subtopologies(count: int) -> str:
    return "1 subtopology" if count == 1 else f"{count} subtopologies"


def _columns(subtopologies: Sequence[Subtopology]) -> list[list[Subtopology]]:
    """Return them by depth: one deeper than the deepest that writes for them. A circle does not make them deeper without end."""
    depths = {each.subtopology_id: 0 for each in subtopologies}
    for _ in subtopologies:
        for reader in subtopologies:
            for writer in subtopologies:
                is_fed = writer is not reader and set(writer.repartition_sinks) & set(reader.repartition_sources)
                deeper = depths[writer.subtopology_id] + 1
                if is_fed and depths[reader.subtopology_id] < deeper < len(subtopologies):
                    depths[reader.subtopology_id] = deeper
    used = sorted(set(depths.values()))
    return [[each for each in subtopologies if depths[each.subtopology_id] == depth] for depth in used]


def _lines(subtopology: Subtopology) -> list[str]:
    lines = [
        *(f"reads {_cut(topic)}" for topic in (*subtopology.sources, *subtopology.repartition_sources)),
        *(f"keeps {_cut(topic)}" for topic in subtopology.changelogs),
        *(f"writes {_cut(topic)}" for topic in subtopology.repartition_sinks),
    ]
    if len(lines) > LINES_MAX:
        lines = [*lines[: LINES_MAX - 1], f"and {len(lines) - LINES_MAX + 1} more"]
    return lines


def _arrow(writer: Box, reader: Box, topic: str) -> Arrow:
    begin, end = (writer.x + BOX, writer.y + LINE), (reader.x, reader.y + LINE)
    if writer.x >= reader.x:  # Back, or to itself: around the right side of the box.
        end = (reader.x + BOX, reader.y + reader.height - LINE / 2)
    bend = GAP / 2
    path = f"M{begin[0]:g} {begin[1]:g} C{begin[0] + bend:g} {begin[1]:g} "
    back = end[0] + bend if writer.x >= reader.x else end[0] - bend
    return Arrow(f"{path}{back:g} {end[1]:g} {end[0]:g} {end[1]:g}", printable(topic))


def _cut(name: str) -> str:
    """Return a name with its end, which tells an application's internal topics apart."""
    name = printable(name)
    return name if len(name) <= CHARACTERS_MAX else f"…{name[1 - CHARACTERS_MAX :]}"
