"""The results of decoders, as JSON has them: bytes, times and large numbers become text."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from barnabas.decoding.decoded import Decoded
from barnabas.decoding.texts import cut


def plain(found: Any) -> Any:
    """Return a decoded value as JSON has it.

    Bytes become base64, times ISO 8601, decimals and UUIDs text, numbers that JSON has not their names; keys of maps become text.

    Raises:
        RecursionError: it is nested too deeply.
    """
    match found:
        case None | bool() | int() | str():
            return found
        case float():
            return found if math.isfinite(found) else str(found)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(found).decode()
        case Mapping():
            return {str(name): plain(each) for name, each in found.items()}
        case list() | tuple():
            return [plain(each) for each in found]
        case datetime() | date() | time():
            return found.isoformat()
        case Decimal() | UUID() | timedelta():
            return str(found)
    return str(found)


def as_json(format: str, data: Any, size: int, most: int | None) -> Decoded:
    """Return data of a value with its text in JSON, of at most so many characters."""
    text, is_cut = cut(json.dumps(data, ensure_ascii=False), most)
    return Decoded(format, data, text, size, is_cut)
