"""The hash of a column of keys is that of each key."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client import partitioner
from barnabas.spark.sink.key_hash import murmur2


@given(st.lists(st.none() | st.binary(max_size=70)), st.integers(0, 3))
def test_as_one_by_one(keys, skipped):
    column = pa.array(keys, pa.binary()).slice(skipped)
    assert murmur2(column).tolist() == [partitioner.murmur2(key or b"") for key in keys[skipped:]]


def test_as_java():
    # Kafka's UtilsTest.testMurmur2, unsigned.
    expected = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
    assert murmur2(pa.array(list(expected))).astype("int32").tolist() == list(expected.values())
