"""A hash of the metadata on which a group depends: its topics' ids, partitions and racks.

It is written with the group's epoch, so that a heartbeat sees from one number whether a topic has changed. It is Kafka's number:
XXH3 over

    topic   byte 0 (the format), topic id as two longs, name, partition count, then for each partition its index
            and the sorted racks of its replicas, each as length and text
    group   the hashes of the topics, in the order of their names

with numbers in little endian, a text as its UTF-16 units followed by their number. A replica whose broker has no rack is left out.

Source: Kafka's `Utils.computeTopicHash`, `computeGroupHash` (KIP-1101); the byte layout is that of hash4j's `HashStream64`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from barnabas.group.xxh3 import xxh3_64
from barnabas.metadata.cluster_image import ClusterImage
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.metadata.topics_image import TopicImage

_FORMAT = b"\0"


def partition_racks(partition: PartitionRegistration, cluster: ClusterImage) -> list[str]:
    """The racks of a partition's replicas, in the order of the replicas; brokers without a rack are left out."""
    racks = []
    for replica in partition.replicas:
        broker = cluster.brokers.get(replica)
        if broker is not None and broker.rack is not None:
            racks.append(broker.rack)
    return racks


def topic_hash(topic: TopicImage, cluster: ClusterImage) -> int:
    """The hash of one topic, as a signed 64-bit number."""
    high, low = struct.unpack(">qq", topic.topic_id)
    parts = [_FORMAT, struct.pack("<qq", high, low), _text(topic.name), struct.pack("<i", len(topic.partitions))]
    for index, partition in topic.partitions.items():
        parts.append(struct.pack("<i", index))
        for rack in sorted(partition_racks(partition, cluster)):
            parts += [struct.pack("<i", _units(rack)), _text(rack)]
    return _signed(xxh3_64(b"".join(parts)))


def group_hash(topics: Mapping[str, int]) -> int:
    """The hash of a group's topics (name to hash), as a signed 64-bit number; 0 without topics."""
    if not topics:
        return 0
    return _signed(xxh3_64(b"".join(struct.pack("<q", topics[name]) for name in sorted(topics))))


def _text(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass") + struct.pack("<i", _units(text))


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
