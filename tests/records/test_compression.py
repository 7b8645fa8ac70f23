"""Codecs: round trips, what other implementations write and read, and bytes that lie about their size."""

import contextlib
import struct
import zlib

import cramjam
import kafka.codec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.records.builder import build_batch
from barnabas.records.compression import XERIAL_MAGIC, Compression, compress, decompress
from barnabas.records.errors import CorruptRecord, RecordError
from tests.records.strategies import bounded

CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
TEXT = b"the quick brown fox jumps over the lazy dog. " * 5000

codecs = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.codec_name)


def test_names() -> None:
    assert [codec.codec_name for codec in Compression] == ["none", "gzip", "snappy", "lz4", "zstd"]
    assert Compression.from_name("ZSTD") is Compression.ZSTD
    assert Compression.from_name("uncompressed") is Compression.NONE
    with pytest.raises(ValueError, match="unknown compression 'brotli'"):
        Compression.from_name("brotli")


@bounded
@given(st.sampled_from(list(Compression)), st.binary(max_size=5000), st.integers(1, 40))
def test_round_trip(codec: Compression, data: bytes, repeat: int) -> None:
    data *= repeat
    assert decompress(codec, compress(codec, data), len(data)) == data


@codecs
def test_kafka_python_reads_ours(codec: Compression) -> None:
    decode = getattr(kafka.codec, f"{codec.codec_name}_decode")
    assert bytes(decode(compress(codec, TEXT))) == TEXT


@codecs
def test_reads_kafka_pythons(codec: Compression) -> None:
    encode = getattr(kafka.codec, f"{codec.codec_name}_encode")
    assert decompress(codec, bytes(encode(TEXT)), len(TEXT)) == TEXT


@codecs
def test_levels(codec: Compression) -> None:
    sizes = set()
    for level in (1, 9):
        compressed = compress(codec, TEXT, level)
        assert decompress(codec, compressed, len(TEXT)) == TEXT
        sizes.add(len(compressed))
        records = build_batch([(0, None, TEXT, [])], compression=codec, level=level)
        assert abs(len(records) - 61 - len(compressed)) < 100
    assert len(sizes) == (1 if codec is Compression.SNAPPY else 2), "snappy has no levels"


def test_default_levels_are_those_of_the_java_producer() -> None:
    assert compress(Compression.GZIP, TEXT) == compress(Compression.GZIP, TEXT, 6)
    assert compress(Compression.ZSTD, TEXT) == compress(Compression.ZSTD, TEXT, 3)


def test_snappy_raw_block_as_librdkafka_may_send() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)), len(TEXT)) == TEXT


def test_snappy_is_framed_as_the_java_client_frames_it() -> None:
    framed = compress(Compression.SNAPPY, TEXT)
    assert framed[:8] == XERIAL_MAGIC
    assert struct.unpack_from(">ii", framed, 8) == (1, 1)
    first = int.from_bytes(framed[16:20], "big")
    assert cramjam.snappy.decompress_raw_len(framed[20 : 20 + first]) == 32 * 1024


def test_snappy_concatenated_streams() -> None:
    framed = compress(Compression.SNAPPY, b"one") + compress(Compression.SNAPPY, b"two")
    assert decompress(Compression.SNAPPY, framed, 6) == b"onetwo"
    small_and_large = compress(Compression.SNAPPY, b"one") + compress(Compression.SNAPPY, TEXT)
    assert decompress(Compression.SNAPPY, small_and_large, 3 + len(TEXT)) == b"one" + TEXT


def test_snappy_second_stream_that_is_cut_in_its_header() -> None:
    with pytest.raises(CorruptRecord):
        decompress(Compression.SNAPPY, compress(Compression.SNAPPY, b"one") + XERIAL_MAGIC + b"\0\0\0", 1000)


def test_lz4_frames_have_independent_blocks_and_no_dictionary() -> None:
    frame = compress(Compression.LZ4, TEXT)
    assert frame[:4] == b"\x04\x22\x4d\x18"
    flags = frame[4]
    assert flags >> 6 == 1  # frame version
    assert flags & 0x20  # blocks independent: KafkaLZ4BlockInputStream refuses others
    assert not flags & 0x01
    assert not flags & 0x04  # Java writes no checksum of the content


def test_lz4_frames_with_a_dictionary_are_refused() -> None:
    frame = bytearray(compress(Compression.LZ4, TEXT))
    frame[4] |= 0x01
    with pytest.raises(CorruptRecord, match="with a dictionary are not supported"):
        decompress(Compression.LZ4, frame, len(TEXT))


def test_lz4_linked_blocks_checksums_and_content_size_are_read() -> None:
    import lz4.frame

    for linked in (True, False):
        for checksums in (True, False):
            frame = lz4.frame.compress(
                TEXT, block_linked=linked, content_checksum=checksums, block_checksum=checksums, store_size=checksums
            )
            assert decompress(Compression.LZ4, frame, len(TEXT)) == TEXT
            assert decompress(Compression.LZ4, frame + b"after the end", len(TEXT)) == TEXT


def test_zstd_several_frames_and_a_skippable_one() -> None:
    import zstandard

    frame = zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)
    skippable = struct.pack("<II", 0x184D2A50, 3) + b"abc"
    assert decompress(Compression.ZSTD, frame + skippable + frame, 2 * len(TEXT)) == TEXT * 2
    streamed = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    assert decompress(Compression.ZSTD, streamed.compress(TEXT) + streamed.flush(), len(TEXT)) == TEXT


@pytest.mark.parametrize("size", [0, 100, 300, 65_791, 65_792, 300_000])
@pytest.mark.parametrize("checksum", [True, False])
def test_zstd_frames_with_a_content_size_of_each_width(size: int, checksum: bool) -> None:
    import zstandard

    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    frame = zstandard.ZstdCompressor(write_checksum=checksum, write_content_size=True).compress(data)
    assert decompress(Compression.ZSTD, frame * 3, 3 * size) == data * 3


@pytest.mark.parametrize(
    "header",
    [
        b"\x00\x00",  # a window, no size
        b"\x20\x05",  # a single segment and a size of one byte
        b"\x80\x00\x05\0\0\0",  # a window and a size of four bytes
        b"\xa0\x05\0\0\0",
        b"\xc0\x00\x05\0\0\0\0\0\0\0",  # a window and a size of eight bytes
        b"\xe0\x05\0\0\0\0\0\0\0",
    ],
    ids=bytes.hex,
)
def test_zstd_frame_headers_of_each_layout(header: bytes) -> None:
    frame = b"\x28\xb5\x2f\xfd" + header + (1 | 5 << 3).to_bytes(3, "little") + b"hello"
    assert decompress(Compression.ZSTD, frame * 3, 15) == b"hello" * 3


def test_gzip_several_members() -> None:
    data = compress(Compression.GZIP, b"one") + compress(Compression.GZIP, b"two")
    assert decompress(Compression.GZIP, data, 6) == b"onetwo"


@codecs
def test_a_bomb_is_refused_before_it_explodes(codec: Compression) -> None:
    bomb = compress(codec, bytes(32 * 1024 * 1024))
    with pytest.raises(CorruptRecord):
        decompress(codec, bomb, 1024 * 1024)


@codecs
def test_the_ceiling_is_exact(codec: Compression) -> None:
    data = compress(codec, TEXT)
    assert decompress(codec, data, len(TEXT)) == TEXT
    with pytest.raises(CorruptRecord):
        decompress(codec, data, len(TEXT) - 1)


def test_lies_about_the_size() -> None:
    with pytest.raises(CorruptRecord):
        decompress(Compression.SNAPPY, b"\xff\xff\xff\xff\x0fabc", 1 << 20)
    with pytest.raises(CorruptRecord):
        decompress(Compression.SNAPPY, XERIAL_MAGIC + struct.pack(">iii", 1, 1, -5) + b"x", 1 << 20)
    single_segment = b"\x28\xb5\x2f\xfd" + b"\xe0" + b"\xff" * 8 + b"\x01\x00\x00"
    with pytest.raises(CorruptRecord):
        decompress(Compression.ZSTD, single_segment, 1 << 20)
    with pytest.raises(CorruptRecord):
        decompress(Compression.LZ4, b"\x04\x22\x4d\x18\x60\x70\x73" + b"\xff\xff\xff\x7f" + b"abc", 1 << 20)


@codecs
def test_every_truncation_is_one_kind_of_error(codec: Compression) -> None:
    data = compress(codec, b"some words, some words, some other words" * 3)
    for size in range(len(data)):
        try:
            decompress(codec, data[:size], 1000)
        except CorruptRecord:
            continue
        # Cut at a boundary: a xerial header without blocks, or an lz4 frame without its optional checksum.
        assert codec is Compression.SNAPPY
        assert size == 16


@bounded
@given(st.sampled_from(CODECS), st.integers(0, 10**6), st.integers(1, 255))
def test_flipped_bits_never_raise_anything_else(codec: Compression, position: int, mask: int) -> None:
    data = bytearray(compress(codec, b"some words, some words, some other words" * 3))
    data[position % len(data)] ^= mask
    with contextlib.suppress(RecordError):
        assert len(decompress(codec, data, 1000)) <= 1000


@bounded
@given(st.integers(-1, 9), st.binary(max_size=64))
def test_noise(codec: int, data: bytes) -> None:
    with contextlib.suppress(RecordError):
        assert len(decompress(codec, data, 1000)) <= 1000


def test_gzip_is_rfc_1952() -> None:
    assert zlib.decompress(compress(Compression.GZIP, TEXT), 31) == TEXT
    with pytest.raises(CorruptRecord):
        decompress(Compression.GZIP, zlib.compress(TEXT), len(TEXT))  # RFC 1950
