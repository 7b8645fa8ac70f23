"""The files of previews, in memory until their change is made: a browser sends each of them once.

At most `FILES_MAX` are kept; the oldest makes room for another one. Each is forgotten after `KEPT_S`, and with the process. A file is known
by a random id, which the form of its preview has.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from barnabas.console.changes.given import SentFile

FILES_MAX = 8
KEPT_S = 900


class KeptFiles:
    """Keeps files.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._files: dict[str, tuple[SentFile, float]] = {}

    def __repr__(self) -> str:
        return f"<KeptFiles {len(self._files)} bytes={sum(len(file.data) for file, _ in self._files.values())}>"

    def keep(self, file: SentFile) -> str:
        """Keep a file, and return its id; `forget_old` is to be called `KEPT_S` later."""
        self.forget_old()
        while len(self._files) >= FILES_MAX:
            del self._files[next(iter(self._files))]
        key = secrets.token_urlsafe(18)
        self._files[key] = (file, self._clock() + KEPT_S)
        return key

    def of(self, key: str) -> SentFile | None:
        """Return the file of an id; None if it is not kept any more."""
        self.forget_old()
        found = self._files.get(key)
        return None if found is None else found[0]

    def forget(self, key: str) -> None:
        """Forget a file, if it is there."""
        self._files.pop(key, None)

    def forget_old(self) -> None:
        """Forget the files whose time has passed."""
        now_s = self._clock()
        self._files = {key: each for key, each in self._files.items() if each[1] > now_s}
