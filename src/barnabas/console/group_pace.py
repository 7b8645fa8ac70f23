"""How fast a group catches up: its lag, how that changes, and when it will have read everything.

The change is that of the sampler's looks in the last minute, because consumers commit only every few seconds. It counts what producers
append, too: it is the pace at which the group catches up, not the one at which it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.cli.output import Found, Table
from barnabas.cli.txn import duration_text
from barnabas.cli.wording import counted
from barnabas.console.chart import Point

WINDOW_MS = 60_000
_COLUMNS = ("LAG", "LAG-TO-LAST-STABLE-OFFSET", "LAG-CHANGE/S", "MEASURED-OVER", "DRAINED-IN")


class Pace(NamedTuple):
    """How the lag of a group changes.

    Attributes:
        lag: records, in the last look.
        change_per_sec: records a second; below zero if the group catches up.
        window_s: between the first look that counts and the last one.
    """

    lag: float
    change_per_sec: float
    window_s: float

    @property
    def drained_in_s(self) -> float | None:
        """Seconds until the group has read everything, if this goes on; None if the group does not catch up."""
        if not self.lag:
            return 0.0
        return round(self.lag / -self.change_per_sec, 1) if self.change_per_sec < 0 else None


def pace_of(points: Sequence[Point], now_ms: int) -> Pace | None:
    """Return how the lag changed in the last minute; None without two looks in it, one right after the other.

    Args:
        points: the lag in each look, the oldest first.
        now_ms: epoch milliseconds.
    """
    run: list[tuple[int, float]] = []
    for each in reversed(points):
        if each.value is None or now_ms - each.time_ms > WINDOW_MS:
            break
        run.append((each.time_ms, each.value))
        if each.begins:
            break
    if len(run) < 2 or run[0][0] <= run[-1][0]:
        return None
    (last_ms, lag), (first_ms, before) = run[0], run[-1]
    seconds = (last_ms - first_ms) / 1000
    return Pace(lag, round((lag - before) / seconds, 3), seconds)


def found_pace(lag: int, stable_lag: int | None, pace: Pace | None) -> Found:
    """Return the lag of a group, to the log end and to the last stable offset, and its pace."""
    drained = None if pace is None else pace.drained_in_s
    data = {
        "lag": lag,
        "lag_to_last_stable_offset": stable_lag,
        "lag_change_per_sec": None if pace is None else pace.change_per_sec,
        "window_s": None if pace is None else pace.window_s,
        "drained_in_s": drained,
    }
    row = (
        lag,
        stable_lag,
        None if pace is None else f"{pace.change_per_sec:+,.1f}",
        None if pace is None else f"{pace.window_s:g} s",
        None if drained is None else duration_text(round(drained * 1000)),
    )
    return Found(data, [Table(_COLUMNS, [row], vertical=True)])


def words_of(pace: Pace | None) -> str:
    """Return in a sentence whether the group catches up."""
    if pace is None:
        return (
            "How fast the lag changes is not known. That needs two looks in the last minute, and the console looks while "
            "somebody has the overview open; it remembers the 100 groups with the most lag."
        )
    if not pace.lag:
        return "The group has read everything in the last look."
    if pace.change_per_sec < 0:
        return "The group catches up. If this goes on, it has read everything after the time below."
    return f"The group does not catch up: its lag {'grows' if pace.change_per_sec else 'stays as it is'}."


def lag_words(group_type: str, lag: int, stable_lag: int | None) -> str | None:
    """Return in a sentence what the two lags say; None if nothing has to be said.

    Args:
        group_type: in Kafka's words, such as `share`.
    """
    if group_type == "share":
        words = "The lag of a share group counts the records that are not finished, up to the log end."
        if stable_lag is None:
            return f"{words} Without the stored deliveries it is not known up to the last stable offset."
        return f"{words} Beyond the last stable offset it can read only with share.isolation.level=read_uncommitted."
    if stable_lag is not None and stable_lag < lag:
        return f"Open transactions hold back {counted(lag - stable_lag, 'record')} from readers of committed records."
    return None
