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
