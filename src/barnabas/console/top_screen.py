"""The screen of `barnabas top`, with Textual.

One look at the cluster follows the other, in a thread, with a pause between them. A cluster that does not answer is a sentence at the top;
the tables of the last answer stay below it. Names come from outside: no cell and no line is read as markup.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Input, Static, Tab, Tabs

from barnabas.console.look import Look
from barnabas.console.page import Cell
from barnabas.console.top_tables import TABS, header, shown
from barnabas.words.times import format_time_ms

CELL_CHARACTERS_MAX = 120
_STYLES = {"good": "green", "bad": "bold red", "": ""}


class TopScreen(App[None]):
    """The tables of a cluster's overview.

    Args:
        cluster: its address, as it is printed.
        look: looks at the cluster; called in a thread.
        interval_s: the pause between two looks.
    """

    TITLE = "barnabas top"
    ENABLE_COMMAND_PALETTE = False
    CSS = "#state { padding: 0 1; } #sentence { padding: 1; } DataTable { height: 1fr; } .away { color: $text-error; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        ("q", "quit", "Quit"),
        ("p", "pause", "Pause"),
        ("slash", "filter", "Filter"),
        ("s", "sort", "Sort"),
        Binding("tab", "turn(1)", "Next table", priority=True),
        Binding("shift+tab", "turn(-1)", "Previous table", show=False, priority=True),
        ("escape", "unfilter", "No filter"),
    ]

    def __init__(self, cluster: str, look: Callable[[], Look], interval_s: float) -> None:
        super().__init__()
        self.is_paused = False
        self._cluster = cluster
        self._look = look
        self._interval_s = interval_s
        self._now: Look | None = None
        self._answered: Look | None = None
        self._before: Look | None = None
        self._tab = 0
        self._sorted_by: dict[int, int] = {}
        self._containing = ""
        self._wake = asyncio.Event()

    def compose(self) -> ComposeResult:
        """Yield the parts of the screen, from the top."""
        yield Static(f"{self._cluster}: the first look …", id="state", markup=False)
        yield Tabs(*(Tab(each.title, id=each.key) for each in TABS))
        yield Input(placeholder="a part of the name", id="filter")
        yield Static("", id="sentence", markup=False)
        yield DataTable(cursor_type="row", zebra_stripes=True)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to look."""
        self.query_one("#filter").display = False
        # The keys belong to the tables: the tabs would take `tab` as a step to the next part of the screen.
        self.query_one(Tabs).can_focus = False
        self.query_one(DataTable).focus()
        self.run_worker(self._watch())

    async def _watch(self) -> None:
        while True:
            self._wake.clear()
            self._take(await asyncio.to_thread(self._look))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), None if self.is_paused else self._interval_s)
            while self.is_paused:
                self._wake.clear()
                await self._wake.wait()

    def _take(self, found: Look) -> None:
        self._now = found
        if found.silence is None:
            self._before, self._answered = self._answered, found
        self._draw()

    def _draw(self) -> None:
        if self._now is None:
            return
        words = header(self._cluster, self._now, self._before)
        if self._now.silence is not None and self._answered is not None:
            words += f"\nThe tables are of {format_time_ms(self._answered.time_ms)}."
        pace = "paused" if self.is_paused else f"every {self._interval_s:g} s"
        state = self.query_one("#state", Static)
        state.update(f"{words}\n{format_time_ms(self._now.time_ms)}  {pace}")
        state.set_class(self._now.silence is not None, "away")
        self._draw_table()

    def _draw_table(self) -> None:
        table, sentence = self.query_one(DataTable), self.query_one("#sentence", Static)
        row, (x, y) = table.cursor_row, table.scroll_offset
        table.clear(columns=True)
        sentence.display = False
        if self._answered is None:
            return
        by = self._sorted_by.get(self._tab)
        made = shown(TABS[self._tab], self._answered, self._before, self._containing, by)
        if made.grid is None:
            sentence.update(made.sentence or "")
            sentence.display = True
            return
        sorted_by = None if by is None else by % len(made.grid.columns)
        for place, column in enumerate(made.grid.columns):
            table.add_column(Text(f"{column} ▾" if place == sorted_by else column))
        for cells in made.grid.rows:
            table.add_row(*map(_text, cells))
        table.move_cursor(row=row, scroll=False)
        table.scroll_to(x, y, animate=False)

    def action_pause(self) -> None:
        """Stop to look, or look again."""
        self.is_paused = not self.is_paused
        self._wake.set()
        self._draw()

    def action_turn(self, step: int) -> None:
        """Show the next table."""
        self._tab = (self._tab + step) % len(TABS)
        self.query_one(Tabs).active = TABS[self._tab].key
        self._draw_table()

    def on_tabs_tab_activated(self, event: Tabs.TabActivated) -> None:
        """Show the table whose name was clicked."""
        clicked = [each.key for each in TABS].index(event.tab.id or TABS[0].key)
        if clicked != self._tab:
            self._tab = clicked
            self._draw_table()

    def action_sort(self) -> None:
        """Sort by the next column, and after the last one as the overview does."""
        by = self._sorted_by.get(self._tab, -1) + 1
        if by < len(self.query_one(DataTable).columns):
            self._sorted_by[self._tab] = by
        else:
            self._sorted_by.pop(self._tab, None)
        self._draw_table()

    def action_filter(self) -> None:
        """Ask for a part of the name."""
        field = self.query_one("#filter", Input)
        field.display = True
        field.focus()

    def action_unfilter(self) -> None:
        """Show all names."""
        field = self.query_one("#filter", Input)
        field.value = ""
        field.display = False
        self.query_one(DataTable).focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the names that contain what is typed."""
        self._containing = event.value
        self._draw_table()

    def on_input_submitted(self) -> None:
        """Go back to the table."""
        self.query_one(DataTable).focus()


def _text(cell: Cell) -> Text:
    words = cell.text if len(cell.text) <= CELL_CHARACTERS_MAX else f"{cell.text[:CELL_CHARACTERS_MAX]}…"
    return Text(words, style=_STYLES[cell.mark], justify="right" if cell.is_number else "left", no_wrap=True)
