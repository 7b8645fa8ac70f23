"""A near miss gets the name that was meant; another word gets none."""

from __future__ import annotations

import pytest

from barnabas.words.nearest import did_you_mean, nearest

NAMES = ["topic", "group", "retention.ms", "retention.bytes", "Orders"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("topics", "topic"),
        ("tpoic", "topic"),
        ("retention.mss", "retention.ms"),
        ("orders", "Orders"),
        ("zebra", None),
        ("", None),
    ],
)
def test_the_nearest_name(word: str, meant: str | None) -> None:
    assert nearest(word, NAMES) == meant


def test_the_words_to_append() -> None:
    assert did_you_mean("gruop", NAMES) == "; did you mean group?"
    assert did_you_mean("zebra", NAMES) == ""
    assert did_you_mean("anything", []) == ""
