"""Regular expressions that a peer gives: RE2, matched against whole texts.

A request, a setting or a record of the metadata log may carry an expression. None of them is given to Python's `re`, in which `(a+)+$`
holds the loop for as long as the peer likes. RE2 matches in time linear in the text, but a large expression still has a large factor, and
compiling it takes time too. So an expression has bounds, and one that exceeds them is as invalid as one with a mistake:

- at most `LENGTH_MAX` characters, and `COSTLY_MAX` counted repetitions and Unicode classes, which compile into much;
- a compiled program of at most `MEMORY_MAX`: about 8,000 literal characters. One match of 250 characters then takes 5 ms at worst, most
  take microseconds.

RE2 releases the interpreter while it matches. Where there are many texts, the caller matches them in the executor.

The library is imported with the first expression: most brokers never see one.

Sources: decision 9; Kafka uses re2j for subscriptions (KIP-848) and transactional ids (KIP-1152), and `java.util.regex` for the clients of
a metrics subscription (KIP-714). Always `Matcher.matches`, so the whole text.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

__all__ = ["InvalidExpression", "RegularExpression", "compiled"]

LENGTH_MAX = 8192
COSTLY_MAX = 256
MEMORY_MAX = 1 << 18
_MAX_COMPILED = 256
_COSTLY = ("{", r"\p", r"\P")


class InvalidExpression(ValueError):
    """A text that is not a valid RE2 expression, or too large a one; its message is the reason."""


class RegularExpression:
    """A compiled expression."""

    __slots__ = ("_fullmatch", "text")

    def __init__(self, text: str, fullmatch: Any) -> None:
        self.text = text
        self._fullmatch = fullmatch

    def __repr__(self) -> str:
        return f"<RegularExpression {self.text}>"

    def matches(self, text: str) -> bool:
        """Return whether the whole text matches."""
        return self._fullmatch(text) is not None


@lru_cache(maxsize=_MAX_COMPILED)
def compiled(text: str) -> RegularExpression:
    """Compile an expression; the last few hundred are kept.

    Raises: InvalidExpression.
    """
    import re2

    if len(text) > LENGTH_MAX:
        raise InvalidExpression(f"it has {len(text)} characters, and the limit is {LENGTH_MAX}")
    if sum(text.count(mark) for mark in _COSTLY) > COSTLY_MAX:
        raise InvalidExpression(f"it has more than {COSTLY_MAX} counted repetitions and Unicode classes")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_MAX
    try:
        return RegularExpression(text, re2.compile(text, options).fullmatch)
    except re2.error as error:
        reason = error.args[0]
        raise InvalidExpression(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None
