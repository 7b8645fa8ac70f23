"""The topic of decisions: what is found in it, and who may write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

import barnabas
from barnabas.client.admin import Admin
from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.configs import ConfigChange, ConfigResource, ResourceType, describe_configs
from barnabas.client.offsets import LATEST, list_offsets
from barnabas.client.outcome import result
from barnabas.client.producer import EncodedRecords, Producer
from barnabas.client.producer_transactions import Transaction
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError
from barnabas.records.builder import encode_record
from barnabas.records.record_batch import iter_batches
from barnabas.spark.plain_errors import QueryError
from barnabas.spark.sink import decisions
from barnabas.spark.sink.decision_topic import TOPIC, TOPIC_SETTINGS
from barnabas.spark.sink.decisions import Decision, DecisionLog

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as running:
        yield running


@pytest.fixture
def cluster(broker: barnabas.Broker) -> Iterator[Cluster]:
    with Cluster(broker.bootstrap_servers) as found:
        yield found


def claimed(cluster: Cluster, name: str) -> DecisionLog:
    log = DecisionLog(cluster, name, 10_000)
    log.claim()
    return log


def decision(batch: int) -> Decision:
    return Decision("q", batch, "run", 5, (Transaction("s/1/0", 7, 3), Transaction("s/2/0", 8, 0)))


def test_the_last_one_of_each_sink(cluster):
    assert claimed(cluster, "a").read() is None
    for batch in range(3):
        claimed(cluster, "a").write(decision(batch))
        claimed(cluster, "b").write(decision(10 * batch))
    assert claimed(cluster, "a").read() == decision(2)
    assert claimed(cluster, "b").read() == decision(20)
    assert claimed(cluster, "c").read() is None


def test_far_back(cluster, monkeypatch):
    claimed(cluster, "far").write(decision(1))
    for batch in range(5):
        claimed(cluster, "near").write(decision(batch))
    monkeypatch.setattr(decisions, "LOOK_BACK", (1, 3))
    assert claimed(cluster, "far").read() == decision(1)


def test_a_claim_fences_the_one_before(cluster):
    first = claimed(cluster, "fenced")
    claimed(cluster, "fenced").write(decision(1))
    with pytest.raises(KafkaError, match=r"PRODUCER_FENCED|INVALID_PRODUCER_EPOCH"):
        first.write(decision(2))
    assert claimed(cluster, "fenced").read() == decision(1)


def test_a_record_whose_transaction_was_aborted_does_not_count(cluster):
    claimed(cluster, "aborted").write(decision(1))
    producer = Producer(cluster, transactional_id="aborted")
    producer.begin()
    body = encode_record(0, 0, b"aborted", decision(2).to_json())
    producer.send(TopicPartition(TOPIC, 0), EncodedRecords(body, 1, 0, 0))
    producer.flush()
    # Nobody ends it: the next claim aborts it.
    assert claimed(cluster, "aborted").read() == decision(1)


def test_another_sinks_open_transaction_hides_nothing(cluster):
    claimed(cluster, "hidden").write(decision(1))
    producer = Producer(cluster, transactional_id="open")
    producer.begin()
    producer.send(TopicPartition(TOPIC, 0), EncodedRecords(encode_record(0, 0, b"open", b"{}"), 1, 0, 0))
    producer.flush()
    claimed(cluster, "hidden").write(decision(2))
    assert claimed(cluster, "hidden").read() == decision(2)
    producer.abort()


def test_the_topic_is_compacted(cluster):
    claimed(cluster, "any")
    resource = ConfigResource(ResourceType.TOPIC, TOPIC)
    found = describe_configs(cluster, [resource], names=list(TOPIC_SETTINGS))[resource]
    assert not isinstance(found, KafkaError)
    assert {entry.name: entry.value for entry in found} == TOPIC_SETTINGS


def test_a_decision_of_many_tasks(cluster):
    """A hundred thousand fit."""
    tasks = tuple(Transaction(f"barnabas-sink/{'0' * 36}/0123456789ab/{n}", 10**6 + n, 3) for n in range(100_000))
    claimed(cluster, "many").write(replace(decision(1), transactions=tasks))
    found = claimed(cluster, "many").read()
    assert found is not None
    assert found.transactions == tasks


def test_a_decision_that_does_not_fit(broker, cluster):
    resource = ConfigResource(ResourceType.TOPIC, TOPIC)
    log = claimed(cluster, "large")
    with Admin(broker.bootstrap_servers) as admin:
        assert admin.alter_configs({resource: [ConfigChange("max.message.bytes", "300")]}) == {resource: None}
        with pytest.raises(QueryError, match=f"of batch 1 has .* bytes for 20 tasks, .* max.message.bytes of {TOPIC}"):
            log.write(replace(decision(1), transactions=decision(1).transactions * 10))
        log.release()
        (found,) = [each for each in admin.list_transactions() if each.transactional_id == "large"]
        assert found.state in ("PrepareAbort", "CompleteAbort")
        size = TOPIC_SETTINGS["max.message.bytes"]
        assert admin.alter_configs({resource: [ConfigChange("max.message.bytes", size)]}) == {resource: None}


def test_a_record_of_a_newer_release():
    with pytest.raises(ValueError, match="upgrade barnabas"):
        Decision.from_json(b'{"version":3}')


def test_a_record_of_an_older_release():
    found = Decision.from_json(b'{"version":1,"query":"q","batch":4,"run":"r","rows":5,"transactions":[["s/1/0",7,3]]}')
    assert found == Decision("q", 4, "r", 5, (Transaction("s/1/0", 7, 3),))
    assert (found.digest, found.topic, found.two_phase) == (None, None, False)


@pytest.mark.parametrize("topic", ["orders", None])
def test_a_record_is_read_as_it_was_written(topic):
    written = Decision(
        "q", 4, "r", 5, (Transaction("s/1/0", 7, 3),), 2**64 - 1, topic, True, (Transaction("s/1/1", 8, 0),)
    )
    assert Decision.from_json(written.to_json()) == written


class _Deposed(BlockingConnection):
    """Connects to a leader that does not know records from `end` on, for some answers.

    So does a leader that is cut off from its peers, while clients still reach it.
    """

    end = 0
    answers = 0

    def receive(self, *, timeout_ms=None):
        response = super().receive(timeout_ms=timeout_ms)
        if not _Deposed.answers:
            return response
        if isinstance(response, messages.ListOffsetsResponse):
            _Deposed.answers -= 1
            response.topics[0].partitions[0].offset = min(response.topics[0].partitions[0].offset, _Deposed.end)
        elif isinstance(response, messages.FetchResponse):
            data = response.responses[0].partitions[0]
            batches = [(at, header) for at, header in iter_batches(data.records) if header.next_offset <= _Deposed.end]
            data.records = data.records[: batches[-1][0] + batches[-1][1].size] if batches else b""
        return response


@pytest.mark.parametrize("name", ["decided", "new"])
def test_a_deposed_leader_is_not_believed(broker, cluster, monkeypatch, name):
    if name == "decided":
        claimed(cluster, name).write(decision(0))
    claimed(cluster, "another").write(decision(0))
    monkeypatch.setattr(_Deposed, "end", end_of_topic(cluster))
    claimed(cluster, name).write(decision(1))
    with Cluster(broker.bootstrap_servers, connect=_Deposed) as deposed:
        log = claimed(deposed, name)
        monkeypatch.setattr(_Deposed, "answers", 6)
        assert log.read() == decision(1)
        assert _Deposed.answers == 0


def test_a_leader_that_stays_deposed_is_an_error(broker, monkeypatch):
    with Cluster(broker.bootstrap_servers, connect=_Deposed) as deposed:
        log = DecisionLog(deposed, "stays", 300)
        log.claim()
        monkeypatch.setattr(_Deposed, "end", end_of_topic(deposed) - 1)
        monkeypatch.setattr(_Deposed, "answers", 10**6)
        with pytest.raises(KafkaError, match="lacks records that were acknowledged"):
            log.read()


def end_of_topic(cluster: Cluster) -> int:
    partition = TopicPartition(TOPIC, 0)
    return result(list_offsets(cluster, {partition: LATEST})[partition]).offset


def test_what_comes_after_the_claim_is_left_to_its_driver(cluster):
    """Another driver claims and decides between a claim and its read: the first one is fenced, and knows nothing of it."""
    first = claimed(cluster, "later")
    claimed(cluster, "later").write(decision(1))
    assert first.read() is None


def test_a_claim_that_is_released_leaves_nothing_open(broker, cluster):
    log = claimed(cluster, "released")
    log.release()
    with Admin(broker.bootstrap_servers) as admin:
        (found,) = [each for each in admin.list_transactions() if each.transactional_id == "released"]
    assert found.state in ("PrepareAbort", "CompleteAbort")


def test_done_is_of_one_batch(cluster):
    log = claimed(cluster, "done")
    log.write(decision(1))
    assert claimed(cluster, "done").read() == decision(1)
    log.note_done(1)
    assert claimed(cluster, "done").read() == replace(decision(1), is_done=True)
    claimed(cluster, "done").write(decision(2))
    assert claimed(cluster, "done").read() == decision(2)
    log.note_done(2)
    # A driver that was stopped for long says what it knows.
    log.note_done(1)
    assert claimed(cluster, "done").read() == replace(decision(2), is_done=True)
    assert claimed(cluster, "other").read() is None


def test_a_given_token(cluster):
    log = DecisionLog(cluster, "token", 10_000, new_token=lambda: b"mine")
    log.claim()
    assert log.read() is None
