r"""Java properties files, as `java.util.Properties.load` reads them.

    # a comment, and so is a line that begins with !
    key=value
    key: value
    key value
    long.key = one,\
               two

A key ends at the first `=`, `:` or white space without a backslash in front; one `=` or `:` and the white space around it are
skipped. White space at the end of a value stays. `\t`, `\n`, `\r`, `\f` and `\uXXXX` stand for characters; elsewhere a backslash is
dropped and the character behind it stays. An odd number of backslashes at the end continues the line. The last value of a key wins.

A file is UTF-8, with or without a byte order mark; one that is not is ISO 8859-1, as every file is to Kafka's tools. Messages name the
line and never its text, which may be a password.

Limits: a backslash alone on the last line is ignored; in Java it is an empty key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from barnabas.words.printable import printable

_WHITE = " \t\f"
_LINE_END = re.compile(r"\r\n|\n|\r")
_ENTRY = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: str) -> dict[str, str]:
    """Return the properties in a file.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not a properties file; the message names it.
    """
    try:
        return parse_properties(_text(path))
    except ValueError as error:
        raise ValueError(f"cannot parse {printable(path)} as a properties file: {error}") from None


def line_of(path: str, name: str) -> int | None:
    """Return the number of the line that sets a property, the last such line; None if no line does."""
    lines = {_unescape(entry[1]): number for number, entry in _entries(_text(path))}
    return lines.get(name)


def _text(path: str) -> str:
    with open(path, "rb") as file:
        content = file.read()
    if b"\0" in content:
        raise ValueError("it is not text")
    return _decoded(content)


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def parse_properties(text: str) -> dict[str, str]:
    """Return the properties in a text.

    Raises:
        ValueError: a `\\u` without four hexadecimal digits.
    """
    properties: dict[str, str] = {}
    for number, entry in _entries(text):
        try:
            properties[_unescape(entry[1])] = _unescape(entry[2])
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return properties


def _entries(text: str) -> Iterator[tuple[int, re.Match[str]]]:
    for number, line in _logical_lines(text):
        entry = _ENTRY.fullmatch(line)
        assert entry is not None, number
        yield number, entry


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line that has a property, with the number of its last line in the file."""
    pending = ""
    number = 0
    for number, raw in enumerate(_LINE_END.split(text), start=1):
        line = raw.lstrip(_WHITE)
        if not pending and (not line or line[0] in "#!"):
            continue
        pending += line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = pending[:-1]
        else:
            yield number, pending
            pending = ""
    if pending:
        yield number, pending


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    # Two \uXXXX may be the halves of one character.
    return _ESCAPE.sub(_character, text).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _character(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    if escape[2] == "u":
        raise ValueError("\\u without four hexadecimal digits; a backslash itself is written \\\\")
    return _CONTROLS.get(escape[2], escape[2])
