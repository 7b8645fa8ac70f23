"""The new values of a topic, without waiting for any, for a scrape."""

from __future__ import annotations

from barnabas.client.librdkafka_security import librdkafka_security
from barnabas.spark.security_options import NO_SECURITY, SecurityOptions
from barnabas.words.requirements import needed_by

__all__ = ["TopicTail"]

_MOST_VALUES = 10_000
_POLL_S = 0.1
_LISTING_S = 30.0


class TopicTail:
    """Reads a topic from its beginning, a piece with each call.

    Args:
        bootstrap_servers: of the cluster.
        topic: its name; it must exist.
        security: TLS and login.

    Raises:
        RuntimeError: the topic does not exist, or no broker answers.
        NotInstalled: confluent-kafka, whose thread waits for records instead of the caller, is not installed.
    """

    def __init__(self, bootstrap_servers: str, topic: str, security: SecurityOptions = NO_SECURITY) -> None:
        with needed_by("serve_metrics with a losses topic", "cli"):
            from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition
        self._topic = topic
        settings = {"bootstrap.servers": bootstrap_servers, "group.id": "barnabas-spark-metrics", "log_level": 2}
        secured = librdkafka_security(security.client())
        self._consumer = Consumer({**settings, "enable.auto.commit": False, **secured})
        try:
            found = self._consumer.list_topics(topic, timeout=_LISTING_S).topics[topic]
        except KafkaException:
            self.close()
            raise RuntimeError(f"cannot reach {bootstrap_servers} to read topic {topic}") from None
        if not found.partitions:
            self.close()
            raise RuntimeError(f"topic {topic} does not exist: create it first")
        self._consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in found.partitions])

    def __repr__(self) -> str:
        return f"<TopicTail topic={self._topic}>"

    def new(self) -> list[bytes]:
        """Return the values since the last call; none if the broker does not answer."""
        messages = self._consumer.consume(_MOST_VALUES, _POLL_S)
        return [value for each in messages if each.error() is None and (value := each.value()) is not None]

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()
