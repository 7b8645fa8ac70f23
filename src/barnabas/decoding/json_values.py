"""Values in JSON: RFC 8259, so neither NaN nor an empty value."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from barnabas.decoding.decoded import Decoded
from barnabas.decoding.texts import cut
from barnabas.spark.decoding.bad_value import BadValue


def _reject(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_reject)
"""Made a single time: `json.loads` makes another one for each value."""


def from_json(data: bytes) -> Any:
    """Return the data of a JSON document.

    Raises:
        BadValue: it is none, or nested too deeply.
    """
    try:
        return _DECODER.decode(data.decode())
    except UnicodeDecodeError:
        raise BadValue("it is not JSON: it is not UTF-8") from None
    except RecursionError:
        raise BadValue("it is JSON that is nested too deeply") from None
    except ValueError as error:
        raise BadValue(f"it is not JSON: {error}") from None


def as_written(data: bytes, most: int | None) -> Decoded:
    """Return a JSON document, whose text is what was written.

    Raises:
        BadValue: it is no JSON document.
    """
    found = from_json(data)
    text, is_cut = cut(data.decode(), most)
    return Decoded("json", found, text, len(data), is_cut)
