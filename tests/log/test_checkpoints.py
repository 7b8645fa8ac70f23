"""Checkpoint files: Kafka's text, whole or nothing."""

from __future__ import annotations

import pytest

from barnabas.log.checkpoints import CorruptCheckpoint, decode_lines, decode_offsets, encode_offsets, read_offsets
from barnabas.simulation.disk import SimDisk

OFFSETS = {("orders", 0): 1234, ("a.b_c-d", 11): 0, ("orders", 1): 2**62}
TEXT = b"0\n3\norders 0 1234\na.b_c-d 11 0\norders 1 4611686018427387904\n"


def test_golden_text() -> None:
    assert encode_offsets(OFFSETS) == TEXT
    assert decode_offsets(TEXT) == OFFSETS
    assert encode_offsets({}) == b"0\n0\n"
    assert decode_offsets(b"0\n0\n") == {}


def test_every_cut_is_noticed() -> None:
    for size in range(len(TEXT)):
        with pytest.raises(CorruptCheckpoint):
            decode_offsets(TEXT[:size])


@pytest.mark.parametrize(
    "text", [b"1\n0\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na 0 -1\n", b"0\n1\na x 1\n", b"\xff\n0\n", b"0\nx\n"]
)
def test_what_is_not_whole_is_refused(text: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        decode_offsets(text)


def test_lines_ending_as_on_windows_are_read() -> None:
    assert decode_lines(b"0\r\n1\r\n0 5\r\n") == [["0", "5"]]


def test_read_tells_missing_from_corrupt() -> None:
    disk = SimDisk()
    assert read_offsets(disk, "/c") == {}
    disk.put("/c", b"0\n")
    assert read_offsets(disk, "/c") is None
