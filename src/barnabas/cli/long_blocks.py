"""Acts in another thread if a block of code takes long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def if_longer_than(seconds: float, act: Callable[[], object]) -> Iterator[None]:
    """Call `act` once if the block still runs after some seconds. At the end of the block `act` has returned, or is never called."""
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
