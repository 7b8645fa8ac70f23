"""The order in which a hash map of Kafka's hands out its keys.

Some answers list what Kafka keeps in a `java.util.HashMap`: the settings of DescribeConfigs, the limits and entities of
DescribeClientQuotas. The protocol promises no order there, but Kafka's is always the same for the same keys, and programs
that compare whole answers have come to lean on it. Strings hash as `String.hashCode` says, which is specified; how a table
spreads, grows and is walked is `HashMap`'s way since Java 8.

A bucket is walked in the order of insertion. Buckets of more than eight keys, which become trees there, do not occur here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Key = TypeVar("Key")

DEFAULT_CAPACITY = 16


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


def capacity_for(expected: int) -> int:
    """The table of `new HashMap<>(expected)`: the next power of two."""
    return 1 << max(expected - 1, 0).bit_length()


def in_hash_order(keys: Iterable[Key], hash_of: Callable[[Key], int], capacity: int = DEFAULT_CAPACITY) -> list[Key]:
    """The keys in the order in which a hash map hands them out.

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
