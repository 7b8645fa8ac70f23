"""Which worker of a parallel run gets which tests: a file's tests run in one process, one after the other.

`--dist loadgroup` alone hands out single tests, and three things cost time. Both workers make every fixture of a module. The controller
counts all that it has handed out after each test, so its work grows with the square of their number. And a worker waits for it between
tests of a millisecond. With files there are a twentieth as many pieces; a group, such as the tests of one Spark session, is one piece.

Pieces start in the order of collection (`--no-loadscope-reorder`), so `slow_first` decides which worker is left with a long one at the end.
"""

from __future__ import annotations

import pytest
from xdist.scheduler import LoadGroupScheduling


class FileScheduling(LoadGroupScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out files, and groups of the mark `xdist_group` as before."""

    def _split_scope(self, nodeid: str) -> str:
        """Return the group that ends a test's name, or else the test's file."""
        scope: str = super()._split_scope(nodeid)
        return scope if scope != nodeid else nodeid.partition("::")[0]


def slow_first(items: list[pytest.Item]) -> None:
    """Sort tests in place: groups, then files with a test that is marked slow, then the others."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.get_closest_marker("xdist_group") is None, item.path not in slow))
