"""Durations as arguments."""

from __future__ import annotations

import click
import pytest

from barnabas.cli.duration import Duration


def test_a_duration_is_milliseconds() -> None:
    assert Duration().convert("1m30s", None, None) == 90_000
    assert Duration().convert(5, None, None) == 5
    with pytest.raises(click.BadParameter, match="'soon' is not a valid duration"):
        Duration().convert("soon", None, None)


def test_a_number_without_a_unit() -> None:
    with pytest.raises(click.BadParameter, match="'90' is not a valid duration"):
        Duration().convert("90", None, None)
    assert Duration(bare_is_seconds=True).convert("90", None, None) == 90_000
    assert Duration(bare_is_seconds=True).convert("5m", None, None) == 300_000


@pytest.mark.parametrize("short", ["0", "999ms", "-PT5S"])
def test_a_duration_that_is_too_short(short: str) -> None:
    with pytest.raises(click.BadParameter, match=f"'{short}' is shorter than 1000 ms"):
        Duration(bare_is_seconds=True, min_ms=1_000).convert(short, None, None)
