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


def serve(driver: object) -> None:
    """Answer commands with the driver's methods of the same names until `close` or the end of input."""
    for line in sys.stdin:
        command: dict[str, Any] = json.loads(line)
        name = command.pop("do")
        method: Callable[..., Any] = getattr(driver, name)
        try:
            answer = {"ok": method(**command)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
        print(json.dumps(answer), flush=True)
        if name == "close":
            return
