"""A registry at work: the state that follows the topic, the writer, and what has been parsed.

Reads are answered from the state. A read that finds nothing looks whether the topic has more first: a schema that another registry stored a
moment ago is found here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from barnabas.client.cluster import Cluster
from barnabas.protocol.errors import KafkaError
from barnabas.registry.following import Following, NotInTime
from barnabas.registry.parsed_schemas import ParsedSchemas
from barnabas.registry.problems import Problem
from barnabas.registry.schemas_log import DEFAULT_TOPIC, BadSchemasTopic, SchemasLog
from barnabas.registry.state import RegistryState
from barnabas.registry.writing import Decision, Writing

__all__ = ["Registry"]

T = TypeVar("T")

_NOT_FOUND = 404


class Registry:
    """A registry over one cluster, for the loop on which `start` is called.

    Args:
        connect: returns a new client of the cluster.
        topic: that has the schemas.
        timeout_s: how long a request waits for the cluster.
    """

    def __init__(self, connect: Callable[[], Cluster], topic: str = DEFAULT_TOPIC, *, timeout_s: float = 10) -> None:
        self.schemas = ParsedSchemas()
        self._following = Following(SchemasLog(connect(), topic))
        self._writing = Writing(SchemasLog(connect(), topic), self._following, timeout_s)
        self._is_loaded = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"<Registry {self.state!r}>"

    @property
    def state(self) -> RegistryState:
        """The state as it is known now."""
        return self._following.state

    async def start(self) -> None:
        """Make the topic if it does not exist, and read it; return when it is read, or the cluster does not answer."""
        self._loop = asyncio.get_running_loop()
        with suppress(KafkaError, BadSchemasTopic):
            await self._writing.open()
        self._following.start()
        with suppress(Problem):
            await self._load()

    async def stop(self) -> None:
        """End, and close the connections."""
        await self._writing.stop()
        await self._following.stop()

    async def _begin_again(self) -> None:
        await self._writing.open()
        self._following.begin_again()

    def begin_again_soon(self) -> Future[None]:
        """Make the topic again, which somebody deleted, and forget every schema; from any thread."""
        assert self._loop is not None, "start() comes first"
        return asyncio.run_coroutine_threadsafe(self._begin_again(), self._loop)

    async def read(self, ask: Callable[[RegistryState], Awaitable[T]]) -> T:
        """Return what a question finds.

        Raises:
            Problem: the question's; 50001 if the topic has not been read yet.
        """
        await self._load()
        try:
            return await ask(self.state)
        except Problem as problem:
            if problem.status != _NOT_FOUND:
                raise
        with suppress(KafkaError, NotInTime):
            await self._writing.catch_up()
        return await ask(self.state)

    async def write(self, decide: Callable[[RegistryState], Awaitable[Decision[T]]]) -> T:
        """Make a decision, and store it; `Writing.write` describes it."""
        return await self._writing.write(decide)

    async def _load(self) -> None:
        if self._is_loaded:
            return
        try:
            await self._writing.catch_up()
        except (KafkaError, NotInTime) as error:
            raise Problem(500, 50001, f"the topic of schemas has not been read yet: {error or 'not in time'}") from None
        self._is_loaded = True
