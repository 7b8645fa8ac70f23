"""The topic, and its claim: of two registries only the one that claimed last can append."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import barnabas
from barnabas.client.cluster import Cluster
from barnabas.client.topics import NewTopic, create_topics, delete_topics
from barnabas.protocol.errors import KafkaError
from barnabas.registry.schemas_log import BadSchemasTopic, ClaimLost, SchemasLog
from barnabas.registry.stored_records import noop_record


@pytest.fixture
def logs(broker: barnabas.Broker, request: pytest.FixtureRequest) -> Iterator[list[SchemasLog]]:
    """Two clients of one topic, which no other test has."""
    found = [SchemasLog(Cluster(broker.bootstrap_servers), f"_{request.node.name}") for _ in range(2)]
    found[0].open()
    yield found
    for each in found:
        each.close()


def test_the_last_claim_counts(logs: list[SchemasLog]) -> None:
    first, second = logs
    assert first.claim(0, "first") == 0
    assert first.append([(b"a", b"1"), (b"b", None)]) == 2
    assert second.claim(7, "second") == 3
    with pytest.raises(ClaimLost):
        first.append([(b"c", b"late")])
    assert second.append([(b"d", b"2")]) == 4
    records = [noop_record(0, "first"), (b"a", b"1"), (b"b", None), noop_record(7, "second"), (b"d", b"2")]
    assert first.poll(0, 0) == (records, 5)
    assert second.poll(4, 0) == (records[4:], 5)
    assert (first.bounds(), second.end()) == ((0, 5), 5)
    assert first.claim(7, "first") == 5


def test_a_topic_that_is_made_again_has_another_id(logs: list[SchemasLog], broker: barnabas.Broker) -> None:
    first, second = logs
    before = first.topic_id()
    assert second.topic_id() == before
    with Cluster(broker.bootstrap_servers) as cluster:
        delete_topics(cluster, ["_test_a_topic_that_is_made_again_has_another_id"])
    with pytest.raises(KafkaError, match="does not exist"):
        first.topic_id()
    second.open()
    assert first.topic_id() != before


def test_a_topic_that_loses_records(broker: barnabas.Broker) -> None:
    with Cluster(broker.bootstrap_servers) as cluster:
        create_topics(cluster, [NewTopic("_two", 2, 1), NewTopic("_by-age", 1, 1)])
        with pytest.raises(BadSchemasTopic, match="topic _two has 2 partitions"):
            SchemasLog(cluster, "_two").open()
        with pytest.raises(BadSchemasTopic, match=r"topic _by-age has cleanup\.policy=delete"):
            SchemasLog(cluster, "_by-age").open()
