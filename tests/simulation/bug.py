"""A fault that only tests can switch on, and what it takes to see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.simulation.deliberate_bugs import Switch


class Bug(NamedTuple):
    """One deliberate bug.

    Attributes:
        seeds: within how many seeds it is caught.
        shown_by: the aimed fault that shows it, only the seeds with it count; `LASTING_CUT` for those that end with one, `TRIMMER` for
            those that delete records; a field of the plan, only the seeds count where it is set; None for all.
    """

    switch: Callable[[], Switch]
    seeds: int
    shown_by: str | None = None
