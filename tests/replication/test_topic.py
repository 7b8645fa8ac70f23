"""A topic for its replicas: settings computed on first use, and again after a change."""

from __future__ import annotations

from barnabas.log.log_config import LogConfig
from barnabas.replication.topic import Topic
from tests.replication.hosting import topic_id


def test_settings_are_computed_once_until_they_change() -> None:
    asked = []

    def config_of(name: str) -> LogConfig:
        asked.append(name)
        return LogConfig(retention_ms=len(asked))

    topic = Topic("t", topic_id(1), config_of)
    assert asked == [], "an idle topic computes none"
    assert (topic.config.retention_ms, topic.config.retention_ms, asked) == (1, 1, ["t"])
    topic.config_changed()
    assert asked == ["t"], "nobody has needed them"
    assert (topic.config.retention_ms, asked) == (2, ["t", "t"])


def test_internal_topics_know_it() -> None:
    made = {name: Topic(name, topic_id(1), lambda _: LogConfig()) for name in ("t", "__consumer_offsets", "_schemas")}
    assert [name for name, topic in made.items() if topic.is_internal] == ["__consumer_offsets"]


def test_a_new_topic_has_no_traffic_and_shares_none() -> None:
    one, other = (Topic("t", topic_id(number), lambda _: LogConfig()) for number in (1, 2))
    one.traffic.bytes_in += 5
    assert (other.traffic.bytes_in, other.topic_id) == (0, topic_id(2))
