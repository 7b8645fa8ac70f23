"""What is counted for the metrics of a topic."""

from __future__ import annotations

import pytest

from barnabas.log.log_config import LogConfig
from barnabas.protocol.errors import KafkaError
from barnabas.replication.topic_traffic import TopicTraffic
from tests.replication.hosting import NODE, Hosting, batch


def test_a_new_topic_has_counted_nothing() -> None:
    traffic = TopicTraffic()
    assert [getattr(traffic, name) for name in TopicTraffic.__slots__] == [0] * 7


def test_each_count_is_added() -> None:
    one, other = TopicTraffic(), TopicTraffic()
    for number, name in enumerate(TopicTraffic.__slots__, 1):
        setattr(one, name, 10)
        setattr(other, name, number)
    one.add(other)
    assert [getattr(one, name) for name in TopicTraffic.__slots__] == [11, 12, 13, 14, 15, 16, 17]
    assert other.bytes_in == 1


def test_appends_are_counted(hosting: Hosting) -> None:
    hosting.create_topic("t")
    records = batch(b"a", b"b", b"c")
    hosting.replicas.append("t", 0, records, 1)
    traffic = hosting.replicas.topics["t"].traffic
    assert (traffic.produces, traffic.messages_in, traffic.bytes_in) == (1, 3, len(records))
    hosting.replicas.append("t", 0, batch(b"d"), 1)
    assert (traffic.produces, traffic.messages_in, traffic.failed_produces) == (2, 4, 0)


def test_a_refused_append_is_a_failure_unless_the_client_could_not_know(hosting: Hosting) -> None:
    config = LogConfig(min_insync_replicas=2, max_message_bytes=200)
    hosting.change(hosting.create_topic("t", replicas=(NODE, 2), config=config), isr=[NODE])
    traffic = hosting.replicas.topics["t"].traffic
    with pytest.raises(KafkaError, match="is insufficient to satisfy"):
        hosting.replicas.append("t", 0, batch(b"a"), -1)
    with pytest.raises(KafkaError):
        hosting.replicas.append("t", 0, batch(b"a"), -1)
    assert (traffic.produces, traffic.failed_produces) == (2, 2)
    with pytest.raises(KafkaError):
        hosting.replicas.append("t", 0, batch(b"a" * 500), 1)
    assert (traffic.produces, traffic.failed_produces) == (3, 2), "a record too large is not counted"
    assert (traffic.messages_in, traffic.bytes_in) == (0, 0)


def test_what_a_deleted_topic_has_counted_is_kept(hosting: Hosting) -> None:
    id_ = hosting.create_topic("t")
    hosting.append("t", b"a", b"b")
    hosting.delete_topic(id_)
    assert hosting.replicas.departed_traffic.messages_in == 2
