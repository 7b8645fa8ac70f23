"""Reading shards from their logs, a bounded number of records per turn of the loop (control plane).

Shards are read one after the other, in the order of their elections; a large one does not stall the loop, and an empty one costs
next to nothing. A record of a type that nobody here knows is passed over: it was written by a newer broker. A log that cannot be
read, or a record that is not what it says, makes the shard FAILED, and only that one.

Sources: Kafka class `CoordinatorLoaderImpl`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol

from barnabas.coordinator.coordinator_log import Buffer, CoordinatorLog, RecordSerde, UnknownRecordType
from barnabas.coordinator.shard_context import ContextState, S, ShardContext
from barnabas.protocol.errors import KafkaError
from barnabas.records.control import ControlRecordType, control_type
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches

logger = logging.getLogger(__name__)

NO_PRODUCER_ID = -1
LOAD_RECORDS_PER_TURN = 500


class CallSoon(Protocol):
    """The loop's `call_soon`."""

    def __call__(self, callback: Callable[..., object], /, *args: Any) -> object: ...


class ShardLoader(Generic[S]):
    """Loads the shards of one coordinator."""

    def __init__(self, name: str, log: CoordinatorLog, serde: RecordSerde, call_soon: CallSoon) -> None:
        self._name = name
        self._log = log
        self._serde = serde
        self._call_soon = call_soon
        self._loading: deque[ShardContext[S]] = deque()
        self._is_scheduled = False

    def __repr__(self) -> str:
        return f"ShardLoader({self._name} {list(self._loading)})"

    def load(self, context: ShardContext[S]) -> None:
        """Have a shard read, from the next turn of the loop on; it becomes ACTIVE or FAILED."""
        self._loading.append(context)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._load_some)

    def _load_some(self) -> None:
        """Replay up to a bounded number of records, then let the loop turn."""
        self._is_scheduled = False
        budget = LOAD_RECORDS_PER_TURN
        while self._loading and budget > 0:
            context = self._loading[0]
            if context.state is ContextState.LOADING:
                budget -= self._load_step(context, budget)
            if context.state is not ContextState.LOADING:
                self._loading.popleft()
        if self._loading:
            self._schedule()

    def _load_step(self, context: ShardContext[S], budget: int) -> int:
        """Replay at most `budget` records of a shard; returns the number replayed (at least 1, for the opening itself)."""
        used = 1
        try:
            if context.source is None:
                context.source = self._replay_log(context)
            for _ in context.source:
                used += 1
                if used >= budget:
                    return used
        except KafkaError as error:
            logger.error("%s coordinator: partition %d cannot be loaded: %s", self._name, context.partition, error)
            return self._failed(context, used)
        except Exception:
            logger.exception("%s coordinator: partition %d cannot be loaded", self._name, context.partition)
            return self._failed(context, used)
        context.source = None
        context.state = ContextState.ACTIVE
        context.shard.on_loaded()
        return used

    def _failed(self, context: ShardContext[S], used: int) -> int:
        context.state = ContextState.FAILED
        context.source = None
        context.timer.cancel_all()
        return used

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
