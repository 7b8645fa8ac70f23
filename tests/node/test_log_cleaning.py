"""Compaction in a node: its settings follow the cluster's, its child does the work, and neither outlives the node."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.log.cleaner_worker import ProcessWorker
from barnabas.log.log_cleaner import LogCleaner
from barnabas.protocol.messages import DeleteTopicsRequest, IncrementalAlterConfigsRequest, ProduceRequest
from barnabas.records.builder import build_batch
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from tests.api.served_node import Serving
from tests.at_once import at_once

WAIT_SECONDS = 120
BROKER = 4


@contextmanager
def serving(folder: Path, **settings: str) -> Iterator[Serving]:
    node = Serving(folder, **settings)
    try:
        yield node
    finally:
        node.close()


def cleaner_of(node: Serving) -> LogCleaner:
    return node.server.log_manager.cleaner


def alter(node: Serving, resource: str, **configs: str) -> None:
    altered = [
        IncrementalAlterConfigsRequest.AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
        for name, value in configs.items()
    ]
    answer = node.ask(
        IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsRequest.AlterConfigsResource(
                    resource_type=BROKER, resource_name=resource, configs=altered
                )
            ]
        )
    )
    assert answer.responses[0].error_code == 0, answer


def fill(node: Serving, batches: int = 40) -> None:
    """A record for one of three keys and for a key of its own in each batch, a minute after the one before it."""
    node.create_topic("t", cleanup_policy="compact", segment_ms="300000", min_cleanable_dirty_ratio="0.1")
    for i in range(batches):
        at = node.now_ms - 86_400_000 + i * 60_000
        records = build_batch([(at, b"k%d" % (i % 3), b"%d" % i, ()), (at, b"only-%d" % i, b"x" * 50, ())])
        answer = node.ask(
            ProduceRequest(
                acks=-1,
                timeout_ms=1000,
                topic_data=[
                    ProduceRequest.TopicProduceData(
                        name="t", partition_data=[ProduceRequest.PartitionProduceData(index=0, records=bytes(records))]
                    )
                ],
            ),
            9,
        )
        assert answer.responses[0].partition_responses[0].error_code == 0, answer


def clean(node: Serving) -> int:
    """Lets housekeeping begin a cleaning, and waits for its end; returns the child that did it."""
    cleaner = cleaner_of(node)
    ended = asyncio.Event()
    before = cleaner._on_cleaned
    cleaner._on_cleaned = lambda key: (before(key), ended.set())  # type: ignore[assignment]

    at_once(node.server.log_manager.housekeeping())
    assert cleaner.is_cleaning(("t", 0))
    pid = child_of(node)
    node.loop.run_until_complete(asyncio.wait_for(ended.wait(), WAIT_SECONDS))
    return pid


def exited(pid: int) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], WAIT_SECONDS)[0])
    finally:
        os.close(descriptor)


def child_of(node: Serving) -> int:
    """The child of a cleaning that has begun."""
    worker = cleaner_of(node)._worker
    assert isinstance(worker, ProcessWorker)

    async def started() -> int:
        while worker.pid is None:
            await asyncio.sleep(0)
        return worker.pid

    return node.loop.run_until_complete(asyncio.wait_for(started(), WAIT_SECONDS))


def test_the_settings_follow_the_cluster(tmp_path: Path) -> None:
    with serving(tmp_path, log_cleaner_backoff_ms="7000") as node:
        assert cleaner_of(node).config.backoff_ms == 7000
        assert cleaner_of(node).config.dedupe_buffer_bytes == 134_217_728
        assert cleaner_of(node).config.enable
        alter(node, "", log_cleaner_backoff_ms="100", log_cleaner_io_max_bytes_per_second="1000.5")
        assert cleaner_of(node).config.backoff_ms == 100
        assert cleaner_of(node).config.max_bytes_per_second == 1000.5
        alter(node, "", log_cleaner_threads="0")
        assert not cleaner_of(node).config.enable
    with serving(tmp_path / "off", log_cleaner_enable="false") as node:
        assert not cleaner_of(node).config.enable


@pytest.mark.slow
def test_a_topic_is_compacted_by_the_child(tmp_path: Path) -> None:
    with serving(tmp_path, log_cleaner_dedupe_buffer_size="100000") as node:
        fill(node)
        log = node.server.log_manager.logs["t", 0]
        before = log.size_in_bytes
        sealed = log.segments.active.base_offset
        pid = clean(node)
        assert cleaner_of(node).stats.cleanings == 1
        assert cleaner_of(node).cleaned_to(("t", 0)) == sealed
        assert log.size_in_bytes < before
        found = []
        offset = 0
        while offset < log.log_end_offset:
            data = log.read(offset, 1 << 20, max_offset=log.log_end_offset).read()
            for position, header in iter_batches(data):
                found += [(record.key, record.offset) for record in iter_records(data, position)]
                offset = header.next_offset
        below = [key for key, at in found if at < sealed]
        assert len(below) == len(set(below)) == sealed // 2 + 3
        # With nothing more to do the child was let go.
        assert exited(pid)


@pytest.mark.slow
def test_a_stop_does_not_wait_for_a_cleaning(tmp_path: Path) -> None:
    node = Serving(tmp_path, log_cleaner_io_max_bytes_per_second="1.0")
    fill(node)
    at_once(node.server.log_manager.housekeeping())
    pid = child_of(node)
    node.close()
    assert exited(pid)
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


@pytest.mark.slow
def test_a_deleted_topic_takes_its_cleaning_along(tmp_path: Path) -> None:
    with serving(tmp_path, log_cleaner_io_max_bytes_per_second="1.0") as node:
        fill(node)
        at_once(node.server.log_manager.housekeeping())
        pid = child_of(node)
        answer = node.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
        assert answer.responses[0].error_code == 0, answer
        assert exited(pid)

        async def ended() -> None:
            while cleaner_of(node).is_cleaning(("t", 0)):
                await asyncio.sleep(0)

        node.loop.run_until_complete(asyncio.wait_for(ended(), WAIT_SECONDS))
        assert cleaner_of(node).stats.cancelled == 1
