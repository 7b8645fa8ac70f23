"""The whole text of a node that did something of everything."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from barnabas.metrics.scrape import BYTES
from barnabas.protocol.messages import AlterClientQuotasRequest, GetTelemetrySubscriptionsRequest
from tests.metrics.monitored import Monitored, begin_transaction, coordinate
from tests.short_turns import set_turn

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"

# The names of three exporters that dashboards query, without the labels.
EXPECTED = """
kafka_server_brokertopicmetrics_{messagesin,bytesin,bytesout,totalproducerequests,totalfetchrequests}_total
kafka_server_brokertopicmetrics_{failedproducerequests,failedfetchrequests}_total
kafka_server_brokertopicmetrics_{messagesinpersec,bytesinpersec,bytesoutpersec,totalproducerequestspersec}_total
kafka_server_replicamanager_{leadercount,partitioncount,underreplicatedpartitions}
kafka_server_replicamanager_{underminisrpartitioncount,atminisrpartitioncount,reassigningpartitions}
kafka_server_replicamanager_{isrshrinks,isrexpands,isrshrinkspersec,isrexpandspersec}_total
kafka_cluster_partition_{underminisr,atminisr,replicascount}
kafka_log_log_size
kafka_controller_kafkacontroller_{activecontrollercount,offlinepartitionscount}
kafka_controller_controllerstats_{uncleanleaderelections,uncleanleaderelectionspersec}_total
kafka_controller_kafkacontroller_{activebrokercount,fencedbrokercount}
kafka_server_kafkarequesthandlerpool_{requesthandleravgidle_percent,requesthandleravgidlepercent_total}
kafka_network_socketserver_{networkprocessoravgidle_percent,networkprocessoravgidlepercent}
kafka_network_requestmetrics_{errors_total,requests_total,totaltimems_sum,totaltimems_count,totaltimems}
kafka_server_socket_server_metrics_connection_count
kafka_server_kafkaserver_linux_disk_{read,write}_bytes
process_{open_fds,resident_memory_bytes,cpu_seconds_total}
python_gc_collections_total
kafka_server_raftmetrics_{current_leader,current_epoch,current_vote,current_state,high_watermark,log_end_offset}
kafka_server_raftmetrics_{append_records_rate,fetch_records_rate,commit_latency_avg}
kafka_server_raft_metrics_{current_leader,current_epoch,high_watermark,current_state_info}
kafka_server_raft_channel_metrics_{incoming_byte,outgoing_byte,request,response}
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


def test_every_name_that_dashboards_query_is_there(node: Monitored) -> None:
    node.create_topic("t", 2)
    coordinate(node)
    node.produce("t", b"a", b"b", timestamp=node.now_ms)
    node.fetch("t")
    node.commit("g", "t", 1)
    there = {name for name, _ in node.samples()}
    assert names(EXPECTED) <= there, names(EXPECTED) - there


def test_two_scrapes_at_once_are_one(node: Monitored) -> None:
    async def both() -> tuple[bytes, bytes]:
        assert node.node.metrics is not None
        scraper = node.node.metrics._scraper
        return await asyncio.gather(scraper.text(), scraper.text())

    first, second = node.loop.run_until_complete(both())
    assert first is second


def test_the_loop_has_its_turns_while_a_text_is_made(node: Monitored, monkeypatch: pytest.MonkeyPatch) -> None:
    node.create_topic("t", 50)
    turns = 0

    def count() -> None:
        nonlocal turns
        turns += 1
        node.loop.call_soon(count)

    node.loop.call_soon(count)
    node.text()
    in_one_turn, turns = turns, 0
    set_turn(monkeypatch, 100)
    text = node.text()
    assert text.count('partition="49"') > 1
    assert turns - in_one_turn >= len(text) // BYTES // 100 > 5


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
    coordinate(node, key_type=1)
    begin_transaction(node, "tx")
    node.samples()
    # A verdict about a group needs samples of half a minute.
    node.now_ms += 30_000
    assert node.server.services.share.partitions.records_acquired == 0  # made when first asked for
    served = set(re.findall(r"^# TYPE (\S+) ", node.text(), re.MULTILINE))
    documented = set()
    ours, _, _ = PAGE.read_text(encoding="utf-8").partition("\n## What other names mean here\n")
    for cell, text in re.findall(r"^\| `([^`]+)`(.*)$", ours, re.MULTILINE):
        if "only on nodes" not in text:
            documented |= names(cell)
    assert served == documented
