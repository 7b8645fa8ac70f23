"""Subtopologies as boxes, and the lines between them."""

from __future__ import annotations

from barnabas.client.group_descriptions import Subtopology
from barnabas.console.topology_picture import BOX, BOXES_MAX, GAP, LINES_MAX, MARGIN, topology_picture

COUNTS = "app-KSTREAM-REDUCE-STATE-STORE-0000000003-repartition"


def test_nothing_has_no_picture() -> None:
    assert topology_picture([]) is None


def test_the_reader_stands_to_the_right_of_its_writer() -> None:
    found = topology_picture(
        [
            Subtopology("1", [], [COUNTS], [], ["app-counts-changelog"]),
            Subtopology("0", ["orders"], [], [COUNTS], []),
        ]
    )
    assert found is not None
    assert {each.title: each.x for each in found.boxes} == {
        "Subtopology 0": MARGIN,
        "Subtopology 1": MARGIN + BOX + GAP,
    }
    assert [each.lines for each in found.boxes] == [
        ["reads orders", f"writes …{COUNTS[-27:]}"],
        [f"reads …{COUNTS[-27:]}", "keeps app-counts-changelog"],
    ]
    assert [(each.path, each.title) for each in found.arrows] == [("M300 28 C330 28 330 28 360 28", COUNTS)]
    assert found.described == "2 subtopologies, 1 store with a changelog."


def test_a_circle_ends() -> None:
    found = topology_picture(
        [Subtopology("0", [], ["a"], ["b"], []), Subtopology("1", [], ["b"], ["a"], []), Subtopology("2", [], ["c"], ["c"], [])]
    )  # fmt: skip
    assert found is not None
    assert sorted(each.title for each in found.arrows) == ["a", "b", "c"]
    assert len({(each.x, each.y) for each in found.boxes}) == 3


def test_what_is_large_is_cut_and_hostile_names_drive_nothing() -> None:
    topics = [f"topic-{each}\x1b[2J" for each in range(LINES_MAX + 3)]
    found = topology_picture([Subtopology(str(each), topics, [], [], []) for each in range(BOXES_MAX + 2)])
    assert found is not None
    assert len(found.boxes) == BOXES_MAX
    assert found.described.endswith(f"The picture has the first {BOXES_MAX}.")
    assert found.boxes[0].lines[-1] == "and 4 more"
    assert found.boxes[0].lines[0] == "reads topic-0\\x1b[2J"
