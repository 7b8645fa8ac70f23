"""The counters of a topic's traffic.

Plain integers that only grow, because adding to one costs less than 0.1 µs. The broker's own counters take over those of deleted
topics, so that totals never decrease.

Source: Kafka's `BrokerTopicStats`.
"""

from __future__ import annotations

__all__ = ["TopicTraffic"]


class TopicTraffic:
    """Bytes and records appended, bytes sent to consumers, appends and reads of partitions, and the failed ones."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "messages_in",
        "produces",
    )

    def __init__(self) -> None:
        self.bytes_in = 0
        self.messages_in = 0
        self.bytes_out = 0
        self.produces = 0
        self.fetches = 0
        self.failed_produces = 0
        self.failed_fetches = 0

    def __repr__(self) -> str:
        return f"<TopicTraffic messages_in={self.messages_in} bytes_in={self.bytes_in} bytes_out={self.bytes_out}>"

    def add(self, other: TopicTraffic) -> None:
        """Add the counters of another topic."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
