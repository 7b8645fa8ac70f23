import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.words.times import format_time_ms, parse_time_ms

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1733000000123", 1_733_000_000_123),
        ("1733000000", 1_733_000_000_000),
        ("2026-11-21", 1_795_219_200_000),
        ("2026-11-21T10:00:00", 1_795_255_200_000),
        ("2026-11-21T10:00:00.250Z", 1_795_255_200_250),
        ("2026-11-21T11:00:00+01:00", 1_795_255_200_000),
        ("-1h", NOW - 3_600_000),
        ("-PT1M", NOW - 60_000),
    ],
)
def test_times(text: str, milliseconds: int) -> None:
    assert parse_time_ms(text, NOW) == milliseconds


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "-", "-soon"])
def test_no_times(text: str) -> None:
    with pytest.raises(ValueError):
        parse_time_ms(text, NOW)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(10**12, 4 * 10**12))
def test_round_trip(milliseconds: int) -> None:
    assert parse_time_ms(format_time_ms(milliseconds), NOW) == milliseconds
