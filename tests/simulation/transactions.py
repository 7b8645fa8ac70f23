"""A transactional producer and a read_committed consumer for the simulated world, speaking the protocol by hand.

Both versions of transactions: in version 2 the partitions are added by producing to them and each end brings a new epoch; in version 1
the producer adds them first and keeps its epoch. The consumer filters aborted records as every client does, by the list in the answer.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    ProduceRequest,
    ProduceResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, control_type
from barnabas.records.record import Record, iter_records
from barnabas.records.record_batch import iter_batches
from tests.simulation.client import Asks, Connect
from tests.simulation.cluster_client import GROUP, TRANSACTION
from tests.simulation.end_watcher import CONSUMER, LATEST
from tests.simulation.history import History, Partition, Refusal, Transaction
from tests.simulation.workload import LOST, NOT_YET, fetch_batches

READ_COMMITTED = 1
TIMEOUT_MS = 60_000
"""Of each transaction: its coordinator aborts it then."""
EARLIEST = -2
AGAIN = frozenset({*NOT_YET, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNSTABLE_OFFSET_COMMIT})
_PATIENCE = 500
_ENDS = 100
"""How many EndTxn requests of a silent transaction may get no answer before its producer sends InitProducerId again."""


class Refused(Exception):
    """The broker rejected a request, and repeating it would not help.

    Attributes:
        is_of_leader: whether the leader of a partition rejected it, with the verdict of the coordinator that it knows. The group's
            coordinator leads one too.
    """

    def __init__(self, code: int, *, is_of_leader: bool = False) -> None:
        super().__init__(ErrorCode(code).name)
        self.code = ErrorCode(code)
        self.is_of_leader = is_of_leader


async def until_accepted(ask: Any, error_of: Any, *, is_of_leader: bool = False) -> Any:
    """Ask again while the answer is "not yet".

    Raises:
        Refused: any other error, or the same answer for too long.
    """
    for _ in range(_PATIENCE):
        answer = await ask()
        code = error_of(answer)
        if not code:
            return answer
        if code not in AGAIN:
            break
        await asyncio.sleep(0.02)
    raise Refused(code, is_of_leader=is_of_leader)


async def find_coordinator(client: Asks, kind: int, key: str) -> None:
    """Ask until there is a coordinator, which creates its topic."""
    request = FindCoordinatorRequest(coordinator_keys=[key], key_type=kind)
    await until_accepted(
        lambda: client.request(ApiKey.FIND_COORDINATOR, 4, request, FindCoordinatorResponse),
        lambda answer: answer.coordinators[0].error_code,
    )


class TransactionalProducer:
    """One transactional id.

    Args:
        version: of transactions, 1 or 2.
    """

    def __init__(self, client: Asks, transactional_id: str, version: int) -> None:
        self._client = client
        self._id = transactional_id
        self._version = version
        self.producer_id = -1
        self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    async def init(self) -> None:
        request = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=TIMEOUT_MS)
        answer = await until_accepted(
            lambda: self._client.request(ApiKey.INIT_PRODUCER_ID, 4, request, InitProducerIdResponse),
            lambda answer: answer.error_code,
        )
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    async def send(
        self,
        topic: str,
        index: int,
        value: bytes | None,
        *,
        key: bytes = b"k",
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> int:
        """Send one record, and return its offset; -1 if the broker does not say."""
        if self._version == 1:
            await self._add(topic, index)
        loop: Any = asyncio.get_running_loop()
        sequence = self._sequences.get((topic, index), 0)
        batch = build_batch(
            [(loop.now_ms(), key, value, headers)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        partition = ProduceRequest.PartitionProduceData(index=index, records=memoryview(batch))
        request = ProduceRequest(
            transactional_id=self._id,
            acks=-1,
            timeout_ms=1000,
            topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[partition])],
        )
        version = 12 if self._version == 2 else 10
        answer = await until_accepted(
            lambda: self._client.request(ApiKey.PRODUCE, version, request, ProduceResponse),
            lambda answer: answer.responses[0].partition_responses[0].error_code,
            is_of_leader=True,
        )
        self._sequences[topic, index] = sequence + 1
        return int(answer.responses[0].partition_responses[0].base_offset)

    async def _add(self, topic: str, index: int) -> None:
        wanted = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[index])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[wanted],
        )
        await until_accepted(
            lambda: self._client.request(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request, AddPartitionsToTxnResponse),
            lambda answer: answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
        )

    async def commit_offset(self, group: str, topic: str, index: int, offset: int) -> None:
        if self._version == 1:
            added = AddOffsetsToTxnRequest(
                transactional_id=self._id,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                group_id=group,
            )
            await until_accepted(
                lambda: self._client.request(ApiKey.ADD_OFFSETS_TO_TXN, 3, added, AddOffsetsToTxnResponse),
                lambda answer: answer.error_code,
            )
        partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        version = 5 if self._version == 2 else 3
        await until_accepted(
            lambda: self._client.request(ApiKey.TXN_OFFSET_COMMIT, version, request, TxnOffsetCommitResponse),
            lambda answer: answer.topics[0].partitions[0].error_code,
            is_of_leader=True,
        )

    async def end(self, *, commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        version = 5 if self._version == 2 else 3
        answer = await until_accepted(
            lambda: self._client.request(ApiKey.END_TXN, version, request, EndTxnResponse),
            lambda answer: answer.error_code,
        )
        if self._version == 2:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()


class Transactor:
    """Writes transactions to random partitions until stopped, in version 1 or 2; some with an offset, some aborted.

    Args:
        do_clocks_jump: whether a coordinator's wall clock may, so that it aborts a transaction too early.
        are_nodes_cut_off: whether a leader may know only a coordinator that has been replaced, which knows an earlier epoch.
        coordinator_of: returns the address and the epoch of the leader of a transactional id's partition; None while nobody leads.
        linger_seconds: for how long, at most, a transaction is open without a new record.
    """

    def __init__(
        self,
        name: str,
        version: int,
        partitions: list[Partition],
        history: History,
        rng: random.Random,
        pause_seconds: float = 0.0,
        *,
        do_clocks_jump: bool = False,
        are_nodes_cut_off: bool = False,
        coordinator_of: Callable[[str], tuple[Any, int] | None] = lambda transactional_id: None,
        linger_seconds: float = 0.0,
    ) -> None:
        self._linger_seconds = linger_seconds
        self._do_clocks_jump = do_clocks_jump
        self._are_nodes_cut_off = are_nodes_cut_off
        self._coordinator_of = coordinator_of
        self.name, self._version, self._partitions, self._history, self._rng = name, version, partitions, history, rng
        self._pause_seconds = pause_seconds
        self._producer: TransactionalProducer | None = None
        self._number = 0
        self._may_be_fenced = False
        self._began = 0.0

    async def run(self, connect: Connect, loop: Any) -> None:
        client = connect(self.name)
        self._producer = None
        while True:
            try:
                await self._step(client)
            except (*LOST, Refused) as error:
                # Whatever became of the transaction, the next InitProducerId ends it.
                if isinstance(error, Refused):
                    self._note_refusal(error, client, loop)
                self._producer = None
                await asyncio.sleep(self._rng.random() * 0.2)
            if self._rng.random() < 0.3:
                await asyncio.sleep(self._rng.random() * 0.1)
            if self._pause_seconds:
                await asyncio.sleep(self._rng.random() * self._pause_seconds)

    def _note_refusal(self, error: Refused, client: Any, loop: Any) -> None:
        # A coordinator measures the timeout with the wall clock.
        is_overdue = self._do_clocks_jump or loop.time() - self._began > TIMEOUT_MS / 1000
        is_of_the_replaced = self._are_nodes_cut_off and (error.is_of_leader or self._was_replaced(client))
        refusal = Refusal(self.name, error.code, self._may_be_fenced or is_overdue, is_of_the_replaced)
        self._history.refusals.append(refusal)
        self._may_be_fenced = False
        loop.note(f"{self.name} was answered {error.code.name}", is_detail=True)

    def _was_replaced(self, client: Any) -> bool:
        """Return whether the coordinator that was asked is not that of the newest epoch."""
        newest = self._coordinator_of(self.name)
        return newest is not None and client.last_asked != newest[0]

    async def _step(self, client: Asks) -> None:
        if self._producer is None:
            await self._find(client)
            producer = TransactionalProducer(client, self.name, self._version)
            try:
                await producer.init()
            except LOST:
                # The broker may take it up yet, even after the next one.
                self._may_be_fenced = True
                raise
            self._producer = producer
        self._began = asyncio.get_running_loop().time()
        self._number += 1
        transaction = Transaction(self.name, self._number)
        self._history.transactions.append(transaction)
        for partition in self._rng.sample(self._partitions, self._rng.randrange(1, len(self._partitions) + 1)):
            await self._producer.send(*partition, transaction.value)
            transaction.partitions.append(partition)
        if self._rng.random() < 0.5:
            await self._producer.commit_offset(self.name, *self._partitions[0], self._number)
            transaction.has_offset = True
        if self._linger_seconds:
            await asyncio.sleep(self._rng.random() * self._linger_seconds)
        transaction.is_commit = self._rng.random() < 0.7
        await self._end(self._producer, commit=transaction.is_commit)
        transaction.acknowledged = True

    async def _end(self, producer: TransactionalProducer, *, commit: bool) -> None:
        """End the transaction; if it was silent, on a new connection, because the brokers may have started again since."""
        for _ in range(_ENDS if self._linger_seconds else 0):
            try:
                return await producer.end(commit=commit)
            except LOST:
                await asyncio.sleep(0.1)
        await producer.end(commit=commit)

    async def _find(self, client: Asks) -> None:
        await find_coordinator(client, TRANSACTION, self.name)
        await find_coordinator(client, GROUP, self.name)

    async def take_over(self, client: Asks) -> int:
        """End what is open as its next producer would; returns the group's offset."""
        await self._find(client)
        await TransactionalProducer(client, self.name, self._version).init()
        return await committed_offset(client, self.name, *self._partitions[0])


class CommittedReader:
    """Reads with read_committed over and over, and notes all that it has ever seen.

    Args:
        pause_seconds: between two rounds.
    """

    def __init__(self, partitions: list[Partition], history: History, pause_seconds: float = 0.05) -> None:
        self._partitions, self._history, self._pause_seconds = partitions, history, pause_seconds

    async def run(self, connect: Connect, loop: Any) -> None:
        client = connect("committed-reader")
        while True:
            for partition in self._partitions:
                try:
                    values = await read_committed(client, *partition)
                except LOST:
                    await asyncio.sleep(0.1)
                except Refused as error:
                    if error.code not in AGAIN:
                        self._history.errors.append(f"a read_committed reader of {partition} was answered {error}")
                    await asyncio.sleep(0.1)
                else:
                    self._history.seen_committed.setdefault(partition, set()).update(values)
            await asyncio.sleep(self._pause_seconds)


async def state_of(client: Asks, transactional_id: str) -> str:
    """The name of a transactional id's state."""
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    answer = await until_accepted(
        lambda: client.request(ApiKey.DESCRIBE_TRANSACTIONS, 0, request, DescribeTransactionsResponse),
        lambda answer: answer.transaction_states[0].error_code,
    )
    return str(answer.transaction_states[0].transaction_state)


async def end_offset(client: Asks, topic: str, index: int, isolation: int = 0) -> int:
    """The high watermark, or with READ_COMMITTED the last stable offset."""
    return await _offset_of(client, topic, index, LATEST, isolation)


async def start_offset(client: Asks, topic: str, index: int) -> int:
    """The log start offset."""
    return await _offset_of(client, topic, index, EARLIEST)


async def _offset_of(client: Asks, topic: str, index: int, timestamp: int, isolation: int = 0) -> int:
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=CONSUMER,
        isolation_level=isolation,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[wanted])],
    )
    answer = await until_accepted(
        lambda: client.request(ApiKey.LIST_OFFSETS, 5, request, ListOffsetsResponse),
        lambda answer: answer.topics[0].partitions[0].error_code,
    )
    return int(answer.topics[0].partitions[0].offset)


async def read_committed(client: Asks, topic: str, index: int) -> list[bytes]:
    """Every value that a read_committed consumer sees, up to the last stable offset."""
    end = await end_offset(client, topic, index, READ_COMMITTED)
    return [bytes(record.value or b"") for record in await read_committed_records(client, topic, index, 0, end)]


async def read_committed_records(client: Asks, topic: str, index: int, offset: int, end: int) -> list[Record]:
    """Return every record that a read_committed consumer sees from an offset to an end.

    Raises:
        Refused: the broker rejected a request.
    """
    found: list[Record] = []
    while offset < end:
        result = await fetch_batches(
            client, Partition(topic, index), offset, max_bytes=1 << 20, isolation_level=READ_COMMITTED
        )
        if result.error_code:
            raise Refused(result.error_code)
        aborted = sorted((each.first_offset, each.producer_id) for each in result.aborted_transactions or ())
        skipping: set[int] = set()
        data = memoryview(result.records or b"")
        if not data:
            # A new leader may not know yet that this is committed.
            raise Refused(ErrorCode.OFFSET_NOT_AVAILABLE)
        for at, header in iter_batches(data):
            while aborted and aborted[0][0] <= header.last_offset:
                skipping.add(aborted.pop(0)[1])
            for record in iter_records(data[at : at + header.size]):
                if header.is_control:
                    if control_type(record.key) is ControlRecordType.ABORT:
                        skipping.discard(header.producer_id)
                elif record.offset >= offset and not (header.is_transactional and header.producer_id in skipping):
                    found.append(record)
            offset = max(offset, header.next_offset)
    return found


async def committed_offset(client: Asks, group: str, topic: str, index: int, *, require_stable: bool = True) -> int:
    """The group's offset, -1 for none; with `require_stable` waits while a transaction may still replace it."""
    wanted = OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id=group,
        topics=[OffsetFetchRequest.OffsetFetchRequestTopics(name=topic, partition_indexes=[index])],
    )
    request = OffsetFetchRequest(groups=[wanted], require_stable=require_stable)
    answer = await until_accepted(
        lambda: client.request(ApiKey.OFFSET_FETCH, 8, request, OffsetFetchResponse),
        lambda answer: answer.groups[0].error_code or answer.groups[0].topics[0].partitions[0].error_code,
    )
    return int(answer.groups[0].topics[0].partitions[0].committed_offset)
