"""What a read returns."""

from __future__ import annotations

from barnabas.log.disk import OsDisk
from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import PartitionLog
from barnabas.records.record_batch import iter_batches
from tests.log.small_log import Clock, open_log, plain
from tests.log.story import append


def test_read_returns_the_whole_batch_that_holds_the_offset() -> None:
    log = open_log()
    for count in (3, 4, 5):
        log.append_as_leader(plain(count), 0)
    for offset in range(12):
        data = log.read(offset, 1, max_offset=12).read()
        [(_, header)] = list(iter_batches(data))
        assert header.base_offset <= offset <= header.last_offset
        assert len(data) == header.size


def test_read_stops_on_batch_borders() -> None:
    log = open_log(index_interval_bytes=200)
    for _ in range(50):
        log.append_as_leader(plain(2), 0)
    size = len(plain(2))
    for max_bytes in range(0, 10 * size, 7):
        found = log.read(10, max_bytes, max_offset=100)
        assert found.size % size == 0
        assert size <= found.size <= max(max_bytes, size)
        assert log.read(10, max_bytes, max_offset=100, min_one=False).size <= max_bytes
    for max_offset in range(10, 100):
        found = log.read(10, 1 << 20, max_offset=max_offset)
        assert found.size == (max_offset - 10) // 2 * size


def test_slice_offers_a_descriptor_for_sendfile(tmp_path: object) -> None:
    log = PartitionLog(OsDisk(), f"{tmp_path}/orders-0", LogConfig(), now_ms=Clock())
    append(log, 5)
    found = log.read(4, 1000, max_offset=10)
    import os

    assert os.pread(found.fileno(), found.size, found.position) == found.read()
    log.close()
