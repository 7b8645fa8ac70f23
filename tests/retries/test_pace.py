"""When the records of a replay are due, by a clock that the test moves."""

import pytest

from barnabas.retries.pace import Pace, parse_pace


def waits(pace: Pace, times_ms: list[int]) -> list[float]:
    """Return when each record is sent, in seconds, if it takes no time to send."""
    now = 100.0
    pace.clock = lambda: now
    sent = []
    for time_ms in times_ms:
        now += pace.wait_s(time_ms)
        sent.append(round(now - 100, 3))
    return sent


def test_records_a_second() -> None:
    assert waits(parse_pace("5/s"), [0, 9, 9, 9]) == [0, 0.2, 0.4, 0.6]
    assert waits(parse_pace("16/s"), [0] * 6) == [0, 0, 0.125, 0.125, 0.25, 0.25], (
        "a short wait is made up for by the next"
    )


def test_as_the_timestamps_say() -> None:
    times = [5_000, 6_000, 5_500, 9_000]
    assert waits(parse_pace("original"), times) == [0, 1, 1, 4]
    assert waits(parse_pace("4x"), times) == [0, 0.25, 0.25, 1]


@pytest.mark.parametrize("text", ["", "5", "x", "0/s", "0x", "5 x", "-1/s", "5/m"])
def test_what_is_not_a_rate(text: str) -> None:
    with pytest.raises(ValueError, match="is not a rate: write 1000/s, 5x"):
        parse_pace(text)
