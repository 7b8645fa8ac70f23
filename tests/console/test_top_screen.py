"""The screen of `barnabas top`, with looks that are made up and keys that are pressed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual.pilot import Pilot
from textual.widgets import DataTable, Static, Tabs

from barnabas.console.look import Look, TopicTotals
from barnabas.console.top_screen import TopScreen
from tests.console.test_top_tables import LOOK, gone, seen

PATIENCE_TURNS = 500
HOSTILE = "[red]x[/]"


def names(screen: TopScreen) -> list[str]:
    """Return the first column."""
    table = screen.query_one(DataTable)
    return [str(table.get_cell_at((row, 0))) for row in range(table.row_count)]  # type: ignore[arg-type]


def state(screen: TopScreen) -> str:
    return str(screen.query_one("#state", Static).content)


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Let the screen go on until it shows what a test waits for."""
    for _ in range(PATIENCE_TURNS):
        if holds():
            return
        await pilot.pause(0.01)
    raise AssertionError(f"the screen never showed it: {state(pilot.app)}")  # type: ignore[arg-type]


def test_keys() -> None:
    """One screen for all keys: a screen takes a quarter of a second to begin."""

    async def press() -> None:
        screen = TopScreen("here", lambda: LOOK, 3600)
        async with screen.run_test(size=(100, 30)) as pilot:
            await until(pilot, lambda: bool(names(screen)))
            # Markup in a name is text.
            assert names(screen) == ["orders", HOSTILE, "payments"]
            assert "HEALTHY true" in state(screen)
            await pilot.press("s", "s")
            assert names(screen) == [HOSTILE, "payments", "orders"]
            assert str(screen.query_one(DataTable).ordered_columns[1].label) == "PARTITIONS ▾"
            await pilot.press("slash", "o", "r", "d")
            assert names(screen) == ["orders"]
            await pilot.press("enter", "tab")
            # The filter holds for every table.
            assert (screen.query_one(Tabs).active, names(screen)) == ("groups", [])
            await pilot.press("escape")
            assert names(screen) == ["c", "a", "b"]
            await pilot.press("shift+tab", "shift+tab")
            assert screen.query_one(Tabs).active == "held_back"
            assert str(screen.query_one("#sentence", Static).content) == "No transaction holds readers back."
            await pilot.press("q")
        assert screen.return_code == 0

    asyncio.run(press())


def test_a_cluster_that_goes_away_and_comes_back() -> None:
    looks = [seen(0, old=TopicTotals(1, 5, 9)), gone(), seen(10, new=TopicTotals(1, 5, 9))]
    made: list[Look] = []

    def look() -> Look:
        made.append(looks[len(made)])
        return made[-1]

    async def watch() -> None:
        screen = TopScreen("here", look, 3600)
        async with screen.run_test() as pilot:
            await until(pilot, lambda: names(screen) == ["old"])
            await pilot.press("p")
            assert "paused" in state(screen)
            assert len(made) == 1
            await pilot.press("p")
            await until(pilot, lambda: "Cannot reach here:9092" in state(screen))
            assert "The tables are of 1970-01-01T00:00:00.000Z." in state(screen)
            assert names(screen) == ["old"]
            await pilot.press("p", "p")
            await until(pilot, lambda: names(screen) == ["new"])
            assert "every 3600 s" in state(screen)

    asyncio.run(watch())
