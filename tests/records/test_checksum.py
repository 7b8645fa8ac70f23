from hypothesis import given
from hypothesis import strategies as st

from barnabas.records.checksum import crc32c, crc32c_plain
from tests.records.strategies import bounded


def test_known_values_of_rfc_3720() -> None:
    for implementation in (crc32c, crc32c_plain):
        assert implementation(b"123456789") == 0xE3069283
        assert implementation(bytes(32)) == 0x8A9136AA
        assert implementation(b"\xff" * 32) == 0x62A8AB43
        assert implementation(b"") == 0


def test_the_native_routine_is_used() -> None:
    assert crc32c is not crc32c_plain


@bounded
@given(st.binary(max_size=2000), st.integers(0, 2**32 - 1))
def test_the_twins_agree(data: bytes, start: int) -> None:
    assert crc32c(data) == crc32c_plain(data)
    assert crc32c(data, start) == crc32c_plain(data, start)


def test_takes_views_without_copy() -> None:
    data = bytearray(b"xx123456789yy")
    assert crc32c(memoryview(data)[2:11]) == crc32c_plain(memoryview(data)[2:11]) == 0xE3069283
