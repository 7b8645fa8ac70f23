"""Values that no line of this process may show: what `config.providers` brought from files and from the environment.

`barnabas start` and the commands register them when they have read their settings; `error_lines` and the log's formatter leave them out.
A library does not register any: the lines of its process are not its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["hidden_in", "hide_values", "without_hidden"]

HIDDEN = "[hidden]"
LONG = 4
"""A value of so many characters is left out wherever it stands, a shorter one only as a word of its own in an error."""

_hidden: set[str] = set()


def hide_values(values: Iterable[str]) -> None:
    """Leave these values out of the lines of this process from now on."""
    _hidden.update(value for value in values if len(value) >= LONG)


def without_hidden(text: str) -> str:
    """Return a line of this process without hidden values."""
    return hidden_in(text, _hidden) if _hidden else text


def hidden_in(text: str, values: Iterable[str]) -> str:
    """Return a text without these values."""
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= LONG:
            text = text.replace(value, HIDDEN)
        elif value:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", HIDDEN, text)
    return text
