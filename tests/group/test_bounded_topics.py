"""`__consumer_offsets` and `__transaction_state` stay small however much is committed: compaction, on real files and real records."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.coordinator.coordinator_log import RecordSerde
from barnabas.group import requests
from barnabas.group.group_config import GroupCoordinatorConfig
from barnabas.group.group_coordinator import GroupCoordinator
from barnabas.group.group_shard import shard_factory
from barnabas.log.append_checks import AppendOrigin
from barnabas.log.cleanable_log import CleanerConfig
from barnabas.log.cleaner_worker import InlineWorker
from barnabas.log.disk import OsDisk
from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import OffsetCommitRequest, OffsetFetchRequest, TransactionLogValue
from barnabas.protocol.primitives import Uuid
from barnabas.records.builder import build_batch
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from barnabas.steps import start
from barnabas.transaction.records import metadata_of, transaction_record
from barnabas.transaction.transaction_metadata import TransactionMetadata
from barnabas.transaction.transaction_state import TransactionState
from tests.at_once import at_once
from tests.coordinator.virtual_loop import VirtualLoop

pytestmark = pytest.mark.slow

# So few that the live records are a small part of a segment.
GROUPS, PARTITIONS, IDS = 5, 100, 50

# As many commits, or transactions, for each byte of a segment.
COMMITS = [
    pytest.param(50_000, 1 << 18, id="50,000"),
    pytest.param(1_000_000, 4 << 20, id="a million", marks=pytest.mark.long),
]
TRANSACTIONS = [
    pytest.param(4_000, 1 << 18, id="4,000"),
    pytest.param(60_000, 4 << 20, id="60,000", marks=pytest.mark.long),
]


class FileLog:
    """`CoordinatorLog` over one partition on files."""

    def __init__(self, loop: VirtualLoop, log: PartitionLog) -> None:
        self._loop = loop
        self.log = log

    def append(
        self, partition: int, batch: bytearray, *, guard: object = None, transaction_version: int = 0
    ) -> asyncio.Future[int]:
        info = self.log.append_as_leader(batch, 0, origin=AppendOrigin.COORDINATOR)
        self.log.high_watermark = self.log.log_end_offset
        future: asyncio.Future[int] = self._loop.create_future()
        future.set_result(info.last_offset)
        return future

    def committed_offset(self, partition: int) -> int:
        return self.log.high_watermark

    def read(self, partition: int) -> Iterator[bytes]:
        offset = self.log.log_start_offset
        while offset < self.log.log_end_offset:
            data = self.log.read(offset, 1 << 20, max_offset=self.log.log_end_offset).read()
            *_, (_, last) = iter_batches(data)
            offset = last.next_offset
            yield data


def opened(folder: Path, topic: str, segment_bytes: int, now_ms: Callable[[], int]) -> tuple[LogManager, PartitionLog]:
    disk = OsDisk()
    manager = LogManager(
        disk,
        str(folder),
        now_ms=now_ms,
        make_cleaner_worker=lambda _: InlineWorker(disk),
        cleaner_config=CleanerConfig(backoff_ms=0, dedupe_buffer_bytes=1 << 20),
    )
    at_once(manager.open())
    config = LogConfig(
        cleanup_policy=frozenset({"compact"}),
        segment_bytes=segment_bytes,
        min_cleanable_dirty_ratio=0.5,
        file_delete_delay_ms=0,
    )
    log = manager.get_or_create(topic, 0, Uuid(bytes(range(16))), config)
    log.high_watermark = log.log_end_offset
    return manager, log


def coordinator(loop: VirtualLoop, log: PartitionLog) -> GroupCoordinator:
    config = GroupCoordinatorConfig(offsets_topic_num_partitions=1)
    new_shard = shard_factory(config, now_ms=lambda: loop.now_ms, rng=random.Random(1))
    made = GroupCoordinator(config, FileLog(loop, log), new_shard, loop=loop, now_ms=lambda: loop.now_ms)
    made.on_elected(0, 0)
    loop.run_ready()
    return made


def commit(group: int, offset: int) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=f"group-{group}",
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name="orders",
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=i, committed_offset=offset + i)
                    for i in range(PARTITIONS)
                ],
            )
        ],
    )


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("commits", "segment_bytes"), COMMITS)
def test_offset_commits_leave_a_few_segments(tmp_path: Path, commits: int, segment_bytes: int) -> None:
    loop = VirtualLoop()
    manager, log = opened(tmp_path, "__consumer_offsets", segment_bytes, lambda: loop.now_ms)
    groups = coordinator(loop, log)
    written = largest = 0
    rounds = commits // PARTITIONS
    for i in range(rounds):
        before = log.log_end_offset
        answer = start(requests.offset_commit(groups, commit(i % GROUPS, i), 8), loop)
        loop.run_ready()
        assert answer.done()
        written += log.log_end_offset - before
        if i % (segment_bytes >> 14) == 0:
            loop.now_ms += 1000
            at_once(manager.housekeeping())
            largest = max(largest, log.size_in_bytes)
    assert written >= commits
    assert manager.cleaner.stats.cleanings > 5
    # The live records take a small part of a segment. Dirty segments wait for their share to exceed a half, beside the active one.
    assert largest < 4 * segment_bytes
    assert log.segment_count <= 4
    at_once(manager.close())
    # Another broker reads the little that is left, and knows every last offset.
    manager, log = opened(tmp_path, "__consumer_offsets", segment_bytes, lambda: loop.now_ms)
    groups = coordinator(loop, log)
    for group in range(GROUPS):
        request = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=f"group-{group}",
            topics=[
                OffsetFetchRequest.OffsetFetchRequestTopics(name="orders", partition_indexes=list(range(PARTITIONS)))
            ],
        )
        fetched = start(requests.offset_fetch(groups, request, require_stable=False), loop)
        loop.run_ready()
        last = rounds - GROUPS + group
        [topic] = fetched.result().topics
        assert [(p.partition_index, p.error_code, p.committed_offset) for p in topic.partitions] == [
            (i, ErrorCode.NONE, last + i) for i in range(PARTITIONS)
        ]
    at_once(manager.close())


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("transactions", "segment_bytes"), TRANSACTIONS)
def test_many_transactions_leave_one_record_of_each_id(tmp_path: Path, transactions: int, segment_bytes: int) -> None:
    now_ms = [1_000_000]
    manager, log = opened(tmp_path, "__transaction_state", segment_bytes, lambda: now_ms[0])
    serde = RecordSerde("transaction")
    steps = (TransactionState.ONGOING, TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
    partitions = frozenset({("orders", 0), ("orders", 1)})
    largest = 0
    for number in range(transactions):
        records = [
            serde.encode(
                transaction_record(
                    TransactionMetadata(
                        f"id-{number % IDS}",
                        producer_id=number % IDS,
                        producer_epoch=number // IDS,
                        timeout_ms=60_000,
                        state=state,
                        partitions=frozenset() if state is TransactionState.COMPLETE_COMMIT else partitions,
                        start_ms=now_ms[0],
                        last_update_ms=now_ms[0],
                    ),
                    2,
                )
            )
            for state in steps
        ]
        for key, value in records:
            log.append_as_leader(build_batch([(now_ms[0], key, value, ())]), 0, origin=AppendOrigin.COORDINATOR)
        log.high_watermark = log.log_end_offset
        if number % (segment_bytes >> 11) == 0:
            now_ms[0] += 1000
            at_once(manager.housekeeping())
            largest = max(largest, log.size_in_bytes)
    assert manager.cleaner.stats.cleanings > 2
    assert largest < 4 * segment_bytes
    state: dict[str, TransactionMetadata] = {}
    offset = 0
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 20, max_offset=log.log_end_offset).read()
        for position, header in iter_batches(data):
            offset = header.next_offset
            for record in iter_records(data, position):
                assert record.key is not None
                found = serde.decode(record.key, record.value)
                assert isinstance(found.value, TransactionLogValue)
                state[found.key.transactional_id] = metadata_of(found.key.transactional_id, found.value)
    assert len(state) == IDS
    assert {metadata.producer_epoch for metadata in state.values()} == {transactions // IDS - 1}
    assert {metadata.state for metadata in state.values()} == {TransactionState.COMPLETE_COMMIT}
    at_once(manager.close())
