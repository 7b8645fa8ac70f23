"""Known partitions of each library: values of Kafka's and librdkafka's own test suites, and kafka-python's function."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

from barnabas.client.partitioner import LIBRARY_DEFAULTS, PARTITIONERS, crc32, fnv1a, murmur2, partition_for


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_as_in_java(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed % (1 << 32)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.binary(max_size=40))
def test_murmur2_as_in_kafka_python(key: bytes) -> None:
    assert murmur2(key) == kafka_python_murmur2(key) % (1 << 32)


def test_crc32_and_fnv1a() -> None:
    assert crc32(b"123456789") == 0xCBF43926
    assert fnv1a(b"") == 0x811C9DC5
    assert fnv1a(b"a") == 0xE40C292C
    assert fnv1a(b"foobar") == 0xBF9CF968


def test_the_libraries_disagree() -> None:
    assert [partition_for(b"customer-42", 12, name) for name in LIBRARY_DEFAULTS] == [
        (murmur2(b"customer-42") & 0x7FFFFFFF) % 12,
        crc32(b"customer-42") % 12,
        (0x100000000 - fnv1a(b"customer-42") if fnv1a(b"customer-42") >> 31 else fnv1a(b"customer-42")) % 12,
    ]


def test_without_a_key() -> None:
    assert {name: partition_for(None, 5, name) is None for name in PARTITIONERS} == {
        "murmur2_random": True,
        "murmur2": False,
        "consistent_random": True,
        "consistent": False,
        "fnv1a_random": True,
        "fnv1a": False,
    }
    assert partition_for(b"", 5, "murmur2_random") is not None
    assert partition_for(b"", 5, "consistent_random") is None


def test_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="at least one partition"):
        partition_for(b"k", 0)
    with pytest.raises(ValueError, match="unknown partitioner 'modulo'"):
        partition_for(b"k", 1, "modulo")


def test_keys_reach_every_partition_and_no_other() -> None:
    assert {partition_for(str(number).encode(), 6) for number in range(100)} == set(range(6))
