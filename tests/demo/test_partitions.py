"""The partition of a key is the producer's."""

from __future__ import annotations

import pytest

from barnabas.demo.partitions import murmur2, partition_of

# From org.apache.kafka.common.utils.UtilsTest.
GOLDEN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("key", GOLDEN)
def test_the_hash_is_java_s(key: bytes):
    assert murmur2(key) == GOLDEN[key] & 0xFFFFFFFF


def test_partitions_are_within_bounds():
    assert {partition_of(str(number).encode(), 6) for number in range(100)} == set(range(6))
