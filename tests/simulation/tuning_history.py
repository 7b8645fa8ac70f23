"""What was seen of what an administrator changes: settings and partition counts of a topic, quotas and feature levels.

Each is a register: one client changes it, one change after the other, and looks at it on any broker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

Value = int | None
"""None where nothing is set."""


@dataclass
class Change:
    """One request for a value; times are the world's.

    Attributes:
        ended: when it was acknowledged; infinite if it was not, then it may be done at any time to come, and more than once.
    """

    value: Value
    began: float
    ended: float = math.inf


class Sight(NamedTuple):
    """What a broker said; it may be behind.

    Attributes:
        broker: its name. It does not go back in what it knows, also when it starts again: it serves when it knows what is committed.
    """

    value: Value
    began: float
    ended: float
    broker: str


@dataclass
class Register:
    """The changes in the order in which they began, the sights in the order of their answers.

    Attributes:
        final: what brokers that know all said when nobody asked for changes any more.
    """

    changes: list[Change] = field(default_factory=list)
    sights: list[Sight] = field(default_factory=list)
    final: list[Sight] = field(default_factory=list)

    def begin(self, value: Value) -> None:
        """Write down the value from before all changes."""
        self.changes.append(Change(value, -math.inf, -math.inf))


@dataclass
class TuningHistory:
    """What was seen.

    Attributes:
        registers: by name.
        is_limited: whether a producer has a quota.
        throttles: how many answers told it to wait.
        let_through: requests that a broker answered before the wait was over, in words.
        unlimited: brokers that let a client exceed its quota at the end, in words.
    """

    registers: dict[str, Register] = field(default_factory=dict)
    is_limited: bool = False
    throttles: int = 0
    let_through: list[str] = field(default_factory=list)
    unlimited: list[str] = field(default_factory=list)

    def tally(self) -> dict[str, int]:
        """Return how many changes were acknowledged, and how many answers said that a producer must wait."""
        if not self.is_limited:
            return {}
        asked = [change for register in self.registers.values() for change in register.changes[1:]]
        return {
            "tuned worlds": 1,
            "tuned worlds without a throttled producer": int(not self.throttles),
            "tunings": sum(change.ended < math.inf for change in asked),
            "throttled answers": self.throttles,
        }
