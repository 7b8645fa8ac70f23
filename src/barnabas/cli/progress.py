"""Progress of long work: one line on standard error, on a terminal only.

The working thread counts as it does anyway; a thread of rich reads the counts four times a second, so the hot loop pays nothing.
The line appears after a second, and vanishes at the end.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, NamedTuple

from barnabas.cli.long_blocks import if_longer_than

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_AFTER_S = 1.0
_MEGA = 1_000_000


class Measured(NamedTuple):
    """How far the work is.

    Attributes:
        text: what is done, in words and numbers.
        done: how much is done, in the unit of `total`.
        total: how much there is to do; None if that is unknown.
    """

    text: str
    done: float = 0
    total: float | None = None


def on_terminal(stream: IO[str] | None = None) -> bool:
    """Return whether progress may be drawn on the stream, standard error by default."""
    stream = stream or sys.stderr
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def output_is_a_file() -> bool:
    """Return whether standard output goes into a file: on a terminal or in a pipe to one, records and progress would mix."""
    try:
        mode = os.fstat(sys.stdout.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not sys.stdout.isatty())


def rate(records: int, size_bytes: int, seconds: float) -> str:
    """Return a count of records and their speed, in words."""
    plural = "" if records == 1 else "s"
    return f"{records:,} record{plural}  {size_bytes / _MEGA / max(seconds, 0.001):,.1f} MB/s"


@contextmanager
def shown(
    measure: Callable[[], Measured], *, wanted: bool = True, after_s: float = _AFTER_S, console: Console | None = None
) -> Iterator[None]:
    """Show progress while the block runs, if it runs for longer than `after_s`.

    Args:
        measure: called by another thread.
        wanted: False shows nothing.
        console: where to draw; None is standard error, if that is a terminal.
    """
    if not wanted or (console is None and not on_terminal()):
        yield
        return
    bar: list[Progress] = []

    def begin() -> None:
        bar.append(progress_bar(measure, console))
        bar[0].start()

    try:
        with if_longer_than(after_s, begin):
            yield
    finally:
        for each in bar:
            each.stop()


def progress_bar(measure: Callable[[], Measured], console: Console | None = None) -> Progress:
    """Return a bar of rich that asks `measure` whenever it draws itself."""
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    known = measure().total is not None
    columns = (BarColumn(), TaskProgressColumn(), TimeRemainingColumn(compact=True)) if known else ()

    class Bar(Progress):
        def get_renderables(self) -> Iterator[RenderableType]:
            now = measure()
            for task in self.task_ids:
                self.update(task, description=now.text, completed=now.done, total=now.total)
            yield from super().get_renderables()

    bar = Bar(
        TextColumn("{task.description}", markup=False),
        *columns,
        console=console or Console(stderr=True),
        transient=True,
        refresh_per_second=4,
        redirect_stdout=False,
    )
    bar.add_task("", total=None)
    return bar


class InputFile:
    """How much of standard input is read, if it is a file."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        self.size = None if descriptor is None else _file_size(descriptor)

    def __repr__(self) -> str:
        return f"<InputFile size={self.size}>"

    def position(self) -> int:
        """Return how many bytes were read; 0 if the input is not a file."""
        if self.size is None or self._descriptor is None:
            return 0
        return os.lseek(self._descriptor, 0, os.SEEK_CUR)

    def left(self) -> str:
        """Return what is left to read, in words; an empty text if that is not known."""
        if self.size is None:
            return ""
        return f"  {max(self.size - self.position(), 0) / _MEGA:,.1f} MB left"


def _file_size(descriptor: int) -> int | None:
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
