"""The partition of a key, as the producer chooses it: a feeder that goes on must know what is in each partition already.

Sources: org.apache.kafka.common.utils.Utils.murmur2; librdkafka's `partitioner=murmur2_random`, for keys that are there.
"""

from __future__ import annotations

_M = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition, of so many, to which a record with this key goes."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Return the 32-bit hash of Java's producer."""
    value = (_SEED ^ len(data)) & _MASK
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        value = (value * _M & _MASK) ^ k
    if rest := data[whole:]:
        value = (value ^ int.from_bytes(rest, "little")) * _M & _MASK
    value = (value ^ value >> 13) * _M & _MASK
    return value ^ value >> 15
