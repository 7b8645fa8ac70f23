"""A claim: what a record has in the place of its payload.

The record's header `__claim` has the format's version, `1`. Its value is JSON:

    {"claim": 1, "path": "CLUSTER/TOPIC/NAME", "size": 10485760, "sha256": "9f86d081…"}

| field    |                                                                                       |
|----------|---------------------------------------------------------------------------------------|
| `claim`  | the format's version, as in the header                                                |
| `path`   | where the payload is below the store's root; NAME is the SHA-256, or SHA-256 and `-N` |
| `size`   | bytes of the payload                                                                  |
| `sha256` | of the payload, in lower-case hexadecimal                                             |

Only the header makes a claim: a value that looks like one and has no header is an ordinary value. A record without
value (a tombstone) is an ordinary record, whatever its headers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from barnabas.words.printable import printable

HEADER = "__claim"
FORMAT = 1
CONDEMNED = "condemned"
UNFINISHED = "unfinished"
_MARK = b"1"
_PART = r"(?!\.\.?/)[A-Za-z0-9._-]{1,249}"
_NAME = r"[0-9a-f]{64}(?:-[0-9]{1,2})?"
_PATH = re.compile(rf"{_PART}/{_PART}/(?P<name>{_NAME})")
_PREFIX = re.compile(rf"({_PART})/")
_PAYLOAD_NAME = re.compile(_NAME)

Headers: TypeAlias = Iterable[tuple[str, Any]] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Claim:
    """A payload's place, size and checksum.

    Attributes:
        path: `CLUSTER/TOPIC/NAME` below the store's root.
        size: bytes.
        sha256: lower-case hexadecimal.
    """

    path: str
    size: int
    sha256: str

    def encoded(self) -> bytes:
        """Return the record's value."""
        fields = {"claim": FORMAT, "path": self.path, "size": self.size, "sha256": self.sha256}
        return json.dumps(fields, separators=(",", ":")).encode()


class NotAClaim(ValueError):
    """A record with the header has no valid claim; the message says why.

    Attributes:
        is_newer: the format's version is above the known one, so that a newer barnabas may read it.
    """

    def __init__(self, reason: str, *, is_newer: bool = False) -> None:
        super().__init__(reason)
        self.is_newer = is_newer


def marked(headers: Headers | None) -> list[tuple[str, Any]]:
    """Return a record's headers and the header that marks a claim.

    Raises:
        ValueError: the mark is there already.
    """
    given = list(headers.items() if isinstance(headers, Mapping) else headers or ())
    if is_marked(given):
        raise ValueError(
            f"the header {HEADER} marks a claim: read the record with a ClaimConsumer, and produce its value"
        )
    return [*given, (HEADER, _MARK)]


def is_marked(headers: Iterable[tuple[str, Any]] | None) -> bool:
    """Return whether the headers mark a claim."""
    return any(name == HEADER for name, _ in headers or ())


def without_mark(headers: Iterable[tuple[str, Any]] | None) -> list[tuple[str, Any]]:
    """Return the headers that the producer was given."""
    return [each for each in headers or () if each[0] != HEADER]


def prefix_of(cluster: str, topic: str) -> str:
    """Return where a topic's payloads are below the store's root.

    Raises:
        ValueError: a name is no part of a path.
    """
    for name in (cluster, topic):
        if not _PREFIX.fullmatch(f"{name}/"):
            raise ValueError(
                f"'{printable(name)}' cannot be a part of a payload's path: use letters, digits, '.', '_', '-'"
            )
    return f"{cluster}/{topic}"


def is_payload_name(name: str) -> bool:
    """Return whether the last part of a path is that of a payload."""
    return _PAYLOAD_NAME.fullmatch(name) is not None


def marker_of(path: str) -> str:
    """Return the path of the marker by which a sweep announces that it deletes a payload."""
    prefix, _, name = path.rpartition("/")
    return f"{prefix}/{CONDEMNED}/{name}"


def digest(payload: bytes) -> str:
    """Return the SHA-256 as a claim has it."""
    return hashlib.sha256(payload).hexdigest()


def parse_claim(headers: Iterable[tuple[str, Any]] | None, value: bytes | None) -> Claim | None:
    """Return the claim of a record; None if it is an ordinary record.

    Raises:
        NotAClaim: the record is marked, and its claim cannot be read.
    """
    given = [mark for name, mark in headers or () if name == HEADER]
    if not given or value is None:
        return None
    mark = given[-1]
    mark = mark.encode() if isinstance(mark, str) else mark
    if mark != _MARK:
        shown = printable((mark or b"").decode(errors="backslashreplace"))
        is_newer = mark is not None and mark.isdigit() and int(mark) > FORMAT
        raise NotAClaim(f"its format is '{shown}', and this barnabas knows {FORMAT}", is_newer=is_newer)
    try:
        fields = json.loads(value)
    except ValueError:
        raise NotAClaim("its value is not JSON") from None
    match fields:
        case {"claim": 1, "path": str(path), "size": int(size), "sha256": str(sha256)} if size >= 0:
            pass
        case _:
            raise NotAClaim(f"its value does not have the fields of format {FORMAT}")
    found = _PATH.fullmatch(path)
    if found is None:
        raise NotAClaim(f"'{printable(path[:300])}' is not a payload's path in the store")
    if found["name"][:64] != sha256:
        raise NotAClaim("its path and its SHA-256 are of different payloads")
    return Claim(path, size, sha256)
