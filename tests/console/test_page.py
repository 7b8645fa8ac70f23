"""Cells, sections and their JSON."""

from __future__ import annotations

from barnabas.cli.output import Found, Table, found_rows
from barnabas.console.page import CELL_CHARACTERS_MAX, Page, Paging, failed_section, grid, section
from barnabas.protocol.errors import ErrorCode, error_for


def test_cells() -> None:
    table = Table(
        ("NAME", "COUNT", "SINCE", "STATE", "LEADERLESS"), [("a\n<b>", 3, "2026-01-01T00:00:00.000Z", "fenced", True)]
    )
    ((name, count, since, state, last),) = grid(table, "Things", {"NAME": lambda value: f"/{value}"}).rows
    assert (name.text, name.link) == ("a\\n<b>", "/a\n<b>")
    assert (count.is_number, last.is_number) == (True, False)
    assert since.is_time
    assert state.mark == "bad"


def test_a_long_value_is_cut() -> None:
    ((cell,),) = grid(Table(("VALUE",), [("x" * 100_000,)]), "Things", {}).rows
    assert cell.text.endswith("… (the first 65536 of 100000 characters)")
    assert len(cell.text) < CELL_CHARACTERS_MAX + 50


def test_no_rows_are_a_sentence() -> None:
    found = section("things", "Things", found_rows(("NAME",), []), empty="There is nothing.")
    assert (found.sentence, found.grids, found.data) == ("There is nothing.", (), [])


def test_what_the_cluster_cannot_answer() -> None:
    found = failed_section("quorum", "Quorum", error_for(ErrorCode.UNSUPPORTED_VERSION))
    assert found.is_failed
    assert found.data == {"error": found.sentence}
    assert found.sentence is not None
    assert "too old" in found.sentence


def test_the_data_of_a_page() -> None:
    found = Found({"healthy": True}, [])
    page = Page("Title", [section("health", "Health", found)], paging=Paging(1, 2, 3, None, "next"))
    assert page.data() == {"health": {"healthy": True}, "page": 1, "pages": 2, "count": 3}
