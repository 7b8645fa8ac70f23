"""The form of the words that commands print: sentences as the rest of a line, names from outside, things that are counted."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

_NAMED_MAX = 5


def in_lower_case(sentence: str) -> str:
    """Return a sentence as the rest of a line; a first word in capitals stays."""
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]


def as_typed(name: str) -> str:
    """Return a name from outside as a command to type has it: one word for a shell, and no option."""
    return f"-- {shlex.quote(name)}" if name.startswith("-") else shlex.quote(name)


def counted(count: int, noun: str) -> str:
    """Return a count of things in words: `1 member`, `2 members`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def first_few(things: Iterable[object]) -> list[str]:
    """Return the first things by name; the last text counts the others."""
    names = [str(each) for each in things]
    more = len(names) - _NAMED_MAX
    return [*names[:_NAMED_MAX], f"and {more} more"] if more > 0 else names


def listed(things: Sequence[object]) -> str:
    """Return the first things by name as a part of a sentence, and how many others there are."""
    first = ", ".join(map(str, things[:_NAMED_MAX]))
    more = len(things) - _NAMED_MAX
    return f"{first} and {more} more" if more > 0 else first


def were(number: int, of: int | None = None) -> str:
    """Return records as the subject of a sentence, with its verb: `1 of 3 records was`, `2 records were`, `the record was`."""
    verb = "was" if number == 1 else "were"
    if of is None:
        return f"{counted(number, 'record')} {verb}" if number else "no record was"
    return f"{number} of {of} records {verb}" if of > 1 else f"the record {verb}"
