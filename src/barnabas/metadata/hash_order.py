"""The iteration order of Java's hash maps.

Some answers list what Kafka keeps in a `java.util.HashMap`: the settings of DescribeConfigs, the limits and entities of
DescribeClientQuotas. The protocol promises no order there, but Kafka's is always the same for the same keys, and programs
that compare whole answers depend on it. Strings hash as `String.hashCode` specifies
(`protocol.partition_for`). A table spreads, grows and iterates as `HashMap` does since Java 8.

A bucket is walked in the order of insertion. Buckets of more than eight keys, which become trees in Java, do not occur here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Key = TypeVar("Key")

DEFAULT_CAPACITY = 16


def capacity_for(expected: int) -> int:
    """Return the table of `new HashMap<>(expected)`: the next power of two."""
    return 1 << max(expected - 1, 0).bit_length()


def in_hash_order(keys: Iterable[Key], hash_of: Callable[[Key], int], capacity: int = DEFAULT_CAPACITY) -> list[Key]:
    """Return the keys in the order in which a hash map iterates over them.

    Args:
        keys: distinct, in the order in which they were put.
        hash_of: the key's `hashCode`, of which the lowest 32 bits count.
        capacity: of the table at first, a power of two; it doubles when it is more than three quarters full.
    """
    put = list(keys)
    while len(put) > capacity * 3 // 4:
        capacity *= 2

    def bucket(key: Key) -> int:
        code = hash_of(key) & 0xFFFFFFFF
        return (code ^ code >> 16) & (capacity - 1)

    return sorted(put, key=bucket)
