"""How a long message is freed: from the outside in, with turns for the loop."""

from __future__ import annotations

from barnabas.protocol.message import Struct
from barnabas.turns import pace

__all__ = ["let_go"]

FREED = 2
"""The cost to free an element, with the objects that only it holds."""


async def let_go(message: object) -> None:
    """Free a message, because to free 500,000 objects in one go holds the loop as long as to handle them."""
    held: list[object] = []
    if isinstance(message, Struct):
        _hold(message, held)
        # A list may be the image's or the group's, so it is not emptied: the message gets others.
        for name in message.NESTED:
            setattr(message, name, None)
    while held:
        await pace(FREED)
        each = held.pop()
        if isinstance(each, Struct) and each.NESTED:
            # The parts of an element outlive it, and are freed later.
            _hold(each, held)
        each = None


def _hold(struct: Struct, held: list[object]) -> None:
    for name in struct.NESTED:
        value = getattr(struct, name)
        if type(value) is list:
            held += value
        elif isinstance(value, Struct):
            held.append(value)
