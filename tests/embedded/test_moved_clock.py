"""A node's clock, ahead and behind."""

from __future__ import annotations

from pathlib import Path

from barnabas.embedded.fault_plan import NO_CLOCK_FAULT, ClockFault
from barnabas.embedded.moved_clock import MovedClock


def test_it_is_ahead_behind_and_right_again(tmp_path: Path) -> None:
    tickets = tmp_path / "fault-1"
    clock = MovedClock(lambda: 1_000_000)
    assert clock.now_ms() == 1_000_000
    for _ in range(2):
        clock.apply(ClockFault(3600.0, (str(tickets),)))
        assert clock.now_ms() == 4_600_000
    assert tickets.read_bytes() == b"."
    clock.apply(ClockFault(-0.5))
    assert (clock.now_ms(), repr(clock)) == (999_500, "<MovedClock ahead_ms=-500>")
    clock.apply(NO_CLOCK_FAULT)
    assert clock.now_ms() == 1_000_000
