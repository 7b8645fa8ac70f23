"""Keeps the state up with the topic: one thread waits for records, the loop applies them.

A leader that does not answer is asked again until it does; meanwhile requests are answered from what is known, and also while the topic
does not exist: the next write makes it again (`writing`). A topic that somebody else made again is read from its first record, into a new
state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import Uuid
from barnabas.registry.schemas_log import SchemasLog
from barnabas.registry.state import RegistryState

__all__ = ["Following", "NotInTime"]

logger = logging.getLogger(__name__)

_WAIT_MS = 500
_PAUSE_S = 0.2
_RECORDS_A_TURN = 200
_MADE_AGAIN = "The topic of schemas was made again: the registry reads it from its beginning"


class NotInTime(Exception):
    """The topic's records did not arrive in time."""


class Following:
    """The state, and the task that renews it.

    Args:
        log: for this object alone; closed by `stop`.
    """

    def __init__(self, log: SchemasLog) -> None:
        self.state = RegistryState()
        self._log = log
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="registry-reader")
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._beginnings = 0
        self._topic_id: Uuid | None = None
        self._is_same_topic = False
        self._free = asyncio.Event()
        self._free.set()

    def __repr__(self) -> str:
        return f"<Following next_offset={self.state.next_offset}>"

    def start(self) -> None:
        """Begin to read, on the running loop."""
        self._task = asyncio.get_running_loop().create_task(self._follow())

    async def stop(self) -> None:
        """End the task, and the thread when its request is answered."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await asyncio.to_thread(self._thread.shutdown)
        self._log.close()

    def begin_again(self, offset: int = 0) -> None:
        """Forget everything, and read from an offset on: the topic is another one."""
        self.state = RegistryState()
        self._begin_at(offset)

    @contextmanager
    def held(self) -> Iterator[RegistryState]:
        """Read nothing within the block; yield the state, which stays as it is."""
        self._beginnings += 1
        self._free.clear()
        try:
            yield self.state
        finally:
            self._free.set()

    def go_on(self, offset: int) -> None:
        """Keep the state, and read from an offset on: a topic that was made again has the state in front of it."""
        self._begin_at(offset)

    def _begin_at(self, offset: int) -> None:
        self._beginnings += 1
        self._topic_id, self._is_same_topic = None, False
        self._move_to(offset)

    async def reach(self, next_offset: int, timeout_s: float, topic_id: Uuid | None = None) -> None:
        """Return when every record in front of an offset is applied.

        Args:
            topic_id: of the topic that has the offset; None for any. A deleted topic may have been as long.

        Raises:
            NotInTime: the records did not arrive.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not self._has(next_offset, topic_id):
                    await self._news.wait()
                return
        raise NotInTime

    def _has(self, next_offset: int, topic_id: Uuid | None) -> bool:
        if topic_id not in (None, self._topic_id):
            # The leader rejects no offset that the new topic has, too, so only the id tells.
            self._is_same_topic = False
            return False
        return self.state.next_offset >= next_offset

    async def _follow(self) -> None:
        while True:
            try:
                await self._read_on()
            except KafkaError as error:
                if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    await self._find_beginning()
                    continue
                logger.info("The topic of schemas cannot be read: %s", error)
                self._is_same_topic = False
                self._log.forget()
                await asyncio.sleep(_PAUSE_S)

    async def _read_on(self) -> None:
        loop = asyncio.get_running_loop()
        await self._free.wait()
        beginnings = self._beginnings
        if not self._is_same_topic:
            topic_id = await loop.run_in_executor(self._thread, self._log.topic_id)
            if beginnings != self._beginnings:
                return
            if self._topic_id not in (None, topic_id):
                await self._read_the_new_topic()
                return
            self._topic_id, self._is_same_topic = topic_id, True
            self._tell()
        records, next_offset = await loop.run_in_executor(
            self._thread, self._log.poll, self.state.next_offset, _WAIT_MS
        )
        if beginnings != self._beginnings:
            return
        for number, (key, value) in enumerate(records, 1):
            self.state.replay(key, value)
            if number % _RECORDS_A_TURN == 0:
                await asyncio.sleep(0)
                if beginnings != self._beginnings:
                    return
        self._move_to(next_offset)

    async def _find_beginning(self) -> None:
        loop = asyncio.get_running_loop()
        with suppress(KafkaError):
            first, end = await loop.run_in_executor(self._thread, self._log.bounds)
            if not first <= self.state.next_offset <= end:
                if self.state.next_offset > 0:
                    logger.warning(_MADE_AGAIN)
                self.begin_again(first)
                return
        await asyncio.sleep(_PAUSE_S)

    async def _read_the_new_topic(self) -> None:
        beginnings = self._beginnings
        first, _ = await asyncio.get_running_loop().run_in_executor(self._thread, self._log.bounds)
        if beginnings == self._beginnings:
            logger.warning(_MADE_AGAIN)
            self.begin_again(first)

    def _move_to(self, next_offset: int) -> None:
        self.state.next_offset = next_offset
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
