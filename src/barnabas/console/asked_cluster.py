"""A cluster that pages ask about: administrative clients that wait for its answers off the loop.

A client serves one question at a time. A few threads ask, each with the client that was used last, so that connections live on. A
client that lost its connection is closed: the next question begins with the bootstrap addresses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from barnabas.client.admin import Admin
from barnabas.client.errors import ClientError
from barnabas.decoding.decoder import Decoder

R = TypeVar("R")

QUESTIONS_AT_ONCE = 4
"""A page asks for its parts side by side."""
SEARCHES_AT_ONCE = 3
"""A search reads for seconds; it must not keep the other pages waiting."""


class AskedCluster:
    """A cluster by its name.

    Args:
        name: as the console's file has it.
        connect: returns a new client.
        decoder: decodes its records; one without schemas and masks if None.
    """

    def __init__(self, name: str, connect: Callable[[], Admin], decoder: Decoder | None = None) -> None:
        self.name = name
        self.decoder = decoder or Decoder()
        self._connect = connect
        self._idle: list[Admin] = []
        self._threads = ThreadPoolExecutor(QUESTIONS_AT_ONCE, thread_name_prefix="console")
        self._searches = ThreadPoolExecutor(SEARCHES_AT_ONCE, thread_name_prefix="console-search")

    def __repr__(self) -> str:
        return f"<AskedCluster {self.name} idle={len(self._idle)}>"

    async def ask(self, question: Callable[[Admin], R]) -> R:
        """Call a function with a client, in another thread; it ends there even if the caller no longer waits.

        Raises:
            KafkaError: no broker answers, or one returns an error.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, question)

    async def search(self, question: Callable[[Admin], R]) -> R:
        """Call a function that reads records, as `ask` does, in one of the threads for such functions."""
        return await asyncio.get_running_loop().run_in_executor(self._searches, self._ask, question)

    def _ask(self, question: Callable[[Admin], R]) -> R:
        try:
            admin = self._idle.pop()
        except IndexError:
            admin = self._connect()
        try:
            answer = question(admin)
        except ClientError:
            admin.close()
            raise
        except BaseException:
            self._idle.append(admin)
            raise
        self._idle.append(admin)
        return answer

    def close(self) -> None:
        """Wait for the questions in flight, and close the clients."""
        for each in (self._threads, self._searches):
            each.shutdown(cancel_futures=True)
        self.forget_clients()

    def forget_clients(self) -> None:
        """Close the clients that wait for a question; the next question dials again."""
        while self._idle:
            self._idle.pop().close()
