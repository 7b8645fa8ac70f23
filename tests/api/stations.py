"""Follows one request through the modules.

A station is a visit of a module: a call from another module that passes the request, or a part of it. The visit lasts until that call
returns, with all that the module calls in itself. Two calls in a row into one module are one visit.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import barnabas
from barnabas.protocol.message import Struct
from barnabas.replication.fetch_session import FetchPartition

_SOURCE = Path(barnabas.__file__).parent


def stations(handle: Callable[[], object], request: type[Struct]) -> list[str]:
    """Return the modules that a request visits, in order.

    Args:
        handle: lets one request of the class `request` be handled.
    """
    visited: list[str] = []
    known: dict[int, object] = {}  # Keeps them, so that no other object gets their ids.

    def is_part(value: object) -> bool:
        if isinstance(value, request):
            known.update((id(part), part) for part in _parts(value))
        return id(value) in known or isinstance(value, memoryview | FetchPartition)

    def called(frame: FrameType, event: str, _: object) -> None:
        code, module = frame.f_code, _module(frame)
        if event != "call" or module is None or module == _module(frame.f_back):
            return
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if visited[-1:] != [module] and any(
            _holds(frame.f_locals.get(name), is_part) for name in arguments if name != "self"
        ):
            visited.append(module)

    sys.setprofile(called)
    try:
        handle()
    finally:
        sys.setprofile(None)
    return visited


def _module(frame: FrameType | None) -> str | None:
    """Return the module of a frame; None if it is not ours, such as the code that is compiled for messages."""
    path = None if frame is None else Path(frame.f_code.co_filename)
    if path is None or not path.is_relative_to(_SOURCE):
        return None
    return path.relative_to(_SOURCE).with_suffix("").as_posix()


def climbs(modules: list[str], rooms: list[str]) -> int:
    """Return how often a request goes up again: from a room to one that stands above it.

    Args:
        rooms: from the highest to the lowest.
    """
    floors = [rooms.index(module.partition("/")[0]) for module in modules]
    return sum(after < before for before, after in itertools.pairwise(floors))


def _holds(value: object, is_part: Callable[[object], bool]) -> bool:
    if isinstance(value, list | tuple):
        return any(map(is_part, value[:1])) or is_part(value)
    return is_part(value)


def _parts(struct: Struct) -> Iterator[Any]:
    yield struct
    for name in struct.NESTED:
        value = getattr(struct, name)
        for each in value if isinstance(value, list) else (value,):
            yield each
            if isinstance(each, Struct):
                yield from _parts(each)
