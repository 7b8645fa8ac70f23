"""Which partition each client library chooses for a key.

The partition is chosen by the producer, and the libraries disagree. Two services that write the same key with
different libraries write it to different partitions, and neither the broker nor a consumer can repair that.

| name              | hash      | sign removed by | without a key                 | default of                   |
|-------------------|-----------|-----------------|-------------------------------|------------------------------|
| murmur2_random    | murmur2   | masking bit 31  | any partition                 | Java and most others, and us |
| murmur2           | murmur2   | masking bit 31  | hash of no bytes              |                              |
| consistent_random | CRC-32    | (is unsigned)   | any, also for an empty key    | librdkafka and its bindings  |
| consistent        | CRC-32    | (is unsigned)   | hash of no bytes              |                              |
| fnv1a_random      | FNV-1a 32 | absolute value  | any partition                 | sarama                       |
| fnv1a             | FNV-1a 32 | absolute value  | hash of no bytes              |                              |

Sources: org.apache.kafka.common.utils.Utils.murmur2 and BuiltInPartitioner; librdkafka's configuration `partitioner`.
"""

from __future__ import annotations

import zlib

DEFAULT_PARTITIONER = "murmur2_random"
LIBRARY_DEFAULTS = {
    "murmur2_random": "Java, kafka-python, aiokafka, kafkajs, franz-go, barnabas",
    "consistent_random": "librdkafka: confluent-kafka, kcat",
    "fnv1a_random": "sarama",
}

_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return Kafka's variant of MurmurHash2 (seed 0x9747b28c), an unsigned number of 32 bits."""
    length = len(data)
    mixer = 0x5BD1E995
    result = 0x9747B28C ^ length
    whole = length & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * mixer & _MASK
        word = (word ^ word >> 24) * mixer & _MASK
        result = (result * mixer & _MASK) ^ word
    if length > whole:
        result = (result ^ int.from_bytes(data[whole:], "little")) * mixer & _MASK
    result = (result ^ result >> 13) * mixer & _MASK
    return result ^ result >> 15


def crc32(data: bytes) -> int:
    """Return the CRC-32 of zlib, unsigned; record batches have another checksum."""
    return zlib.crc32(data)


def fnv1a(data: bytes) -> int:
    """Return the FNV-1a hash, an unsigned number of 32 bits."""
    result = 0x811C9DC5
    for byte in data:
        result = (result ^ byte) * 0x01000193 & _MASK
    return result


def partition_for(key: bytes | None, partition_count: int, partitioner: str = DEFAULT_PARTITIONER) -> int | None:
    """Return the partition in which a producer with this partitioner puts a key.

    Returns:
        None if the partitioner ignores this key and may choose any partition.

    Raises:
        ValueError: the partitioner is unknown, or there are no partitions.
    """
    if partition_count < 1:
        raise ValueError("a topic has at least one partition")
    match partitioner:
        case "murmur2_random" | "murmur2":
            if key is None and partitioner == "murmur2_random":
                return None
            return (murmur2(key or b"") & 0x7FFFFFFF) % partition_count
        case "consistent_random" | "consistent":
            if not key and partitioner == "consistent_random":
                return None
            return crc32(key or b"") % partition_count
        case "fnv1a_random" | "fnv1a":
            if key is None and partitioner == "fnv1a_random":
                return None
            value = fnv1a(key or b"")
            return (value if value < 0x80000000 else 0x100000000 - value) % partition_count
    raise ValueError(f"unknown partitioner {partitioner!r}: use one of {', '.join(PARTITIONERS)}")


PARTITIONERS = ("murmur2_random", "murmur2", "consistent_random", "consistent", "fnv1a_random", "fnv1a")
