"""Which partition of an internal topic a key belongs to: Java's hash of the key, which clients and brokers both know."""

from __future__ import annotations

from barnabas.protocol.primitives import uuid_to_str

_JAVA_INT_MIN = -(1 << 31)


def string_hash(text: str) -> int:
    """`String.hashCode`, over UTF-16 units, as an unsigned number of 32 bits."""
    result = 0
    if text.isascii():
        for unit in text.encode():
            result = (31 * result + unit) & 0xFFFFFFFF
        return result
    units = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(units), 2):
        result = (31 * result + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return result


def java_string_hash(text: str) -> int:
    """Return Java's `String.hashCode`, as a signed 32-bit number."""
    value = string_hash(text)
    return value - (1 << 32) if value & 0x80000000 else value


def partition_for(key: str, partition_count: int) -> int:
    """Return the partition of an internal topic that a group, a transactional id or a share partition belongs to.

    It is the magnitude of Java's hash (Kafka's `Utils.abs`) modulo the count, so that Kafka finds the same key in the same partition.
    """
    value = java_string_hash(key)
    return 0 if value == _JAVA_INT_MIN else abs(value) % partition_count


def share_coordinator_key(group_id: str, topic_id: bytes, partition: int) -> str:
    """Return the key of a share partition in FindCoordinator; its hash selects the partition of the topic."""
    return f"{group_id}:{uuid_to_str(topic_id)}:{partition}"
