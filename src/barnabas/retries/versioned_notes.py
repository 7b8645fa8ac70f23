"""The values of notes that a command keeps in a topic of its own: JSON with the version that wrote them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_VERSION = 1


def written(fields: Mapping[str, Any]) -> bytes:
    """Return the value of a note."""
    return json.dumps({"version": _VERSION, **fields}).encode()


def read(value: bytes, what: str) -> dict[str, Any]:
    """Return the fields of a note.

    Args:
        what: what the note is of, such as `replay orders-to-test`, for the error.

    Raises:
        ValueError: another version of barnabas wrote it.
    """
    fields: dict[str, Any] = json.loads(value)
    if fields.pop("version") != _VERSION:
        raise ValueError(f"{what} was begun by another version of barnabas: use that one, or another name with --name")
    return fields
