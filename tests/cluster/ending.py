"""SIGTERM and SIGINT as an exception in the main thread, so that a script removes what it has made before it ends.

A script in the background of a shell ignores SIGINT from its start, and SIGTERM would end it where it stands: network namespaces, mounts
and the processes of nodes would stay.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise SystemExit in the block at the first of the signals; later ones are ignored, so that the block can clean up.

    The exit code is that of a process which the signal has ended, as a shell says it.
    """

    def end(number: int, _: FrameType | None) -> NoReturn:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = {each: signal.signal(each, end) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
