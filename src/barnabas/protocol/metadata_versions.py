"""The names of the levels of `metadata.version`: a release, and a number within it.

Facts read from Kafka 4.4.0's `MetadataVersion` class.
"""

from __future__ import annotations

__all__ = ["MINIMUM", "NAMES", "name_of"]

MINIMUM = 7
"""The lowest level that a 4.x node can run with."""

# Level to name, from MINIMUM on.
_NAMES = """
3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0 3.9-IV0
4.0-IV0 4.0-IV1 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1 4.2-IV0 4.2-IV1 4.3-IV0 4.4-IV0 4.4-IV1 4.4-IV2
"""
NAMES = dict(enumerate(_NAMES.split(), start=MINIMUM))


def name_of(level: int) -> str:
    """Return the name of a level for people; a level that has no name here is its number."""
    return NAMES.get(level, f"level {level}")
