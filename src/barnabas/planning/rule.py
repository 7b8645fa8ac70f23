"""A public rule of thumb: what it gives for a workload, and what it says of the number that a plan takes."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """The use of a rule: a need, a range to compare with, or a ceiling."""

    NEED = "needed"
    RANGE = "compared"
    CEILING = "ceiling"


class Rule(NamedTuple):
    """A rule and what it gives.

    Attributes:
        low: the number it gives, or the least of its range.
        high: the most of its range.
        source: who says so.
    """

    name: str
    kind: Kind
    formula: str
    low: int
    high: int
    source: str

    def verdict(self, chosen: int) -> str:
        """Return what the rule says of the number that the plan takes."""
        if self.kind is Kind.CEILING:
            return "allows it" if chosen <= self.low else "forbids it" if chosen > self.high else "warns of it"
        if chosen < self.low:
            return "asks for more"
        return "agrees" if chosen <= self.high or self.kind is Kind.NEED else "asks for fewer"
