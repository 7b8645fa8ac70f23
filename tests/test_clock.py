"""Wall time and monotonic time."""

from __future__ import annotations

import pytest

from barnabas.clock import Clock


@pytest.mark.parametrize(("monotonic_ms", "wall_ms"), [(500, 9_000), (0, 8_500), (700, 9_200)])
def test_a_time_of_one_clock_is_a_time_of_the_other(monotonic_ms: int, wall_ms: int) -> None:
    clock = Clock(lambda: 9_000, lambda: 500)
    assert clock.to_wall_ms(monotonic_ms) == wall_ms
    assert clock.to_monotonic_ms(wall_ms) == monotonic_ms
