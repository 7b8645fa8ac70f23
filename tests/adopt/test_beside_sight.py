"""The values of the way beside are immutable, and say themselves."""

from __future__ import annotations

from tests.adopt.sights import sight


def test_a_sight() -> None:
    found = sight()
    assert (found.coming.id, found.leaving.id, found.moving, found.behind) == (4, 2, 0, 0)
