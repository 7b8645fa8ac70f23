"""Writes to the topic: decide on the whole state, append, and answer when the records are applied here.

A decision gets a state to which no other registry can add meanwhile: this registry has the claim, and has read up to the end. If another
one takes the claim between the decision and the append, the append is rejected, and the decision is made again on the new state.

**A topic that somebody deleted** is made again by the next write, with everything that this registry knows, before the write adds its own
records: no schema and no id is lost. If another registry was faster, the topic has its records, and this one follows them. A registry
that is killed between the first and the last of these records, and is the only one, has stored a part of them.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, NamedTuple, TypeVar

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.registry.following import Following, NotInTime
from barnabas.registry.problems import Problem
from barnabas.registry.schemas_log import ClaimLost, SchemasLog
from barnabas.registry.state import RegistryState
from barnabas.registry.stored_records import StoredRecord

__all__ = ["Decision", "Writing"]

T = TypeVar("T")

logger = logging.getLogger(__name__)

CLAIM_AGE_S = 6 * 3600
"""A claim is taken again after so long: brokers forget an idle one after a day."""
_ATTEMPTS = 20
_PAUSE_S = 0.05
_BATCH_BYTES = 256 << 10
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


class Decision(NamedTuple, Generic[T]):
    """The records of a change, and the answer that is true when they are stored."""

    answer: T
    records: Sequence[StoredRecord] = ()


class Writing:
    """The one way to change the state.

    Args:
        log: for this object alone; closed by `stop`.
        following: applies what is appended.
        timeout_s: a write ends within a few of these.
        clock: a seam for tests; seconds that never go back.
    """

    def __init__(
        self,
        log: SchemasLog,
        following: Following,
        timeout_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._following = following
        self._timeout_s = timeout_s
        self._clock = clock
        self._name = secrets.token_hex(8)
        self._claimed_at: float | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="registry-writer")
        self._one_at_a_time = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<Writing {self._name} claimed={self._claimed_at is not None}>"

    async def stop(self) -> None:
        """Wait for the request in flight, and close the connections."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)
        self._log.close()

    async def open(self) -> None:
        """Make the topic if it does not exist; errors as in `SchemasLog.open`."""
        async with self._one_at_a_time:
            self._claimed_at = None
            await self._in_thread(self._log.open)

    async def write(self, decide: Callable[[RegistryState], Awaitable[Decision[T]]]) -> T:
        """Make a decision, and return its answer when its records are stored and applied.

        Raises:
            Problem: the decision's, or 5000x if the cluster does not store the records. In that case they may be stored later, or not:
                the same request again finds out.
        """
        async with self._one_at_a_time:
            try:
                return await self._write(decide)
            except NotInTime:
                raise Problem(
                    500, 50002, "the records of the schemas' topic have not arrived in time; try again"
                ) from None
            except KafkaError as error:
                self._claimed_at = None
                if error.code in _TOO_LARGE:
                    raise Problem(422, 42209, f"the schema is too large for its topic: {error.message}") from None
                raise Problem(500, 50001, f"the cluster does not store the change: {error}") from None

    async def catch_up(self) -> None:
        """Return when everything that is stored now is applied.

        Raises:
            KafkaError: no leader answers.
            NotInTime: the records did not arrive.
        """
        await self._reach(await self._in_thread(self._log.end))

    async def _reach(self, next_offset: int) -> None:
        topic_id = await self._in_thread(self._log.topic_id)
        await self._following.reach(next_offset, self._timeout_s, topic_id)

    async def _write(self, decide: Callable[[RegistryState], Awaitable[Decision[T]]]) -> T:
        for attempt in range(_ATTEMPTS):
            if attempt:
                await asyncio.sleep(_PAUSE_S * random.random() * attempt)
            try:
                await self._be_sole_writer()
                decision = await decide(self._following.state)
                if not decision.records:
                    return decision.answer
                offset = await self._in_thread(self._log.append, decision.records)
            except ClaimLost:
                self._claimed_at = None
                continue
            except KafkaError as error:
                if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or attempt:
                    raise
                await self._make_topic_again()
                continue
            await self._reach(offset + 1)
            return decision.answer
        raise Problem(500, 50002, "other registries write to the same topic at this moment; try again")

    async def _be_sole_writer(self) -> None:
        if self._claimed_at is not None:
            await self.catch_up()
            is_old = self._clock() - self._claimed_at > CLAIM_AGE_S
            if not is_old and self._following.state.claim == self._name:
                return
        offset = await self._in_thread(self._log.claim, self._following.state.max_id, self._name)
        self._claimed_at = self._clock()
        await self._reach(offset + 1)

    async def _make_topic_again(self) -> None:
        """Make the topic, and store everything that is known there, unless another registry has done so.

        Raises:
            KafkaError: the cluster does not store it.
            ClaimLost: another registry has taken the claim.
        """
        self._claimed_at = None
        with self._following.held() as state:
            await self._in_thread(self._log.open)
            offset = await self._in_thread(self._log.claim, state.max_id, self._name)
            if offset > 0:
                return
            records = state.records()
            logger.warning(
                "The topic of schemas was deleted: the registry made it again, and stores %d records", len(records)
            )
            for batch in _batches(records):
                offset = await self._in_thread(self._log.append, batch)
            state.claim = self._name
            self._claimed_at = self._clock()
            self._following.go_on(offset + 1)

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)


def _batches(records: Sequence[StoredRecord]) -> Iterator[list[StoredRecord]]:
    """Yield records in pieces that any topic takes, if it took each of them."""
    batch: list[StoredRecord] = []
    size = 0
    for record in records:
        length = len(record[0]) + len(record[1] or b"")
        if batch and size + length > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += length
    if batch:
        yield batch
