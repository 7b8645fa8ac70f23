import pytest

from barnabas.records.builder import build_batch, encode_record, zigzag
from barnabas.records.compression import Compression, decompress
from barnabas.records.record_batch import read_header


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (-65, "8101"),
        (2**31 - 1, "feffffff0f"),
        (-(2**31), "ffffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_zigzag(value: int, encoded: str) -> None:
    assert zigzag(value).hex() == encoded


def test_a_batch_needs_a_record() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        build_batch([])


def test_timestamps_may_run_backwards() -> None:
    header = read_header(build_batch([(50, None, b"a", []), (10, None, b"b", []), (70, None, b"c", [])]))
    assert (header.base_timestamp, header.max_timestamp, header.last_offset_delta) == (50, 70, 2)


def test_compressed_records_are_the_plain_ones() -> None:
    records = [(1, b"k", b"v" * 50, [("h", b"1")]), (2, None, None, [])]
    plain = bytes(build_batch(records)[61:])
    assert plain == encode_record(0, 0, b"k", b"v" * 50, [("h", b"1")]) + encode_record(1, 1, None, None)
    for codec in Compression:
        assert decompress(codec, build_batch(records, compression=codec)[61:], 1000) == plain


def test_accepts_views_and_bytearrays() -> None:
    batch = build_batch([(1, memoryview(b"key"), bytearray(b"value"), [("h", memoryview(b"x"))])])
    assert batch == build_batch([(1, b"key", b"value", [("h", b"x")])])
