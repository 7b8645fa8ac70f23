"""What a node takes from outside."""

from __future__ import annotations

import random
from unittest.mock import Mock

from barnabas.config.runtime import Runtime


def test_the_clock_has_the_wall_time_and_the_loops() -> None:
    loop = Mock(**{"time.return_value": 12.5})
    clock = Runtime(loop, Mock(), lambda: 1_700_000_000_000, random.Random(1), Mock(), Mock()).clock
    assert (clock.wall_ms(), clock.monotonic_ms()) == (1_700_000_000_000, 12_500)
