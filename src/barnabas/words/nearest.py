"""The name that a mistyped one probably meant."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest"]

_CUTOFF = 0.75


def nearest(word: str, names: Iterable[str]) -> str | None:
    """Return the name most like `word`, or None if no name is like it. Case does not count."""
    # A broker imports this module, and starts without a mistake to explain.
    import difflib

    by_lower = {name.lower(): name for name in names}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=_CUTOFF)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return `"; did you mean NAME?"` to append to an error, or an empty string if no name is like `word`."""
    name = nearest(word, names)
    return f"; did you mean {name}?" if name is not None else ""
