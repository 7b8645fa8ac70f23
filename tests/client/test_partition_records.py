"""Batches of one partition: fetched and appended by its leader, in one attempt and in every version that names topics."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.partition_records import append_batch, fetch_records
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.builder import build_batch
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import T1, every_version, only

BATCH = build_batch([(0, b"k", b"v", ())])


def fetched(memory: MemoryCluster, records: bytes | bytearray | None, code: int = 0, partition_code: int = 0) -> None:
    response = messages.FetchResponse

    def fetch(broker_id: int, request: Any, version: int) -> Any:
        assert broker_id == 2
        found = response.PartitionData(partition_index=1, error_code=partition_code, records=records)
        topic = response.FetchableTopicResponse(topic="t", partitions=[found])
        return response(error_code=code, responses=[] if code else [topic])

    memory.handlers["FetchRequest"] = fetch


def appended(memory: MemoryCluster, code: int = 0, message: str | None = None) -> None:
    response = messages.ProduceResponse

    def produce(broker_id: int, request: Any, version: int) -> Any:
        assert broker_id == 2
        found = response.PartitionProduceResponse(index=1, error_code=code, error_message=message)
        return response(responses=[response.TopicProduceResponse(name="t", partition_responses=[found])])

    memory.handlers["ProduceRequest"] = produce


@pytest.mark.parametrize("version", every_version(messages.FetchRequest))
def test_the_leader_returns_batches_from_an_offset_on(memory: MemoryCluster, version: int) -> None:
    only(memory, messages.FetchRequest, version)
    fetched(memory, BATCH)
    assert fetch_records(memory.client(), T1, 7) == BATCH
    (request,) = memory.asked("FetchRequest")
    (asked,) = request.topics[0].partitions
    assert (request.topics[0].topic, asked.partition, asked.fetch_offset) == ("t", 1, 7)


@pytest.mark.parametrize("records", [None, b""])
def test_no_batch_is_an_error(memory: MemoryCluster, records: bytes | None) -> None:
    fetched(memory, records)
    with pytest.raises(KafkaError, match="no records of t-1 from offset 7 on") as raised:
        fetch_records(memory.client(), T1, 7)
    assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT
    assert len(memory.asked("FetchRequest")) == 1


def test_the_errors_of_a_fetch(memory: MemoryCluster) -> None:
    for codes in ((ErrorCode.UNKNOWN_SERVER_ERROR, 0), (0, ErrorCode.UNKNOWN_SERVER_ERROR)):
        fetched(memory, BATCH, *codes)
        with pytest.raises(KafkaError, match="UNKNOWN_SERVER_ERROR"):
            fetch_records(memory.client(), T1, 0)
    memory.topics["t"] = [1, -1]
    with pytest.raises(KafkaError, match="LEADER_NOT_AVAILABLE"):
        fetch_records(memory.client(), T1, 0)


@pytest.mark.parametrize("version", every_version(messages.ProduceRequest))
def test_the_leader_appends_a_batch(memory: MemoryCluster, version: int) -> None:
    only(memory, messages.ProduceRequest, version)
    appended(memory)
    append_batch(memory.client(), T1, BATCH)
    (request,) = memory.asked("ProduceRequest")
    (data,) = request.topic_data[0].partition_data
    assert (request.acks, request.topic_data[0].name, data.index, data.records) == (-1, "t", 1, BATCH)


def test_the_error_of_a_batch_has_the_leaders_words(memory: MemoryCluster) -> None:
    appended(memory, ErrorCode.NOT_LEADER_OR_FOLLOWER, "it moved")
    with pytest.raises(KafkaError, match="it moved") as raised:
        append_batch(memory.client(), T1, BATCH)
    assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert len(memory.asked("ProduceRequest")) == 1
