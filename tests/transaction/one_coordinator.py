"""A transaction coordinator on an internal topic in memory, and partitions that note the markers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import AllocateProducerIdsResponse
from barnabas.steps import start
from barnabas.transaction.config import TransactionCoordinatorConfig
from barnabas.transaction.marker_writer import Marker
from barnabas.transaction.producer_id_manager import ProducerIdManager
from barnabas.transaction.transaction_coordinator import TransactionCoordinator
from barnabas.transaction.transaction_shard import EndTxn, InitProducerId
from barnabas.transaction.transaction_state import TransactionState
from tests.coordinator.internal_topic import InternalTopic
from tests.coordinator.virtual_loop import VirtualLoop

T0 = frozenset({("t", 0)})


class Partitions:
    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.written: list[tuple[tuple[str, int], int, bool]] = []
        self.coordinator_epochs: list[int] = []
        self.error: ErrorCode | None = None

    def exists(self, partition: tuple[str, int]) -> bool:
        return True

    def drop(self, producer_id: int) -> None:
        """Nothing waits here."""

    async def write(self, marker: Marker, partition: tuple[str, int]) -> None:
        if self.error is not None:
            raise KafkaError(self.error)
        self.written.append((partition, marker.producer_epoch, marker.commit))
        self.coordinator_epochs.append(marker.coordinator_epoch)


class Subject:
    def __init__(self, new_partitions: Callable[[VirtualLoop], Partitions] = Partitions, **config: Any) -> None:
        self.loop = VirtualLoop()
        self.log = InternalTopic(self.loop)
        self.partitions = new_partitions(self.loop)
        self.blocks = 0
        self.refuse_ids = False
        self.held_ids: list[asyncio.Future[Any]] | None = None
        self.level = 2
        self.coordinator = TransactionCoordinator(
            TransactionCoordinatorConfig(transaction_state_log_num_partitions=1, **config),
            self.log,
            self.partitions,
            ProducerIdManager(self.loop, self._allocate),
            loop=self.loop,
            now_ms=lambda: self.loop.now_ms,
            partition_count=lambda: 1,
            transaction_version=lambda: self.level,
        )
        self.elect(0)

    def _allocate(self) -> asyncio.Future[Any]:
        future = self.loop.create_future()
        if self.held_ids is not None:
            self.held_ids.append(future)
        elif self.refuse_ids:
            future.set_exception(KafkaError(ErrorCode.NOT_CONTROLLER))
        else:
            self.blocks += 1
            future.set_result(AllocateProducerIdsResponse(producer_id_start=1000 * self.blocks, producer_id_len=2))
        return future

    def elect(self, epoch: int) -> None:
        self.coordinator.on_elected(0, epoch)
        self.loop.run_ready()

    def load_again(self) -> None:
        self.coordinator.on_resigned(0)
        self.elect(1)

    def init(self, **fields: Any) -> Any:
        return start(self.coordinator.init_producer_id(InitProducerId("tx", 60_000, **fields)), self.loop)

    def add(self, producer: tuple[int, int]) -> Any:
        return start(self.coordinator.add_partitions("tx", *producer, T0, 2), self.loop)

    def end(self, producer: tuple[int, int], *, commit: bool = True) -> Any:
        return start(self.coordinator.end_transaction(EndTxn("tx", *producer, commit, 2)), self.loop)

    def begin(self) -> tuple[int, int]:
        """A producer with an open transaction."""
        begun = self.init().result()
        producer = (begun.producer_id, begun.producer_epoch)
        assert self.add(producer).result() is None
        return producer

    def state(self) -> TransactionState:
        described = start(self.coordinator.describe("tx"), self.loop).result()
        assert isinstance(described.state, TransactionState)
        return described.state
