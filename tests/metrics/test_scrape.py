"""A node that did something of everything, scraped over HTTP and read by Prometheus's own parser."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.protocol.messages import (
    AlterClientQuotasRequest,
    DeleteTopicsRequest,
    FetchRequest,
    GetTelemetrySubscriptionsRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    ProduceRequest,
    SyncGroupRequest,
)
from tests.api.serving import Serving
from tests.replication.hosting import batch

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]
PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"

# The names of three exporters that dashboards query, without the labels.
EXPECTED = """
kafka_server_brokertopicmetrics_{messagesin,bytesin,bytesout,totalproducerequests,totalfetchrequests}_total
kafka_server_brokertopicmetrics_{failedproducerequests,failedfetchrequests}_total
kafka_server_brokertopicmetrics_{messagesinpersec,bytesinpersec,bytesoutpersec,totalproducerequestspersec}_total
kafka_server_replicamanager_{leadercount,partitioncount,underreplicatedpartitions}
kafka_cluster_partition_{underminisr,atminisr,replicascount}
kafka_log_log_size
kafka_controller_kafkacontroller_{activecontrollercount,offlinepartitionscount}
kafka_controller_controllerstats_uncleanleaderelections_total
kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent
kafka_network_socketserver_networkprocessoravgidle_percent
kafka_network_requestmetrics_{errors_total,requests_total,totaltimems_sum,totaltimems_count,totaltimems}
kafka_server_socket_server_metrics_connection_count
kafka_server_kafkaserver_linux_disk_{read,write}_bytes
process_{open_fds,resident_memory_bytes,cpu_seconds_total}
python_gc_collections_total
kafka_server_raftmetrics_{current_leader,current_epoch,current_vote,current_state,high_watermark,log_end_offset}
kafka_server_raftmetrics_{append_records_rate,fetch_records_rate,commit_latency_avg}
kafka_server_raft_metrics_{current_leader,current_epoch,high_watermark}
kafka_server_raftchannelmetrics_{incoming_byte,outgoing_byte,request,response}_total
kafka_brokers
kafka_broker_info
kafka_topic_partitions
kafka_topic_partition_{current_offset,oldest_offset,in_sync_replica,leader,leader_is_preferred,replicas}
kafka_topic_partition_under_replicated_partition
kafka_consumergroup_{current_offset,current_offset_sum,lag,lag_sum,members}
kafka_consumergroup_group_{offset,lag,lag_seconds,max_lag,max_lag_seconds,sum_lag,topic_sum_lag}
kafka_partition_{latest_offset,earliest_offset}
"""


def names(text: str) -> set[str]:
    found = set()
    for line in text.split():
        match = re.fullmatch(r"(\w*)(?:\{([\w,]+)\})?(\w*)", line)
        assert match is not None, line
        found |= {f"{match[1]}{part}{match[3]}" for part in (match[2] or "").split(",")}
    return found


class Monitored(Serving):
    """A node with metrics; requests are counted by its own dispatcher."""

    def __init__(self, folder: Path, **settings: str) -> None:
        super().__init__(folder, barnabas_metrics_listen="127.0.0.1:0", **settings)
        assert self.server.metrics is not None
        self.dispatcher._observer = self.server.metrics.request_times

    def text(self) -> str:
        async def get() -> bytes:
            assert self.server.metrics is not None
            reader, writer = await asyncio.open_connection("127.0.0.1", self.server.metrics.http.port)
            writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
            whole = await reader.read()
            writer.close()
            head, _, body = whole.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK")
            assert b"text/plain; version=0.0.4" in head
            return body

        return self.loop.run_until_complete(get()).decode()

    def samples(self) -> Samples:
        found: Samples = {}
        for metric in text_string_to_metric_families(self.text()):
            for sample in metric.samples:
                key = (sample.name, tuple(sorted(sample.labels.items())))
                assert key not in found, key
                found[key] = sample.value
        return found

    def produce(self, topic: str, *values: bytes, timestamp: int) -> None:
        data = ProduceRequest.PartitionProduceData(index=0, records=batch(*values, timestamp=timestamp))
        topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
        answer = self.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0

    def fetch(self, topic: str) -> Any:
        partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = [FetchRequest.FetchTopic(topic=topic, partitions=[partition])]
        return self.ask(FetchRequest(max_wait_ms=0, max_bytes=1 << 20, session_epoch=-1, topics=topics), 12)

    def commit(self, group: str, topic: str, offset: int) -> None:
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topics = [OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=[partition])]
        answer = self.ask(OffsetCommitRequest(group_id=group, topics=topics), 8)
        assert answer.topics[0].partitions[0].error_code == 0


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Monitored]:
    made = Monitored(tmp_path, offsets_topic_num_partitions="2")
    yield made
    made.close()


def value(samples: Samples, name: str, **tags: str) -> float:
    return samples[name, tuple(sorted(tags.items()))]


def coordinate(node: Monitored) -> None:
    from barnabas.protocol.messages import FindCoordinatorRequest

    # The first one creates the topic, and is told to come again.
    for _ in range(2):
        node.ask(FindCoordinatorRequest(key="g", key_type=0), 2)


def test_every_name_that_dashboards_query_is_there(node: Monitored) -> None:
    node.create_topic("t", 2)
    coordinate(node)
    node.produce("t", b"a", b"b", timestamp=node.now_ms)
    node.fetch("t")
    node.commit("g", "t", 1)
    there = {name for name, _ in node.samples()}
    assert names(EXPECTED) <= there, names(EXPECTED) - there


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
    node.ask(DeleteTopicsRequest(topic_names=["t"]), 5)
    after = node.samples()
    assert (f"{prefix}messagesin_total", (("topic", "t"),)) not in after
    assert value(after, f"{prefix}messagesin_total") == 3
    assert value(after, f"{prefix}bytesout_total") == len(batch(b"a", b"b"))


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


def test_lag_in_records_and_seconds(node: Monitored) -> None:
    node.create_topic("t")
    coordinate(node)
    for age_s in (30, 20, 10):
        node.produce("t", b"a", b"b", timestamp=node.now_ms - age_s * 1000)
    node.commit("g", "t", 2)
    samples = node.samples()
    here = {"consumergroup": "g", "topic": "t", "partition": "0"}
    assert value(samples, "kafka_consumergroup_current_offset", **here) == 2
    assert value(samples, "kafka_consumergroup_lag", **here) == 4
    assert value(samples, "kafka_consumergroup_lag_sum", consumergroup="g", topic="t") == 4
    cluster = {"cluster_name": node.server.cluster_id, "group": "g"}
    assert value(samples, "kafka_consumergroup_group_max_lag_seconds", **cluster) == 20
    assert value(samples, "kafka_consumergroup_group_sum_lag", **cluster) == 4
    assert (
        value(samples, "kafka_partition_latest_offset", cluster_name=cluster["cluster_name"], topic="t", partition="0")
        == 6
    )
    node.now_ms += 5000
    assert value(node.samples(), "kafka_consumergroup_group_max_lag_seconds", **cluster) == 25
    node.commit("g", "t", 4)
    assert value(node.samples(), "kafka_consumergroup_group_max_lag_seconds", **cluster) == 15
    node.commit("g", "t", 6)
    caught_up = node.samples()
    assert value(caught_up, "kafka_consumergroup_lag", **here) == 0
    assert value(caught_up, "kafka_consumergroup_group_max_lag_seconds", **cluster) == 0


def test_an_offset_beyond_the_log_has_no_lag(node: Monitored) -> None:
    node.create_topic("t")
    coordinate(node)
    node.produce("t", b"a", timestamp=node.now_ms)
    node.commit("g", "t", 77)
    samples = node.samples()
    here = {"consumergroup": "g", "topic": "t", "partition": "0"}
    assert value(samples, "kafka_consumergroup_current_offset", **here) == 77
    assert ("kafka_consumergroup_lag", tuple(sorted(here.items()))) not in samples


def test_the_member_that_has_a_partition_is_named(node: Monitored) -> None:
    from barnabas.group.classic.consumer_protocol import write_assignment
    from barnabas.protocol.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription

    node.create_topic("t")
    coordinate(node)
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(
        name="range", metadata=b"\0\0" + ConsumerProtocolSubscription(topics=["t"]).encode(0)
    )
    joined = node.ask(
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=[protocol],
        ),
        3,
    )
    assert joined.error_code == 0
    given = ConsumerProtocolAssignment(
        assigned_partitions=[ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=[0])]
    )
    assignment = SyncGroupRequest.SyncGroupRequestAssignment(
        member_id=joined.member_id, assignment=write_assignment(given, 0)
    )
    synced = node.ask(
        SyncGroupRequest(
            group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, assignments=[assignment]
        ),
        2,
    )
    assert synced.error_code == 0
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topics = [OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])]
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=joined.generation_id, member_id=joined.member_id, topics=topics
    )
    assert node.ask(request, 7).topics[0].partitions[0].error_code == 0
    samples = node.samples()
    assert value(samples, "kafka_consumergroup_members", consumergroup="g") == 1
    (tags,) = [dict(tags) for name, tags in samples if name == "kafka_consumergroup_group_offset"]
    assert (tags["consumer_id"], tags["client_id"]) == (joined.member_id, "test")
    assert tags["member_host"].endswith("10.0.0.9")
    assert value(samples, "kafka_server_group_coordinator_metrics_group_count", protocol="classic") == 1


def test_quotas_show_who_is_throttled(node: Monitored) -> None:
    node.create_topic("t")
    entry = AlterClientQuotasRequest.EntryData(
        entity=[AlterClientQuotasRequest.EntityData(entity_type="client-id", entity_name="test")],
        ops=[AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=10.0)],
    )
    node.ask(AlterClientQuotasRequest(entries=[entry]))
    node.produce("t", bytes(1000), timestamp=node.now_ms)
    samples = node.samples()
    assert value(samples, "kafka_server_produce_byte_rate", user="", client_id="test") > 100
    throttled = value(samples, "kafka_server_produce_throttle_time_total", user="", client_id="test")
    assert throttled > 0
    assert value(samples, "kafka_network_requestmetrics_throttletimems_total", request="Produce") == throttled


def test_a_restarted_node_shows_logs_that_nobody_has_opened(tmp_path: Path) -> None:
    node = Monitored(tmp_path)
    node.create_topic("t", 2)
    node.produce("t", b"a", b"b", timestamp=node.now_ms)
    node.close()
    node = Monitored(tmp_path)
    samples = node.samples()
    assert value(samples, "kafka_topic_partition_current_offset", topic="t", partition="0") == 2
    assert value(samples, "kafka_topic_partition_current_offset", topic="t", partition="1") == 0
    assert value(samples, "kafka_log_log_size", topic="t", partition="0") == len(batch(b"a", b"b"))
    node.close()


def test_two_scrapes_at_once_are_one(node: Monitored) -> None:
    async def both() -> tuple[bytes, bytes]:
        assert node.server.metrics is not None
        scraper = node.server.metrics._scraper
        return await asyncio.gather(scraper.text(), scraper.text())

    first, second = node.loop.run_until_complete(both())
    assert first is second


def test_metrics_are_off_unless_asked_for(tmp_path: Path) -> None:
    node = Serving(tmp_path)
    assert node.server.metrics is None
    node.close()


def test_the_page_lists_what_is_served(node: Monitored) -> None:
    node.create_topic("t")
    coordinate(node)
    entry = AlterClientQuotasRequest.EntryData(
        entity=[AlterClientQuotasRequest.EntityData(entity_type="user", entity_name=None)],
        ops=[
            AlterClientQuotasRequest.OpData(key=key, value=1e6)
            for key in ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
        ],
    )
    node.ask(AlterClientQuotasRequest(entries=[entry]))
    node.produce("t", b"a", timestamp=node.now_ms)
    node.fetch("t")
    node.commit("g", "t", 0)
    node.ask(GetTelemetrySubscriptionsRequest())
    assert node.server.services.share.partitions.records_acquired == 0  # made when first asked for
    served = set(re.findall(r"^# TYPE (\S+) ", node.text(), re.MULTILINE))
    documented = set()
    for cell in re.findall(r"^\| `([^`]+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        documented |= names(cell)
    assert served == documented


def test_an_open_transaction_holds_back_the_stable_offset_and_is_seen(node: Monitored) -> None:
    from barnabas.protocol.messages import AddPartitionsToTxnRequest, FindCoordinatorRequest, InitProducerIdRequest

    node.create_topic("t")
    coordinate(node)
    for _ in range(2):
        node.ask(FindCoordinatorRequest(key="tx", key_type=1), 2)
    began = node.ask(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000), 4)
    assert began.error_code == 0
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=began.producer_id,
        v3_and_below_producer_epoch=began.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )
    assert node.ask(add, 3).results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0
    node.produce("t", b"plain", timestamp=node.now_ms)
    records = batch(
        b"open",
        timestamp=node.now_ms,
        producer_id=began.producer_id,
        producer_epoch=began.producer_epoch,
        base_sequence=0,
        transactional=True,
    )
    data = ProduceRequest.PartitionProduceData(index=0, records=records)
    topics = [ProduceRequest.TopicProduceData(name="t", partition_data=[data])]
    answer = node.ask(ProduceRequest(transactional_id="tx", acks=-1, timeout_ms=1000, topic_data=topics), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    node.commit("g", "t", 0)
    node.now_ms += 7000
    samples = node.samples()
    assert value(samples, "kafka_cluster_partition_laststableoffsetlag", topic="t", partition="0") == 1
    assert value(samples, "kafka_topic_partition_current_offset", topic="t", partition="0") == 2
    # Up to the last stable offset there is one record; the other is not there yet.
    assert value(samples, "kafka_consumergroup_lag", consumergroup="g", topic="t", partition="0") == 1
    assert value(samples, "barnabas_transaction_state_count", state="Ongoing") == 1
    assert value(samples, "barnabas_transaction_oldest_ongoing_seconds") == 7
    assert value(samples, "kafka_server_replicamanager_produceridcount") == 1
