"""Which batches the event loop may open."""

from __future__ import annotations

import pytest

from barnabas.log.large_batch import BYTES_ON_THE_SPOT, RECORDS_ON_THE_SPOT, ZSTD_BYTES_ON_THE_SPOT, is_large
from barnabas.records.compression import Compression
from barnabas.records.record_batch import BatchHeader


@pytest.mark.parametrize(
    ("codec", "size", "records", "expected"),
    [
        (Compression.NONE, 1 << 30, RECORDS_ON_THE_SPOT, False),
        (Compression.NONE, 100, RECORDS_ON_THE_SPOT + 1, True),
        (Compression.GZIP, BYTES_ON_THE_SPOT, 1, False),
        (Compression.GZIP, BYTES_ON_THE_SPOT + 1, 1, True),
        (Compression.LZ4, BYTES_ON_THE_SPOT + 1, 1, True),
        (Compression.ZSTD, ZSTD_BYTES_ON_THE_SPOT, 1, False),
        (Compression.ZSTD, ZSTD_BYTES_ON_THE_SPOT + 1, 1, True),
    ],
)
def test_size_and_number_of_records_decide(codec: Compression, size: int, records: int, expected: bool) -> None:
    assert is_large(header(codec, size, records)) == expected


def test_a_caller_may_draw_a_closer_line() -> None:
    uncompressed = header(Compression.NONE, 101, 1)
    assert (is_large(uncompressed, 100), is_large(uncompressed, 101)) == (True, False)


def header(codec: Compression, size: int, records: int) -> BatchHeader:
    return BatchHeader(0, size, 0, 2, 0, codec, records - 1, 0, 0, -1, -1, -1, records)
