"""Changes of a setting, a partition count, a quota or a feature level have one order that explains what brokers say of it.

Each acknowledged change took effect between its request and its answer. One without an answer may take effect at any later time, or never,
and again and again, because brokers retry.

- A broker may be behind, but it does not go back: where it has said a value, it does not say another one whose change was acknowledged
  before somebody asked for that value.
- At the end all brokers know all: they do not say the value of a change that an acknowledged one followed.
- Nobody says a value that nobody has asked for yet. No broker lets a client exceed its quota.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tests.simulation.history import History
from tests.simulation.tuning_history import Change, Register, Sight


def check(history: History) -> list[str]:
    known = history.tuning
    found = [f"{name}: {what}" for name, register in known.registers.items() for what in _judge(register)]
    return found + known.let_through + known.unlimited


def _judge(register: Register) -> Iterator[str]:
    knows: dict[str, float] = {}
    for sight in register.sights:
        since = knows.get(sight.broker, -math.inf)
        possible = [each.began for each in _said(sight, register) if each.ended >= since]
        if possible:
            # Others may have asked for the same value: the earliest of them leaves most possible for what is said later.
            knows[sight.broker] = max(since, min(possible))
        else:
            yield f"no order explains that a broker said {sight.value} at {sight.ended:.6f}"
    for sight in register.final:
        if not any(not _is_replaced(each, sight.began, register) for each in _said(sight, register)):
            last = max((each for each in register.changes if each.ended < math.inf), key=lambda each: each.began)
            yield f"it is {sight.value} at the end; the last acknowledged change was to {last.value}"


def _said(sight: Sight, register: Register) -> Iterator[Change]:
    """Yield the changes that a broker may have known last."""
    return (each for each in register.changes if each.value == sight.value and each.began <= sight.ended)


def _is_replaced(change: Change, at: float, register: Register) -> bool:
    """Return whether another acknowledged change has surely followed."""
    return any(each.began > change.ended and each.ended < at for each in register.changes)
