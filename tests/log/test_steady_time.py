from __future__ import annotations

from barnabas.log.steady_time import SteadyTime
from tests.log.small_log import Clock


def test_steps_back_are_left_out_and_steps_ahead_count() -> None:
    clock = Clock()
    began = clock.ms
    steady = SteadyTime(clock)
    seen = [steady()]
    for step in (100, -3_600_000, 0, 50, 2_000, -1, 10):
        clock.ms += step
        seen.append(steady())
    assert [each - began for each in seen] == [0, 100, 100, 100, 150, 2_150, 2_150, 2_160]
