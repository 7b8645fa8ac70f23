"""How a long message is freed: in slices, from the outside in."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.message import Struct
from barnabas.steps import PIECE, turn

__all__ = ["let_go"]


async def let_go(message: Any) -> None:
    """Free a message in slices, because to free 500,000 objects at once holds the loop as long as to handle them."""
    held: list[Any] = []
    if isinstance(message, Struct):
        _hold(message, held)
        # A list may be the image's or the group's, so it is not emptied: the message gets others.
        for name in message.NESTED:
            setattr(message, name, None)
    while held:
        piece = held[-PIECE:]
        del held[-PIECE:]
        for each in piece:
            if isinstance(each, Struct) and each.NESTED:
                # What is within an element outlives it, and is freed in later slices.
                _hold(each, held)
        each = None
        piece.clear()
        await turn()


def _hold(struct: Struct, held: list[Any]) -> None:
    for name in struct.NESTED:
        value = getattr(struct, name)
        if type(value) is list:
            held += value
        elif isinstance(value, Struct):
            held.append(value)
