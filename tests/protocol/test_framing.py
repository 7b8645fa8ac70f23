"""Frames out of a stream that is cut anywhere, and the headers of requests."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, FrameTooLarge, KafkaError, MalformedMessage
from barnabas.protocol.framing import SMALL_READS_MAX, FrameBuffer, RequestHeader, parse_request_header
from barnabas.protocol.messages import RequestHeader as RequestHeaderMessage


def frame(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def feed(buffer: FrameBuffer, data: bytes) -> list[bytes]:
    """Put bytes in as an event loop would, and copy each frame out."""
    frames = []
    while data:
        room = buffer.get_buffer(65536)
        assert len(room) > 0
        count = min(len(room), len(data))
        room[:count] = data[:count]
        buffer.received(count)
        data = data[count:]
        frames += [bytes(one) for one in buffer.frames()]
    return frames


@settings(derandomize=True, deadline=None, database=None, max_examples=200)
@given(
    st.lists(st.integers(0, 70) | st.integers(0, 700), max_size=12),
    st.lists(st.integers(1, 90), min_size=1, max_size=8),
    st.integers(4, 64),
)
def test_any_frames_cut_anywhere(sizes: list[int], cuts: list[int], read_bytes: int) -> None:
    expected = [bytes([index]) * size for index, size in enumerate(sizes)]
    stream = b"".join(map(frame, expected))
    buffer = FrameBuffer(700, read_bytes)
    got: list[bytes] = []
    pos = turn = 0
    while pos < len(stream):
        size = cuts[turn % len(cuts)]
        got += feed(buffer, stream[pos : pos + size])
        pos += size
        turn += 1
        assert buffer.pending <= 704
    assert got == expected
    assert buffer.pending == 0


def test_frames_lie_in_the_buffer_they_arrived_in() -> None:
    buffer = FrameBuffer(100, 64)
    room = buffer.get_buffer()
    room[:12] = frame(b"ab") + frame(b"cd")
    buffer.received(12)
    first, second = buffer.frames()
    assert (bytes(first), bytes(second)) == (b"ab", b"cd")
    assert first.obj is second.obj is room.obj
    assert not first.readonly  # a leader writes base offsets in place


def test_detach_leaves_taken_frames_valid() -> None:
    buffer = FrameBuffer(100, 64)
    data = frame(b"taken") + frame(b"next!")[:6]
    buffer.get_buffer()[: len(data)] = data
    buffer.received(len(data))
    taken = buffer.next_frame()
    assert taken is not None
    buffer.detach()
    assert feed(buffer, b"xt!" + frame(b"z" * 50)) == [b"next!"[:2] + b"xt!", b"z" * 50]
    assert bytes(taken) == b"taken"


def test_detach_within_an_iteration() -> None:
    buffer = FrameBuffer(100, 64)
    data = frame(b"one") + frame(b"two") + frame(b"three")
    buffer.get_buffer()[: len(data)] = data
    buffer.received(len(data))
    got = []
    for one in buffer.frames():
        got.append(one)
        buffer.detach()
    assert feed(buffer, frame(b"x" * 60)) == [b"x" * 60]
    assert [bytes(one) for one in got] == [b"one", b"two", b"three"]


def test_the_buffer_grows_for_a_large_frame_and_shrinks_later() -> None:
    buffer = FrameBuffer(1_000_000, 64)
    assert feed(buffer, frame(b"a" * 500_000)) == [b"a" * 500_000]
    assert repr(buffer) == "<FrameBuffer 500004-500004 of 500004>"
    for _ in range(SMALL_READS_MAX):
        feed(buffer, frame(b"b"))
    assert repr(buffer).endswith("of 500004>")
    feed(buffer, frame(b"b"))
    assert repr(buffer) == "<FrameBuffer 5-5 of 64>"


def test_the_buffer_shrinks_though_bytes_are_always_pending() -> None:
    buffer = FrameBuffer(1_000_000, 64)
    feed(buffer, frame(b"a" * 500_000))
    stream = frame(b"bcd") * 100
    for pos in range(5, 5 * SMALL_READS_MAX + 10, 5):
        feed(buffer, stream[pos - 5 : pos])
    assert repr(buffer).endswith("of 64>")


def test_the_buffer_has_room_though_no_frame_is_taken() -> None:
    buffer = FrameBuffer(100, 8)
    for byte in frame(b"abcd") * 10:
        buffer.get_buffer()[:1] = bytes([byte])
        buffer.received(1)
    assert [bytes(one) for one in buffer.frames()] == [b"abcd"] * 10


def test_sizes_that_cannot_be() -> None:
    for size, error in ((-1, MalformedMessage), (101, FrameTooLarge), (2**31 - 1, FrameTooLarge)):
        buffer = FrameBuffer(100, 64)
        with pytest.raises(error):
            feed(buffer, struct.pack(">i", size))
        assert repr(buffer).endswith("of 64>")
    assert feed(FrameBuffer(100, 64), frame(b"a" * 100)) == [b"a" * 100]


def test_an_empty_frame_is_a_frame() -> None:
    assert feed(FrameBuffer(100), frame(b"") + frame(b"a")) == [b"", b"a"]


@pytest.mark.parametrize("client_id", [None, "", "client", "é" * 100])
@pytest.mark.parametrize(("key", "version"), [(ApiKey.PRODUCE, 8), (ApiKey.PRODUCE, 9), (ApiKey.SASL_HANDSHAKE, 1)])
def test_headers(key: ApiKey, version: int, client_id: str | None) -> None:
    header_version = 2 if version == 9 else 1
    written = RequestHeaderMessage(
        request_api_key=key, request_api_version=version, correlation_id=-5, client_id=client_id
    ).encode(header_version)
    expected = RequestHeader(key, version, -5, client_id)
    assert parse_request_header(written + b"body") == (expected, len(written))
    assert parse_request_header(memoryview(written)) == (expected, len(written))


def test_the_header_of_an_unknown_api_versions_is_readable() -> None:
    data = struct.pack(">hhih", 18, 99, 7, 2) + b"me" + b"\x00" + b"who knows"
    header, body = parse_request_header(data)
    assert header == RequestHeader(18, 99, 7, "me")
    assert data[body:] == b"who knows"


def test_header_v2_has_tags_and_they_are_skipped() -> None:
    data = struct.pack(">hhih", 0, 9, 7, -1) + bytes.fromhex("02 00 01 ff 09 02 aabb") + b"body"
    header, body = parse_request_header(data)
    assert (header.client_id, data[body:]) == (None, b"body")


def test_headers_that_cannot_be() -> None:
    whole = struct.pack(">hhih", 0, 9, 7, 2) + b"me" + b"\x00"
    for stop in range(len(whole)):
        with pytest.raises(MalformedMessage):
            parse_request_header(whole[:stop])
    for data in (
        struct.pack(">hhih", 0, 9, 7, -2),
        struct.pack(">hhih", 0, 9, 7, 2) + b"\xc3\x28\x00",
        struct.pack(">hhih", 0, 9, 7, 30000),
    ):
        with pytest.raises(MalformedMessage):
            parse_request_header(data)


def test_a_header_of_no_api() -> None:
    with pytest.raises(KafkaError) as raised:
        parse_request_header(struct.pack(">hhih", 999, 0, 7, -1))
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_memory_follows_what_arrives_not_what_is_announced() -> None:
    frames = FrameBuffer(100 << 20)
    announced = 90 << 20
    view = frames.get_buffer()
    view[:4] = announced.to_bytes(4, "big")
    frames.received(4)
    arrived = 4
    while arrived < 8 << 20:
        view = frames.get_buffer()
        assert frames.capacity <= max(1 << 20, 2 * arrived)
        count = min(len(view), 100_000)
        view[:count] = b"x" * count
        frames.received(count)
        arrived += count
    assert frames.next_frame() is None


def test_a_buffer_shrinks_to_what_is_pending() -> None:
    buffer = FrameBuffer(1 << 20)
    frame = struct.pack(">i", 6) + b"abcdef"
    memory = buffer.get_buffer()
    memory[:14] = frame + frame[:4]
    buffer.received(14)
    taken = buffer.next_frame()
    buffer.shrink()
    assert buffer.capacity == 5
    assert taken == b"abcdef"
    buffer.get_buffer()[:6] = b"abcdef"
    buffer.received(6)
    assert buffer.next_frame() == b"abcdef"
