"""The topics that a consumer reads: whether one of them was deleted. librdkafka says nothing of it for minutes, or for ever."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import KafkaError as LibraryError

LOOK_S = 3.0
_TIMEOUT_S = 1.0
GONE = (LibraryError.UNKNOWN_TOPIC_OR_PART, LibraryError._UNKNOWN_TOPIC)


class WatchedTopics:
    """Asks the cluster every three seconds.

    A topic was deleted if it is missing twice in a row: a broker that has just started may not know it yet.

    Args:
        clock: returns seconds that only grow.
    """

    def __init__(self, consumer: Consumer, clock: Callable[[], float]) -> None:
        self._consumer = consumer
        self._clock = clock
        self._missing: dict[str, int] = {}
        """How often in a row each topic was missing."""
        self._look_at = clock() + LOOK_S

    def __repr__(self) -> str:
        return f"<WatchedTopics {self._missing}>"

    def __contains__(self, topic: str) -> bool:
        return topic in self._missing

    def __len__(self) -> int:
        return len(self._missing)

    def watch(self, topics: Iterable[str]) -> None:
        """Watch these topics."""
        self._missing = dict.fromkeys(topics, 0)

    def forget(self, topic: str) -> None:
        """Watch this topic no longer."""
        del self._missing[topic]

    def deleted(self) -> list[str]:
        """Return the topics that were deleted, if it is time to look."""
        if self._clock() < self._look_at:
            return []
        for topic in self._missing:
            self._missing[topic] = self._missing[topic] + 1 if self._is_missing(topic) else 0
        self._look_at = self._clock() + LOOK_S
        return [topic for topic, times in self._missing.items() if times > 1]

    def _is_missing(self, topic: str) -> bool:
        try:
            found = self._consumer.list_topics(topic, timeout=_TIMEOUT_S).topics.get(topic)
        except KafkaException:  # no broker answers
            return False
        return (
            found is not None and found.error is not None and found.error.code() == LibraryError.UNKNOWN_TOPIC_OR_PART
        )
