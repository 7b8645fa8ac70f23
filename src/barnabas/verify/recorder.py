"""Records a history while it happens, from many threads.

Each line is written before the operation continues, so a killed run leaves a history that can be checked.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from barnabas.verify.history import History, MicroOp, Op, Outcome, header_line, to_line


class Recorder:
    """The history of one run.

    Args:
        about: the run, for the first line.
        path: the file; None keeps the history in memory.
        clock: nanoseconds.
    """

    def __init__(
        self, about: Mapping[str, Any], path: Path | None = None, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.about = about
        self.counts: Counter[tuple[str, Outcome]] = Counter()
        self._clock = clock
        self._began = clock()
        self._ops: list[Op] = []
        self._processes = 0
        self._lock = threading.Lock()
        self._file = path.open("w", buffering=1, encoding="utf-8") if path is not None else None
        if self._file is not None:
            self._file.write(header_line(about) + "\n")

    def new_process(self) -> int:
        """Return the number of a new process."""
        with self._lock:
            self._processes += 1
            return self._processes - 1

    def record(
        self,
        process: int,
        outcome: Outcome,
        f: str,
        value: Iterable[MicroOp] = (),
        *,
        keys: Iterable[int] = (),
        rebalanced: Iterable[int] = (),
        error: object = None,
        final: bool = False,
    ) -> Op:
        """Add one line; see `history.Op`."""
        with self._lock:
            op = Op(
                len(self._ops), self._clock() - self._began, process, outcome, f, tuple(value), tuple(keys),
                frozenset(rebalanced), None if error is None else " ".join(str(error).split()), final,
            )  # fmt: skip
            self._ops.append(op)
            self.counts[f, outcome] += 1
            if self._file is not None:
                self._file.write(to_line(op) + "\n")
        return op

    def history(self) -> History:
        """Return the history so far."""
        with self._lock:
            return History(tuple(self._ops), self.about)

    def close(self) -> None:
        """Close the file; later lines, of a stuck client, stay in memory."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
