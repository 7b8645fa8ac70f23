"""SIGTERM and SIGHUP end a command as Ctrl-C does: it leaves nothing half done behind.

The exit code is 128 and the signal's number, as that of Kafka's own tools: 143 after SIGTERM.

confluent-kafka loses what a signal's handler raises while one of its callbacks runs: its call ends with a SystemError instead. The
block raises what was lost.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = ("SIGTERM", "SIGHUP", "SIGINT")


@contextmanager
def ends_cleanly() -> Iterator[None]:
    """Raise SystemExit within the block at the first signal that asks the process to end, and KeyboardInterrupt at Ctrl-C.

    Later signals but Ctrl-C are ignored, after the block too: `timeout` and terminals send two, and the second would cut the clean-up
    short.
    """
    # Windows has no SIGHUP; `nohup` has it ignored, which stays so. None is a handler that is not Python's.
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    before = {each: signal.getsignal(each) for each in numbers}
    before = {each: handler for each, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    asked: list[BaseException] = []

    def end(number: int, frame: object) -> None:
        if number == signal.SIGINT:
            asked.append(KeyboardInterrupt())
        else:
            for each in [each for each in before if each != signal.SIGINT]:
                signal.signal(each, signal.SIG_IGN)
                del before[each]
            asked.append(SystemExit(128 + number))
        raise asked[-1]

    for each in before:
        signal.signal(each, end)
    try:
        yield
    except SystemError:
        if not asked:
            raise
        raise asked[0] from None
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
