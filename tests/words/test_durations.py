"""Durations as people write them."""

import pytest

from barnabas.words.durations import parse_duration_ms


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("45s", 45_000),
        ("1h30m", 5_400_000),
        ("2d", 172_800_000),
        ("1w", 604_800_000),
        ("250ms", 250),
        ("PT30M", 1_800_000),
        ("P1DT2H", 93_600_000),
        ("PT0.5S", 500),
        ("-PT1H", -3_600_000),
        ("P1W", 604_800_000),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1", "h", "1y", "1h 30m", "-1h", "P1H"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="is not a valid duration"):
        parse_duration_ms(text)
