"""The form of what commands print: sentences as the rest of a line, names from outside, things that are counted."""

from __future__ import annotations

import shlex

from barnabas.printable import printable


def on_one_line(text: str) -> str:
    """Return a text on one line, without what a terminal would obey; backslashes stay as they are."""
    return "\\".join(printable(part) for part in " ".join(text.split()).split("\\"))


def in_lower_case(sentence: str) -> str:
    """Return a sentence as the rest of a line; a first word in capitals stays."""
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]


def as_typed(name: str) -> str:
    """Return a name from outside as a command to type has it: one word for a shell, and no option."""
    return f"-- {shlex.quote(name)}" if name.startswith("-") else shlex.quote(name)


def counted(count: int, noun: str) -> str:
    """Return a count of things in words: `1 member`, `2 members`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def were(number: int, of: int | None = None) -> str:
    """Return records as the subject of a sentence, with its verb: `1 of 3 records was`, `2 records were`, `the record was`."""
    verb = "was" if number == 1 else "were"
    if of is None:
        return f"{counted(number, 'record')} {verb}" if number else "no record was"
    return f"{number} of {of} records {verb}" if of > 1 else f"the record {verb}"
