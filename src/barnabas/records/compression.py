"""The five codecs of a record batch, with a ceiling on what decompression may produce.

| id | codec  | container                                                                              |
|---:|--------|----------------------------------------------------------------------------------------|
|  0 | none   |                                                                                        |
|  1 | gzip   | RFC 1952, one or more members                                                          |
|  2 | snappy | xerial blocks as the Java client writes them, or one raw block as librdkafka may       |
|  3 | lz4    | LZ4 frame with independent blocks: Java's KafkaLZ4BlockInputStream rejects linked ones |
|  4 | zstd   | one or more frames (KIP-110)                                                           |

A few compressed bytes can claim gigabytes. So nothing is decompressed into a buffer that grows: the containers of lz4
and zstd are walked first (their block headers bound the result), snappy states its length, gzip is inflated up to a
limit. More than `max_bytes` is a `DecompressedTooLarge` before the memory is taken.

Limits: no dictionaries; levels follow each codec's own scale (KIP-390).
Sources: org.apache.kafka.common.compress.*, xerial SnappyOutputStream, LZ4 frame format 1.6, RFC 8878.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum

import cramjam

from barnabas.records.checksum import Buffer
from barnabas.records.errors import CorruptRecord, DecompressedTooLarge

MAX_DECOMPRESSED_BYTES = 256 * 1024 * 1024
"""Default ceiling of one decompressed batch: well above any message.max.bytes in use."""

XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES = 32 * 1024
_LZ4_MAGIC = 0x184D2204
_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_BLOCK_BYTES = 128 * 1024
# An LZ4 sequence extends a match by at most 255 bytes for each input byte.
_LZ4_RATIO = 255


class Compression(IntEnum):
    """Codec ids, the lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def from_name(cls, name: str) -> Compression:
        """Find a codec by Kafka's name (`none` or `uncompressed`, `gzip`, `snappy`, `lz4`, `zstd`).

        Raises:
            ValueError: no such codec.
        """
        name = name.lower()
        if name == "uncompressed":
            return cls.NONE
        try:
            return cls[name.upper()]
        except KeyError:
            raise ValueError(f"unknown compression {name!r}: use none, gzip, snappy, lz4 or zstd") from None

    @property
    def codec_name(self) -> str:
        """Kafka's lower-case name."""
        return self.name.lower()


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress as the Java producer does; `level=None` takes the codec's default."""
    match codec:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            compressor = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
            return compressor.compress(data) + compressor.flush()
        case Compression.SNAPPY:
            return _compress_xerial(data)
        case Compression.LZ4:
            lz4 = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
            lz4.compress(bytes(data))
            return bytes(lz4.finish())
        case Compression.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=3 if level is None else level))
    raise ValueError(f"unknown compression type id {codec}")


def decompress(codec: int, data: Buffer, max_bytes: int = MAX_DECOMPRESSED_BYTES) -> bytes | bytearray:
    """Decompress one batch's records.

    Raises:
        CorruptRecord: not valid for the codec, or an unknown codec.
        DecompressedTooLarge: more than `max_bytes` of output.
    """
    try:
        match codec:
            case Compression.NONE:
                result: bytes | bytearray = bytes(data)
            case Compression.GZIP:
                result = _decompress_gzip(data, max_bytes)
            case Compression.SNAPPY:
                result = _decompress_snappy(memoryview(data), max_bytes)
            case Compression.LZ4:
                view = memoryview(data)
                frame_end, bound = _lz4_frame_bound(view)
                result = _decompress_into(codec, cramjam.lz4, view[:frame_end], bound, max_bytes)
            case Compression.ZSTD:
                view = memoryview(data)
                result = _decompress_into(codec, cramjam.zstd, view, _zstd_bound(view, max_bytes), max_bytes)
            case _:
                raise CorruptRecord(f"unknown compression type id {codec}")
    except (cramjam.DecompressionError, zlib.error, struct.error, IndexError) as error:
        raise CorruptRecord(f"{_name(codec)}: cannot decompress {len(data)} bytes: {error}") from None
    if len(result) > max_bytes:
        raise _too_large(codec, max_bytes)
    return result


def _name(codec: int) -> str:
    return Compression(codec).codec_name


def _too_large(codec: int, max_bytes: int) -> DecompressedTooLarge:
    return DecompressedTooLarge(f"{_name(codec)}: more than the allowed {max_bytes} bytes after decompression")


def _decompress_into(codec: int, module: object, data: memoryview, bound: int, max_bytes: int) -> bytearray:
    # One byte more than allowed, to tell a result of exactly the limit from a larger one.
    out = bytearray(min(bound, max_bytes) + 1)
    try:
        size: int = module.decompress_into(data, out)  # type: ignore[attr-defined]
    except cramjam.DecompressionError:
        if bound > max_bytes:
            raise _too_large(codec, max_bytes) from None
        raise
    del out[size:]
    return out


def _decompress_gzip(data: Buffer, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    room = max_bytes + 1
    rest: Buffer = data
    while len(rest):
        inflater = zlib.decompressobj(31)
        part = inflater.decompress(rest, room)
        parts.append(part)
        room -= len(part)
        if room <= 0:
            raise _too_large(Compression.GZIP, max_bytes)
        if not inflater.eof:
            raise CorruptRecord("gzip: the stream is cut off")
        if inflater.unused_data[:2] != b"\x1f\x8b":
            # Java's GZIPInputStream likewise ignores trailing bytes that are not another member.
            break
        rest = inflater.unused_data
    else:
        if not parts:
            raise CorruptRecord("gzip: no bytes")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _compress_xerial(data: Buffer) -> bytes:
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, max_bytes: int) -> bytes:
    """One raw block, or xerial: magic, version, compatible version, then blocks of int32 length and raw snappy."""
    if bytes(data[:8]) != XERIAL_MAGIC:
        return _decompress_snappy_block(data, max_bytes)
    parts: list[bytes] = []
    room = max_bytes
    pos, end = 16, len(data)
    if end < pos:
        raise CorruptRecord("snappy: the xerial header is cut off")
    while pos < end:
        if end - pos >= 16 and data[pos : pos + 8] == XERIAL_MAGIC:  # streams may be concatenated
            pos += 16
            continue
        size = int.from_bytes(data[pos : pos + 4], "big")
        pos += 4
        if pos + size > end:
            raise CorruptRecord(f"snappy: block of {size} bytes, but {end - pos} remain")
        block = _decompress_snappy_block(data[pos : pos + size], room)
        room -= len(block)
        parts.append(block)
        pos += size
    return b"".join(parts)


def _decompress_snappy_block(data: memoryview, max_bytes: int) -> bytes:
    if not len(data):
        raise CorruptRecord("snappy: an empty block")
    if cramjam.snappy.decompress_raw_len(data) > max_bytes:
        raise _too_large(Compression.SNAPPY, max_bytes)
    return bytes(cramjam.snappy.decompress_raw(data))


def _lz4_frame_bound(data: memoryview) -> tuple[int, int]:
    """Walk the first frame's block headers.

        magic 4 | FLG 1 | BD 1 | content size 8? | dictionary id 4? | header checksum 1
        then blocks: size 4 (highest bit: stored as is) | bytes | checksum 4?
        then end mark 0 (4) | content checksum 4?

    Returns:
        Where the frame ends, and how many bytes it can at most produce.
    """
    magic, flags, descriptor = struct.unpack_from("<IBB", data)
    if magic != _LZ4_MAGIC:
        raise CorruptRecord("lz4: not an LZ4 frame")
    if flags & 0x01:
        raise CorruptRecord("lz4: frames with a dictionary are not supported")
    block_max = 1 << (8 + 2 * ((descriptor >> 4) & 0x07))
    checksum_bytes = 4 if flags & 0x10 else 0
    pos = 7 + (8 if flags & 0x08 else 0)
    bound = 0
    while True:
        (word,) = struct.unpack_from("<I", data, pos)
        pos += 4
        size = word & 0x7FFFFFFF
        if not word:
            break
        bound += size if word & 0x80000000 else min(block_max, size * _LZ4_RATIO)
        pos += size + checksum_bytes
    return min(len(data), pos + (4 if flags & 0x04 else 0)), bound


def _zstd_bound(data: memoryview, max_bytes: int) -> int:
    """Add up what the blocks of all frames can at most produce, and stop once above `max_bytes`.

    magic 4 | frame header descriptor 1 | window 0-1 | dictionary id 0-4 | content size 0-8
    then blocks: header 3 (bit 0 last, bits 1-2 type, 21 bits size) | bytes
    then checksum 4?
    """
    pos, end, bound = 0, len(data), 0
    while pos < end:
        (magic,) = struct.unpack_from("<I", data, pos)
        if magic & 0xFFFFFFF0 == 0x184D2A50:  # skippable frame
            pos += 8 + struct.unpack_from("<I", data, pos + 4)[0]
            continue
        if magic != _ZSTD_MAGIC:
            raise CorruptRecord("zstd: not a zstd frame")
        descriptor = data[pos + 4]
        single_segment = bool(descriptor & 0x20)
        size_flag = descriptor >> 6
        dictionary_bytes = (0, 1, 2, 4)[descriptor & 0x03]
        size_bytes = (int(single_segment), 2, 4, 8)[size_flag]
        pos += 5 + (not single_segment) + dictionary_bytes + size_bytes
        while True:
            word = int.from_bytes(data[pos : pos + 3], "little")
            if pos + 3 > end:
                raise CorruptRecord("zstd: the frame is cut off")
            last, kind, size = word & 1, (word >> 1) & 3, word >> 3
            pos += 3
            # 0 raw, 1 one byte repeated, 2 compressed (at most 128 KiB); 3 is reserved and fails in the decoder.
            bound += _ZSTD_BLOCK_BYTES if kind == 2 else size
            pos += 1 if kind == 1 else size
            if bound > max_bytes:
                return bound
            if last:
                break
        pos += 4 if descriptor & 0x04 else 0
    return bound
