"""The fields of a form as a browser or a program has filled them in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.console.page import Field
from barnabas.words.printable import printable

INT_16_MAX, INT_32_MAX, INT_64_MAX = 2**15 - 1, 2**31 - 1, 2**63 - 1
_DIGITS_MAX = 18


class BadForm(ValueError):
    """A field has nothing that can be used; the text is a sentence without its full stop."""


class SentFile(NamedTuple):
    """A file of a form.

    Attributes:
        name: as the browser says it.
    """

    name: str
    data: bytes


class Given(NamedTuple):
    """The text of each field of a form; a field that is not there is empty.

    Attributes:
        files: by the name of the field, whose text is the file's id in this console.
    """

    texts: Mapping[str, str]
    files: Mapping[str, SentFile] = {}

    def text(self, name: str) -> str:
        """Return a text as it was given."""
        return self.texts.get(name, "")

    def required(self, name: str, noun: str) -> str:
        """Return a text that may not be empty.

        Raises:
            BadForm: it is.
        """
        found = self.text(name)
        if not found:
            raise BadForm(f"{noun} is missing")
        return found

    def file(self, name: str, noun: str) -> SentFile:
        """Return a file that may not be empty.

        Raises:
            BadForm: the form has no such file, or the file is empty.
        """
        found = self.files.get(name)
        if found is None:
            raise BadForm(f"{noun} is missing")
        if not found.data:
            raise BadForm(f"{noun} is empty")
        return found

    def is_ticked(self, name: str) -> bool:
        """Return whether a box is ticked."""
        return self.text(name) == "1"

    def number(self, name: str, noun: str, *, least: int = 0, most: int = INT_32_MAX) -> int | None:
        """Return a whole number; None if the field is empty.

        Raises:
            BadForm: it is not one, too small, or too large.
        """
        text = self.text(name).strip()
        if not text:
            return None
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX):
            raise BadForm(f"{noun} is not a whole number: {printable(text[:40])}")
        if int(text) < least:
            raise BadForm(f"{noun} must be at least {least}, not {int(text)}")
        if int(text) > most:
            raise BadForm(f"{noun} must be at most {most}, not {int(text)}")
        return int(text)

    def required_number(self, name: str, noun: str, *, least: int = 0, most: int = INT_32_MAX) -> int:
        """Return a whole number.

        Raises:
            BadForm: the field has no number, or the number is too small or too large.
        """
        found = self.number(name, noun, least=least, most=most)
        if found is None:
            raise BadForm(f"{noun} is missing")
        return found

    def choice(self, name: str, noun: str, choices: Iterable[str]) -> str:
        """Return one of some words.

        Raises:
            BadForm: it is another one.
        """
        text, known = self.text(name), list(choices)
        if text not in known:
            raise BadForm(f"{noun} must be one of {', '.join(known)}")
        return text

    def lines(self, name: str) -> list[str]:
        """Return the lines that are not empty."""
        return [line for line in self.text(name).split("\n") if line.strip()]

    def pairs(self, name: str) -> dict[str, str]:
        """Return lines of NAME=VALUE.

        Raises:
            BadForm: a line has no name, or no "=".
        """
        found: dict[str, str] = {}
        for line in self.lines(name):
            key, equals, value = line.partition("=")
            if not equals or not key.strip():
                raise BadForm(f"“{printable(line[:80])}” is not NAME=VALUE")
            found[key.strip()] = value.strip()
        return found

    def for_audit(self, fields: Iterable[Field]) -> dict[str, str]:
        """Return what the audit log has of the fields: no secret, and nothing of an empty one.

        It has the length of a private field, and the name and the size of a file.
        """
        found = {}
        for each in fields:
            if (file := self.files.get(each.name)) is not None:
                found[each.name] = f"{printable(file.name)} ({len(file.data)} bytes)"
            elif (text := self.text(each.name)) and each.kind != "secret":
                found[each.name] = f"({len(text)} characters)" if each.is_private else text
        return found
