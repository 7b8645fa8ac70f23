"""Text from outside, made safe to print: no client may forge a log line or drive a terminal.

Client ids, group ids, topic names in errors, hosts and keys come from other programs. Whatever prints them calls `printable`.
A sentence of our own, in which some names are escaped already, goes through `on_one_line`: nothing is escaped twice.
"""

from __future__ import annotations

__all__ = ["on_one_line", "printable"]

_SHORT = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    r"""Return the text with every character that a terminal or a log would obey as an escape: `\n`, `\x1b`, `\u202e`.

    A backslash is doubled, so that two different texts never print alike.
    """
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(map(_escaped, text))


def on_one_line(text: str) -> str:
    """Return a text on one line, without what a terminal would obey; backslashes stay as they are."""
    return "\\".join(printable(part) for part in " ".join(text.split()).split("\\"))


def _escaped(character: str) -> str:
    if short := _SHORT.get(character):
        return short
    # Not printable are control, format (bidirectional marks, zero-width) and surrogate characters, and every space but " ".
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
