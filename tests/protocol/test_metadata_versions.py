"""The names of metadata versions."""

from __future__ import annotations

from barnabas.protocol.metadata_versions import MINIMUM, NAMES, name_of


def test_the_names() -> None:
    assert (NAMES[MINIMUM], NAMES[30], NAMES[33]) == ("3.3-IV3", "4.3-IV0", "4.4-IV2")
    assert (name_of(30), name_of(34), name_of(6)) == ("4.3-IV0", "level 34", "level 6")
