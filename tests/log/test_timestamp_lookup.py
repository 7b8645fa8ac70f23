"""From a time to a record, inside batches too."""

from __future__ import annotations

import pytest

from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from barnabas.simulation.disk import SimDisk
from tests.log.small_log import open_log, reopen
from tests.log.story import NOW_MS, append


@pytest.mark.parametrize("compression", list(Compression))
def test_timestamp_lookup_is_exact_inside_batches(compression: Compression) -> None:
    disk = SimDisk()
    log = open_log(disk, segment_bytes=900, index_interval_bytes=100)
    stamps = [NOW_MS + (i * 37) % 101 for i in range(60)]
    for first in range(0, 60, 5):
        records = [(stamp, b"k", b"some value", ()) for stamp in stamps[first : first + 5]]
        log.append_as_leader(build_batch(records, compression=compression), 3)
    for _ in range(2):
        for wanted in range(NOW_MS - 1, NOW_MS + 102):
            offset = next((i for i, stamp in enumerate(stamps) if stamp >= wanted), None)
            found = log.offset_for_timestamp(wanted)
            assert (found.offset if found else None) == offset
            if found is not None and offset is not None:
                assert (found.timestamp, found.leader_epoch) == (stamps[offset], 3)
        latest = log.max_timestamp_offset()
        assert latest is not None
        assert (latest.offset, latest.timestamp) == (stamps.index(max(stamps)), max(stamps))
        log = reopen(log, disk)


def test_timestamp_lookup_respects_the_log_start() -> None:
    log = open_log()
    append(log, 5)
    log.high_watermark = 10
    log.delete_records_before(5)
    found = log.offset_for_timestamp(0)
    assert found is not None
    assert found.offset == 5
    assert open_log().offset_for_timestamp(0) is None
    assert open_log().max_timestamp_offset() is None
