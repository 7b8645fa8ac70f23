"""How fast a replay sends: so many records a second, or as the timestamps of the records say.

A wait shorter than a tenth of a second is left out and made up for by the next one, so that a fast replay sends batches. Partitions are
not merged: the newest timestamp so far says how far the replay may be.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.words.printable import printable

_SHORTEST_WAIT_S = 0.1
_RATE = re.compile(r"(?P<number>\d+(\.\d+)?)(?P<unit>x|/s)")


@dataclass(slots=True)
class Pace:
    """When each record is due.

    Args:
        per_second: records a second; None follows the timestamps.
        speed: how many times as fast as the timestamps.
        clock: returns seconds that only grow.
        sleep: waits for so many seconds.
    """

    per_second: float | None = None
    speed: float = 1.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _begun: tuple[float, int] | None = field(default=None, init=False)
    _taken: int = field(default=0, init=False)

    def wait_s(self, timestamp_ms: int) -> float:
        """Take the next record; return how many seconds to wait before it is sent, 0 for not at all."""
        now = self.clock()
        if self._begun is None:
            self._begun = (now, timestamp_ms)
        begun_s, first_ms = self._begun
        if self.per_second is None:
            after_s = (timestamp_ms - first_ms) / 1000 / self.speed
        else:
            after_s = self._taken / self.per_second
        self._taken += 1
        wait = begun_s + after_s - now
        return wait if wait >= _SHORTEST_WAIT_S else 0.0


def parse_pace(text: str) -> Pace:
    """Parse `5x`, `1000/s` or `original`.

    Raises:
        ValueError: the text is none of these.
    """
    found = _RATE.fullmatch("1x" if text == "original" else text)
    number = float(found["number"]) if found else 0.0
    if found is None or not number:
        raise ValueError(
            f"'{printable(text)}' is not a rate: write 1000/s, 5x (as fast as the timestamps), or original"
        )
    return Pace(per_second=number) if found["unit"] == "/s" else Pace(speed=number)
