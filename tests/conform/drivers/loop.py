"""The part every Python driver shares: commands in, answers out (see protocol.md beside this file)."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from typing import Any


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def data(value: str | None) -> bytes | None:
    return None if value is None else value.encode()


def headers_of(record: dict[str, Any]) -> list[tuple[str, bytes | None]]:
    return [(name, data(value)) for name, value in record["headers"]]


def serve(driver: object, code_of: Callable[[BaseException], int | None]) -> None:
    """Answer commands with the driver's methods of the same names until `close` or the end of input."""
    for line in sys.stdin:
        command: dict[str, Any] = json.loads(line)
        name = command.pop("do")
        try:
            method: Callable[..., Any] = getattr(driver, name)
            answer = {"ok": method(**command)}
        except Exception as error:
            answer = {
                "error": f"{type(error).__name__}: {error}", "code": code_of(error), "trace": traceback.format_exc(),
            }  # fmt: skip
        print(json.dumps(answer), flush=True)
        if name == "close":
            return
