"""Topics that are deleted while a consumer reads them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from barnabas.cli.watched_topics import LOOK_S, WatchedTopics


class Cluster:
    """Answers as a consumer does: `missing` topics do not exist, and no broker answers without any."""

    missing: tuple[str, ...] | None = ()

    def list_topics(self, topic: str, timeout: float) -> Any:
        if self.missing is None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART) if topic in self.missing else None
        return SimpleNamespace(topics={topic: SimpleNamespace(error=error)})


def test_a_topic_was_deleted_if_it_is_missing_twice_in_a_row() -> None:
    now_s = 0.0
    cluster: Any = Cluster()
    topics = WatchedTopics(cluster, lambda: now_s)
    topics.watch(["gone", "orders"])
    found = []
    for missing in (("gone",), (), ("gone",), None, ("gone",), ("gone",)):
        cluster.missing = missing
        assert topics.deleted() == []  # it is not time yet
        now_s += LOOK_S
        found.append(topics.deleted())
    assert found == [[]] * 5 + [["gone"]]
    topics.forget("gone")
    assert ("gone" in topics, "orders" in topics, len(topics)) == (False, True, 1)
