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

Limits: a file is UTF-8 (Kafka's tools take it for ISO 8859-1). A backslash alone on the last line is ignored; in Java it is an
empty key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
        with open(path, encoding="utf-8", newline="") as file:
            return parse_properties(file.read())
    except UnicodeDecodeError:
        raise ValueError(f"cannot parse {path} as a properties file: it is not UTF-8 text") from None
    except ValueError as error:
        raise ValueError(f"cannot parse {path} as a properties file: {error}") from None


def parse_properties(text: str) -> dict[str, str]:
    """Return the properties in a text.

    Raises:
        ValueError: a `\\u` without four hexadecimal digits.
    """
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        entry = _ENTRY.fullmatch(line)
        assert entry is not None, line
        properties[_unescape(entry[1])] = _unescape(entry[2])
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for raw in _LINE_END.split(text):
        line = raw.lstrip(_WHITE)
        if not pending and (not line or line[0] in "#!"):
            continue
        pending += line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = pending[:-1]
        else:
            yield pending
            pending = ""
    if pending:
        yield pending


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    # Two \uXXXX may be the halves of one character.
    return _ESCAPE.sub(_character, text).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _character(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    if escape[2] == "u":
        raise ValueError(f"{escape.string!r} has a \\u without four hexadecimal digits")
    return _CONTROLS.get(escape[2], escape[2])
