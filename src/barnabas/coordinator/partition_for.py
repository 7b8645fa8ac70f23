"""Which partition of an internal topic a key belongs to."""

from __future__ import annotations

from barnabas.metadata.hash_order import string_hash

_JAVA_INT_MIN = -(1 << 31)


def java_string_hash(text: str) -> int:
    """Java's `String.hashCode`, as a signed 32-bit number."""
    value = string_hash(text)
    return value - (1 << 32) if value & 0x80000000 else value


def partition_for(key: str, partition_count: int) -> int:
    """The partition of an internal topic that a group (or a transactional id, or a share partition) belongs to.

    By the magnitude of Java's hash, as Kafka's `Utils.abs` has it: the logs of one are then those of the other.
    """
    value = java_string_hash(key)
    return 0 if value == _JAVA_INT_MIN else abs(value) % partition_count
