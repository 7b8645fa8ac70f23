"""Reading shards from their logs, with turns of the loop in between.

Shards are read one after the other, in the order of their elections; a large one does not stall the loop, and an empty one costs
next to nothing. The loader skips records of unknown types: a newer broker wrote them. If a log cannot be read, or a record cannot be
parsed or replayed, the loader marks this shard as FAILED and goes on with the next.

A shard that has been read becomes ACTIVE when all that it has read is committed. After an election the high watermark may be below the log
end, and the records between may still be lost in a second election. Nobody may have acted on them: a transaction whose Prepare record is
lost must not have a marker, a generation of a group must not have two assignments, and a committed offset must not go back. On one
replica everything in the log is committed.

Kafka's group coordinator answers before that: reads from the state as of the last committed offset, which may be older than an offset that
it has acknowledged already, and the rest when the high watermark gets there. Its transaction coordinator does not look at the high
watermark. This loader is stricter. Meanwhile clients get COORDINATOR_LOAD_IN_PROGRESS and retry, no session timer runs, and a heartbeat
of the classic protocol succeeds.

Sources: Kafka class `CoordinatorLoaderImpl`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from typing import Generic

from barnabas.coordinator.coordinator_log import Buffer, CoordinatorLog, RecordSerde, UnknownRecordType
from barnabas.coordinator.shard_context import ContextState, S, ShardContext
from barnabas.protocol.errors import KafkaError
from barnabas.records.control import ControlRecordType, control_type
from barnabas.records.record import iter_records
from barnabas.records.record_batch import NO_PRODUCER_ID, iter_batches
from barnabas.steps import Loop, in_background
from barnabas.turns import ELEMENT, READ, pace

logger = logging.getLogger(__name__)


class ShardLoader(Generic[S]):
    """Loads the shards of one coordinator."""

    def __init__(self, name: str, log: CoordinatorLog, serde: RecordSerde, loop: Loop) -> None:
        self._name = name
        self._log = log
        self._serde = serde
        self._loop = loop
        self._loading: deque[ShardContext[S]] = deque()

    def __repr__(self) -> str:
        return f"<ShardLoader {self._name} loading={list(self._loading)}>"

    def load(self, context: ShardContext[S]) -> None:
        """Read a shard, from the next turn of the loop on; it becomes ACTIVE when what it has read is committed, or FAILED."""
        self._loading.append(context)
        if len(self._loading) == 1:
            self._loop.call_soon(lambda: in_background(self._load_all(), self._loop))

    async def _load_all(self) -> None:
        while self._loading:
            await self._load(self._loading[0])
            self._loading.popleft()

    async def _load(self, context: ShardContext[S]) -> None:
        """Replay a shard's log, unless it is dropped meanwhile."""
        await pace(READ)
        if context.state is not ContextState.LOADING:
            return
        try:
            for _ in self._replay_log(context):
                await pace(ELEMENT)
                if context.state is not ContextState.LOADING:
                    return
            if self._is_committed(context):
                self._activate(context)
        except Exception as error:
            self._failed(context, error)

    def _is_committed(self, context: ShardContext[S]) -> bool:
        """Return whether all that a shard has read is committed; if not, activate it when it is.

        Raises:
            KafkaError: the partition is not here any more.
        """
        partition, end = context.partition, context.next_offset
        committed = self._log.committed_offset(partition)
        if committed >= end:
            return True
        logger.info(
            "%s coordinator: partition %d is read to offset %d and committed to %d; waiting for its replicas",
            self._name,
            partition,
            end,
            committed,
        )
        self._log.commit_of(partition, end - 1).add_done_callback(lambda commit: self._on_commit(context, commit))
        return False

    def _on_commit(self, context: ShardContext[S], commit: asyncio.Future[int]) -> None:
        error = asyncio.CancelledError() if commit.cancelled() else commit.exception()
        if context.state is not ContextState.LOADING:
            return  # This broker has lost the leadership.
        if error is None:
            self._activate(context)
        else:
            self._failed(context, error)

    def _activate(self, context: ShardContext[S]) -> None:
        context.state = ContextState.ACTIVE
        context.shard.on_loaded()

    def _failed(self, context: ShardContext[S], error: BaseException) -> None:
        is_expected = isinstance(error, KafkaError)
        logger.error(
            "%s coordinator: partition %d cannot be loaded%s",
            self._name,
            context.partition,
            f": {error}" if is_expected else "",
            exc_info=None if is_expected else error,
        )
        context.state = ContextState.FAILED
        context.timer.cancel_all()

    def _replay_log(self, context: ShardContext[S]) -> Iterator[None]:
        """Replay the partition record by record, yielding after each."""
        for buffer in self._log.read(context.partition):
            yield from self._replay_buffer(context, buffer)

    def _replay_buffer(self, context: ShardContext[S], buffer: Buffer) -> Iterator[None]:
        view = memoryview(buffer)
        for position, header in iter_batches(view):
            batch = view[position : position + header.size]
            if header.is_control:
                for marker in iter_records(batch):
                    kind = control_type(marker.key)
                    if kind in (ControlRecordType.COMMIT, ControlRecordType.ABORT):
                        committed = kind is ControlRecordType.COMMIT
                        context.shard.replay_end_transaction_marker(header.producer_id, committed)
            else:
                producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
                for record in iter_records(batch):
                    if record.key is not None:
                        self._replay_one(context, record.key, record.value, record.offset, producer_id)
                    yield
            context.next_offset = header.next_offset

    def _replay_one(
        self, context: ShardContext[S], key: Buffer, value: Buffer | None, offset: int, producer_id: int
    ) -> None:
        try:
            record = self._serde.decode(key, value)
        except UnknownRecordType as unknown:
            logger.info(
                "%s coordinator: partition %d offset %d skipped: %s", self._name, context.partition, offset, unknown
            )
            return
        context.shard.replay(record, offset, producer_id)
