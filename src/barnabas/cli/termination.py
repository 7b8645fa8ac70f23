"""SIGTERM and SIGHUP end a command as Ctrl-C does: it leaves nothing half done behind.

The exit code is 128 and the signal's number, as that of Kafka's own tools: 143 after SIGTERM.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_NAMES = ("SIGTERM", "SIGHUP")


@contextmanager
def ends_cleanly() -> Iterator[None]:
    """Raise SystemExit within the block at the first signal that asks the process to end.

    Later ones are ignored: `timeout` and terminals send two, and the second would cut the clean-up short.
    """
    # Windows has no SIGHUP; `nohup` has it ignored, which stays so. None is a handler that is not Python's.
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    before = {each: signal.getsignal(each) for each in numbers}
    before = {each: handler for each, handler in before.items() if handler not in (signal.SIG_IGN, None)}

    def end(number: int, frame: object) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for each in before:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
