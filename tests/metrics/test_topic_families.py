"""Topics and partitions: traffic and sizes."""

from __future__ import annotations

from types import SimpleNamespace

from barnabas.metrics import topic_families
from barnabas.protocol.messages import DeleteTopicsRequest, ProduceRequest
from tests.metrics.monitored import Monitored, value
from tests.replication.hosting import batch


def test_traffic_by_topic_and_in_all_survives_a_deleted_topic(node: Monitored) -> None:
    node.create_topic("t")
    node.create_topic("u")
    node.produce("t", b"a", b"b", timestamp=node.now_ms)
    node.produce("u", b"c", timestamp=node.now_ms)
    node.fetch("t")
    samples = node.samples()
    prefix = "kafka_server_brokertopicmetrics_"
    assert value(samples, f"{prefix}messagesin_total", topic="t") == 2
    assert value(samples, f"{prefix}messagesin_total") == 3
    assert value(samples, f"{prefix}bytesin_total", topic="t") == len(batch(b"a", b"b"))
    assert value(samples, f"{prefix}bytesout_total", topic="t") == len(batch(b"a", b"b"))
    assert value(samples, f"{prefix}bytesout_total") == value(samples, f"{prefix}bytesout_total", topic="t")
    assert value(samples, f"{prefix}totalproducerequestspersec_total") == 2
    assert value(samples, "kafka_log_log_size", topic="t", partition="0") == len(batch(b"a", b"b"))
    node.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=30_000), 5)
    after = node.samples()
    assert (f"{prefix}messagesin_total", (("topic", "t"),)) not in after
    assert value(after, f"{prefix}messagesin_total") == 3
    assert value(after, f"{prefix}bytesout_total") == len(batch(b"a", b"b"))


def test_the_loop_may_have_a_turn_after_each_topic_that_is_counted(node: Monitored) -> None:
    for number in range(5):
        node.create_topic(f"t{number}")
    source = SimpleNamespace(services=node.server.services)
    parts = list(topic_families.families(source, [], "c"))  # type: ignore[arg-type]
    assert parts[:5] == [""] * 5
    assert parts[5].startswith("# HELP kafka_server_brokertopicmetrics_messagesin_total ")


def test_a_refused_batch_is_a_failed_produce(node: Monitored) -> None:
    node.create_topic("t")
    records = batch(b"a", timestamp=node.now_ms + 10**9)
    data = ProduceRequest.PartitionProduceData(index=0, records=records)
    topics = [ProduceRequest.TopicProduceData(name="t", partition_data=[data])]
    assert node.ask(ProduceRequest(acks=1, topic_data=topics), 9).responses[0].partition_responses[0].error_code == 32
    samples = node.samples()
    assert value(samples, "kafka_server_brokertopicmetrics_failedproducerequests_total", topic="t") == 1
    errors = "kafka_network_requestmetrics_errors_total"
    assert value(samples, errors, request="Produce", error="INVALID_TIMESTAMP") == 1
    assert value(samples, "kafka_network_requestmetrics_requests_total", request="Produce", version="9") == 1
