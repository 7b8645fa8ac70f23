"""The numbers of many records are decoded in parallel; `test_columnar` has the rows, `test_native_decoder` the twin."""

from __future__ import annotations

import numpy as np
import pytest

from barnabas.records.errors import CorruptRecord
from barnabas.spark.source.numpy_decoder import varints


def test_varints_of_every_length():
    numbers = [0, -1, 1, 63, -64, 64, 8191, -8192, 2**31 - 1, -(2**31), 2**62, -(2**63), 2**63 - 1]
    data, positions = bytearray(), []
    for number in numbers:
        positions.append(len(data))
        zigzag = (number << 1) ^ (number >> 63)
        zigzag &= 2**64 - 1
        while zigzag > 127:
            data.append(zigzag & 127 | 128)
            zigzag >>= 7
        data.append(zigzag)
    values, ends = varints(np.frombuffer(data, np.uint8), np.array(positions))
    assert values.tolist() == numbers
    assert ends.tolist() == [*positions[1:], len(data)]


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"", "runs past the end"), (b"\x80", "runs past the end"), (b"\x80" * 11, "more than ten bytes")],
)
def test_a_number_without_an_end_is_damage(data, message):
    with pytest.raises(CorruptRecord, match=message):
        varints(np.frombuffer(data, np.uint8), np.array([0]))
