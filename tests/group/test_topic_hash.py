"""The hash of topics: XXH3 as Kafka's library computes it, over what a group depends on."""

from __future__ import annotations

import struct

import pytest

from barnabas.group.topic_hash import group_hash, topic_hash
from barnabas.group.xxh3 import xxh3_64
from tests.group.cluster_metadata import ClusterMetadata

# Computed with Kafka's library (hash4j 0.22, Hashing.xxh3_64) over the bytes (7 i + 3) mod 256: one of each way to hash, at its ends.
VECTORS = {
    0: 3244421341483603138,
    1: 1433843135270481901,
    3: -6266602912829716452,
    4: 7895465118229274323,
    8: 6941064856527638883,
    9: -72226354546400344,
    16: -5131753158909839995,
    17: 8163341949877205007,
    32: 1873302701886544469,
    33: 4486878507168070088,
    64: 2917965298538373825,
    65: -9038134159117547962,
    96: -1115511928276236477,
    97: 2137665177113230204,
    128: 7440608504995537343,
    129: -4150982730466284604,
    240: 7229805477010515663,
    241: -8364630114420064745,
    1024: -7241394453710343503,
    1025: -9192937061388044938,
    2049: 6174105427284153526,
    5000: 8762507191635236893,
}


@pytest.mark.parametrize("length", VECTORS)
def test_xxh3(length: int) -> None:
    data = bytes((7 * position + 3) % 256 for position in range(length))
    assert xxh3_64(data) == VECTORS[length] % (1 << 64)


def test_a_topic_is_hashed_as_kafka_lays_it_out() -> None:
    cluster = ClusterMetadata()
    cluster.set_topic("tx", 2)
    topic = cluster.image.topics.by_name["tx"]
    laid_out = (
        b"\0"  # format
        + struct.pack("<qq", 0, 1)  # topic id
        + "tx".encode("utf-16-le")
        + struct.pack("<i", 2)  # length of the name
        + struct.pack("<i", 2)  # partitions
        + struct.pack("<ii", 0, 1)  # their indexes; no broker has a rack
    )
    assert topic_hash(topic, cluster.image.cluster) % (1 << 64) == xxh3_64(laid_out)


def test_a_group_without_topics_is_zero_and_the_order_of_topics_does_not_matter() -> None:
    assert group_hash({}) == 0
    assert group_hash({"a": 1, "b": -2}) == group_hash({"b": -2, "a": 1})
    assert group_hash({"a": 1, "b": -2}) != group_hash({"a": -2, "b": 1})
