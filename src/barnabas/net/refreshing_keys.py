"""The key set of a listener with OAUTHBEARER, kept as its token server has it.

    begin ── first document ──► fresh ── `jwks.endpoint.refresh.ms`, or a token with an unknown key ──► reads again
                                  ▲                                                                      │
                                  └────────────── document ◄── after a growing pause ◄── no document ────┘

- Documents are read and parsed in a thread of their own. Logins go on with the old keys meanwhile, and as long as the server is away.
- A token that names an unknown key fails, and lets the document be read early: for one key once a minute, and for all keys together
  once in `EARLY_S`, because a stranger can name as many keys as it likes.
- While the server is away the pause doubles from `jwks.endpoint.retry.backoff.ms` to `.retry.backoff.max.ms`. A line of log says so,
  and another one that the keys are there again.

Deviations: Kafka gives up after `.retry.backoff.max.ms` and waits for the next refresh; it reads a file at its start alone; and it bounds
early refreshes for one key only.

Source: KIP-768; Kafka's `RefreshingHttpsJwks`, `RefreshingHttpsJwksVerificationKeyResolver`, `Retry`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from typing import NamedTuple

from barnabas.net.jwks_fetch import DEADLINE_S
from barnabas.repeated_lines import RepeatedLines
from barnabas.security.sasl.oauth_keys import KeySet

__all__ = ["EARLY_S", "RefreshTimes", "RefreshingKeys", "WorkerThread"]

logger = logging.getLogger(__name__)

EARLY_S = 5.0
"""The least time between two early refreshes."""

_SAME_KEY_S = 60.0
_ASKED_KEYS_MAX = 16
_KEY_ID_CHARACTERS_MAX = 1000

Work = Callable[[], None]


class RefreshTimes(NamedTuple):
    """The settings `sasl.oauthbearer.jwks.endpoint.*` in milliseconds."""

    refresh_ms: int = 3_600_000
    backoff_ms: int = 100
    backoff_max_ms: int = 10_000


class WorkerThread:
    """Runs one piece of blocking work at a time in a thread that does not hold up the end of the process."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"<WorkerThread {'busy' if self._is_busy else 'idle'}>"

    @property
    def _is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def __call__(self, loop: asyncio.AbstractEventLoop, work: Work) -> asyncio.Future[None]:
        """Begin, and return what is done when the work is.

        Raises:
            OSError: the work before has not ended.
        """
        if self._is_busy:
            raise OSError("the request before has not ended")
        future: asyncio.Future[None] = loop.create_future()

        def run() -> None:
            failure: Exception | None = None
            try:
                work()
            except Exception as error:
                failure = error
            with contextlib.suppress(RuntimeError):  # The loop has ended.
                loop.call_soon_threadsafe(_settle, future, failure)

        self._thread = threading.Thread(target=run, name="jwks", daemon=True)
        self._thread.start()
        return future


def _settle(future: asyncio.Future[None], failure: Exception | None) -> None:
    if future.done():
        return
    if failure is None:
        future.set_result(None)
    else:
        future.set_exception(failure)


class RefreshingKeys:
    """A key set that is kept fresh from `begin` to `close`.

    Args:
        address: of the document, for messages.
        read: returns the document; it blocks, and raises OSError.
        worker: runs blocking work off the loop.
    """

    def __init__(
        self,
        keys: KeySet,
        address: str,
        read: Callable[[], bytes],
        times: RefreshTimes,
        worker: Callable[[asyncio.AbstractEventLoop, Work], asyncio.Future[None]] | None = None,
    ) -> None:
        self.keys = keys
        self.address = address
        self._document = read
        self._times = times
        self._worker = worker or WorkerThread()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self._early_at_s = 0.0
        self._asked_at_s: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"<RefreshingKeys {self.address} {self.keys!r}>"

    async def begin(self, loop: asyncio.AbstractEventLoop, lines: RepeatedLines) -> None:
        """Read the document for the first time, and again when it is time, until `close`.

        Raises:
            OSError, ValueError: there is no document with keys; the text is one line.
        """
        self._loop = loop
        await self._read(loop)
        self._task = loop.create_task(self._keep_fresh(loop, lines))

    def close(self) -> None:
        """Read nothing any more; more than once does no harm."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def ask_for(self, key_id: str) -> None:
        """Note that a token names a key that the set does not have."""
        if self._loop is None or len(key_id) > _KEY_ID_CHARACTERS_MAX:
            return
        now_s = self._loop.time()
        asked_at_s = self._asked_at_s.get(key_id)
        if asked_at_s is not None and now_s < asked_at_s + _SAME_KEY_S:
            return
        self._asked_at_s.pop(key_id, None)
        self._asked_at_s[key_id] = now_s
        if len(self._asked_at_s) > _ASKED_KEYS_MAX:
            del self._asked_at_s[next(iter(self._asked_at_s))]
        self._wanted.set()

    async def _keep_fresh(self, loop: asyncio.AbstractEventLoop, lines: RepeatedLines) -> None:
        backoff_ms = 0
        while True:
            await self._pause(loop, (backoff_ms or self._times.refresh_ms) / 1000)
            try:
                await self._read(loop)
            except (OSError, ValueError) as error:
                doubled = backoff_ms * 2 or self._times.backoff_ms
                backoff_ms = min(doubled, self._times.backoff_max_ms)
                line = f"The keys of OAUTHBEARER stay as they were: {self.address}: {error}"
                lines.log(logger, logging.WARNING, self.address, line)
                continue
            if backoff_ms:
                logger.info("The keys of OAUTHBEARER are read again from %s", self.address)
            backoff_ms = 0

    async def _pause(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """Wait so long, or until a key is asked for."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wanted.wait()
                await asyncio.sleep(self._early_at_s - loop.time())
                self._early_at_s = loop.time() + EARLY_S
        self._wanted.clear()

    async def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        done = self._worker(loop, self._replace)
        # A server may go on sending headers for longer than the reader's own deadline, which looks between two pieces of the document.
        late = OSError(f"there is no answer after {2 * DEADLINE_S:.0f} s")
        deadline = loop.call_later(2 * DEADLINE_S, _settle, done, late)
        try:
            await done
        finally:
            deadline.cancel()
        self._asked_at_s = {each: at for each, at in self._asked_at_s.items() if not self.keys.knows(each)}

    def _replace(self) -> None:
        document = self._document()
        try:
            self.keys.replace(document)
        except ValueError as error:
            raise ValueError(f"the document {error}") from None
