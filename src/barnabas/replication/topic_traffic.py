"""What came into a topic and went out of it, counted where it happens and read when somebody asks. Data plane.

Plain whole numbers that only grow, one set for a topic; adding to one costs less than a microsecond's tenth. What a deleted
topic had is added to the broker's own set, so that totals never go back.

Source: Kafka's `BrokerTopicStats`.
"""

from __future__ import annotations

__all__ = ["TopicTraffic"]


class TopicTraffic:
    """Attributes: bytes and records appended; bytes sent to consumers; appends and reads of partitions, and those that failed."""

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
        return f"<TopicTraffic {self.messages_in} records in, {self.bytes_in} bytes in, {self.bytes_out} out>"

    def add(self, other: TopicTraffic) -> None:
        """Take over what another has counted."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
