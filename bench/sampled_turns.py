"""A loop that measures its turns, and samples the functions in the long ones."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

from tests.api.turn_meter import TurnMeter

SAMPLE_SECONDS = 0.002
LONG_NS = 20_000_000
FRAMES = 3


class SampledTurns(TurnMeter):
    """Measures turns, and samples the functions in them."""

    def __init__(self) -> None:
        super().__init__()
        self.long_turns: list[tuple[int, list[str]]] = []
        self._samples: list[str] = []
        self._is_elsewhere = False

    def begin(self) -> None:
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, SAMPLE_SECONDS, SAMPLE_SECONDS)

    def end(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def reset(self, meter: Callable[[], int]) -> None:
        self.long_turns, self._samples = [], []
        super().reset(meter)

    def end_turn(self) -> None:
        taken = self._meter() - self._begun - self._elsewhere
        if taken > LONG_NS:
            self.long_turns.append((taken, self._samples))
        self._samples = []
        super().end_turn()

    def run_until_complete(self, future: Any) -> Any:
        # What is between two runs is no part of a turn.
        self._begun, self._elsewhere, self._samples = self._meter(), 0, []
        try:
            return super().run_until_complete(future)
        finally:
            self.end_turn()

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        self._is_elsewhere = True
        try:
            return super().run_in_executor(executor, func, *args)
        finally:
            self._is_elsewhere = False

    def _sample(self, _: int, frame: FrameType | None) -> None:
        if self._is_elsewhere:
            return
        names = []
        while frame is not None and len(names) < 40:
            if frame.f_globals.get("__name__", "").startswith("barnabas"):
                names.append(frame.f_code.co_qualname)
            frame = frame.f_back
        self._samples.append(" < ".join(names[:FRAMES]))
