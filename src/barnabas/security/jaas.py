"""`sasl.jaas.config`: the line in which Kafka's clients and listeners have user and password.

    org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";
    module class                                            flag     option = value …                  ;

It is read as Java's `StreamTokenizer` reads it for Kafka, because a line that works there must mean the same here:

- A bare word has letters, digits and `_ $ - .`. Anything else ends it, so most passwords need quotes, `"` or `'`.
- In quotes a backslash escapes: `\\n`, `\\t` and the like, up to three octal digits, and else the next character itself.
- A word that begins with a digit, `-` or `.` is a number to Java, and not a value. It needs quotes.
- `//` and `/* */` are comments, and a lone `/` is one too, up to the end of its line.

Errors never quote the line: a forgotten quotation mark makes words of a password.

Source: Kafka's `JaasConfig`, `JaasContext`; the documentation of Java's `StreamTokenizer`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from barnabas.security.setting_error import SecuritySettingError

__all__ = ["SASL_JAAS_CONFIG", "JaasEntry", "jaas_text", "parse_jaas"]

SASL_JAAS_CONFIG = "sasl.jaas.config"

_FLAGS = ("required", "requisite", "sufficient", "optional")
_ESCAPES = {"a": "\x07", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL = "01234567"
_PLAIN_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.-]*")
"""A name that needs no quotes."""
_EXAMPLE = 'e.g. …PlainLoginModule required username="alice" password="…";'


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """One login module with its options.

    Attributes:
        module: the class, with its package.
        flag: `required` and the like, in lower case; it has no meaning with one module.
    """

    module: str
    flag: str
    options: Mapping[str, str] = field(repr=False)

    def is_of(self, module: str) -> bool:
        """Return whether this is a class of Kafka, also under the prefix that some distributions put before its package."""
        return self.module == module or self.module.endswith(f".{module}")


def parse_jaas(text: str, setting: str = SASL_JAAS_CONFIG) -> JaasEntry:
    """Return the one login module of a line.

    Args:
        setting: the setting that the line is from, for errors.

    Raises:
        SecuritySettingError: the line is not one login module; the text does not quote it.
    """
    entries = []
    tokens = _Tokens(text)
    while (token := next(tokens, None)) is not None:
        entries.append(_entry(token, tokens, setting))
    if not entries:
        raise SecuritySettingError(setting, f"names no login module, {_EXAMPLE}")
    if len(entries) > 1:
        raise SecuritySettingError(setting, f"names {len(entries)} login modules, and should name one")
    return entries[0]


def jaas_text(module: str, options: Mapping[str, str]) -> str:
    """Return the line of one login module, as `parse_jaas` and Java read it; names and values may have any characters but NUL."""
    pairs = (
        f"{name if _PLAIN_NAME.fullmatch(name) else _in_quotes(name)}={_in_quotes(value)}"
        for name, value in options.items()
    )
    return " ".join([module, "required", *pairs]) + ";"


def _in_quotes(text: str) -> str:
    for character, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(character, escape)
    return f'"{text}"'


@dataclass(frozen=True, slots=True)
class _Token:
    """A token: a word or a quoted text has a value, a number has none, and another character is itself."""

    value: str | None
    mark: str = ""


def _entry(first: _Token, tokens: Iterator[_Token], setting: str) -> JaasEntry:
    if first.value is None:
        raise SecuritySettingError(setting, f"does not begin with the class of a login module, {_EXAMPLE}")
    flag = next(tokens, None)
    if flag is None or flag.value is None or flag.value.lower() not in _FLAGS:
        raise SecuritySettingError(setting, f"has none of {', '.join(_FLAGS)} after the login module, {_EXAMPLE}")
    options: dict[str, str] = {}
    count = 0
    while (key := next(tokens, None)) is not None and key.mark != ";":
        count += 1
        equals = next(tokens, None)
        value = next(tokens, None) if equals is not None and equals.mark == "=" else None
        if key.value is None or value is None or value.value is None:
            why = f"option {count} is not NAME=VALUE; put the value in double quotes if it has more than letters and digits"
            raise SecuritySettingError(setting, why)
        options[key.value] = value.value
    if key is None:
        raise SecuritySettingError(setting, "does not end with a semicolon; is a quotation mark missing?")
    return JaasEntry(first.value, flag.value.lower(), options)


class _Tokens(Iterator[_Token]):
    """The tokens of a line, one after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def __next__(self) -> _Token:
        self._skip()
        if self._at >= len(self._text):
            raise StopIteration
        character = self._text[self._at]
        if _is_digit(character):
            return self._number()
        if _is_letter(character):
            return _Token(self._while(lambda one: _is_letter(one) or _is_digit(one)))
        self._at += 1
        if character in "\"'":
            return _Token(self._quoted(character))
        return _Token(None, character)

    def _skip(self) -> None:
        while self._at < len(self._text):
            if self._text[self._at] <= " ":
                self._at += 1
            elif self._text.startswith("/*", self._at):
                end = self._text.find("*/", self._at + 2)
                self._at = len(self._text) if end < 0 else end + 2
            elif self._text[self._at] == "/":
                self._while(lambda one: one not in "\r\n")
            else:
                return

    def _while(self, belongs: Callable[[str], bool]) -> str:
        start = self._at
        while self._at < len(self._text) and belongs(self._text[self._at]):
            self._at += 1
        return self._text[start : self._at]

    def _number(self) -> _Token:
        is_minus = self._text[self._at] == "-"
        if is_minus and not _is_digit(self._text[self._at + 1 : self._at + 2].replace("-", "")):
            self._at += 1
            return _Token(None, "-")
        self._at += is_minus
        self._while(_NumberPart())
        return _Token(None)

    def _quoted(self, mark: str) -> str:
        found = []
        while self._at < len(self._text) and (character := self._text[self._at]) not in (mark, "\n", "\r"):
            self._at += 1
            found.append(self._escaped() if character == "\\" else character)
        # Java ends a quoted text at the end of the line too.
        if self._text[self._at : self._at + 1] == mark:
            self._at += 1
        return "".join(found)

    def _escaped(self) -> str:
        character = self._text[self._at : self._at + 1]
        if character and character in _OCTAL:
            most = 3 if character <= "3" else 2
            digits = ""
            while len(digits) < most and (digit := self._text[self._at : self._at + 1]) and digit in _OCTAL:
                digits += digit
                self._at += 1
            return chr(int(digits, 8))
        self._at += 1
        return _ESCAPES.get(character, character)


class _NumberPart:
    """Whether a character goes on with a number: digits, and one point."""

    def __init__(self) -> None:
        self._points = 0

    def __call__(self, character: str) -> bool:
        self._points += character == "."
        return character in "0123456789" or (character == "." and self._points == 1)


def _is_digit(character: str) -> bool:
    return character != "" and character in "0123456789.-"


def _is_letter(character: str) -> bool:
    return (character.isascii() and character.isalpha()) or character in "_$" or character >= "\xa0"
