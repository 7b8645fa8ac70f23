"""A table in a compacted topic: what it reads, and what it sends again."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.compacted_topic import CompactedTopic
from barnabas.client.errors import ConnectionLost
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.builder import build_batch
from barnabas.records.record import check_records
from tests.client.scripted_broker import MemoryCluster


class Log:
    """The log of partition 0; each batch is fetched by itself. `trouble` holds the error codes of the next answers."""

    def __init__(self, memory: MemoryCluster) -> None:
        self.batches: list[bytes] = []
        self.trouble: list[int | Exception] = []
        memory.topics = {"table": [1]}
        memory.handlers |= {
            "ListOffsetsRequest": self._list_offsets,
            "FetchRequest": self._fetch,
            "ProduceRequest": self._produce,
        }

    def append(self, key: bytes, value: bytes | None) -> None:
        self.batches.append(bytes(build_batch([(0, key, value, ())], base_offset=len(self.batches))))

    def _list_offsets(self, broker_id: int, request: Any, version: int) -> Any:
        response = messages.ListOffsetsResponse
        offset = len(self.batches) if request.topics[0].partitions[0].timestamp == -1 else 0
        found = response.ListOffsetsPartitionResponse(partition_index=0, offset=offset)
        return response(topics=[response.ListOffsetsTopicResponse(name="table", partitions=[found])])

    def _fetch(self, broker_id: int, request: Any, version: int) -> Any:
        response = messages.FetchResponse
        offset = request.topics[0].partitions[0].fetch_offset
        records: bytes | None = self.batches[offset]
        code = self.trouble.pop(0) if self.trouble else 0
        if code == -100:
            code, records = 0, None
        found = response.PartitionData(partition_index=0, error_code=code, records=records)
        return response(responses=[response.FetchableTopicResponse(topic="table", partitions=[found])])

    def _produce(self, broker_id: int, request: Any, version: int) -> Any:
        response = messages.ProduceResponse
        code = self.trouble.pop(0) if self.trouble else 0
        if isinstance(code, Exception):
            return code
        assert request.acks == -1
        (record,) = check_records(request.topic_data[0].partition_data[0].records)
        if not code:
            assert record.key is not None
            self.append(record.key, record.value)
        found = response.PartitionProduceResponse(index=0, error_code=code)
        return response(responses=[response.TopicProduceResponse(name="table", partition_responses=[found])])


@pytest.fixture
def log(memory: MemoryCluster) -> Log:
    return Log(memory)


@pytest.fixture
def table(memory: MemoryCluster, log: Log) -> CompactedTopic:
    return CompactedTopic(memory.client(), "table")


def test_the_last_value_of_each_key(table: CompactedTopic) -> None:
    assert table.items() == {}
    for key, value in (("b", b"1"), ("a", b"2"), ("b", b"3"), ("c", b"4"), ("c", None)):
        table.put(key, value, 0)
    assert list(table.items().items()) == [("a", b"2"), ("b", b"3")]


def test_a_topic_that_does_not_exist_is_empty(table: CompactedTopic, memory: MemoryCluster) -> None:
    memory.topics = {}
    assert table.items() == {}


def test_a_leader_that_moves_is_asked_again(table: CompactedTopic, log: Log) -> None:
    log.trouble = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ConnectionLost("gone")]
    table.put("a", b"1", 0)
    log.trouble = [ErrorCode.NOT_LEADER_OR_FOLLOWER, -100]
    assert table.items() == {"a": b"1"}


def test_records_that_never_come_are_an_error(table: CompactedTopic, log: Log) -> None:
    log.append(b"a", b"1")
    log.trouble = [-100] * 1000
    with pytest.raises(KafkaError, match="no records of table-0 from offset 0 on"):
        table.items()


def test_a_record_that_is_not_stored_is_an_error(table: CompactedTopic, log: Log) -> None:
    log.trouble = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(KafkaError):
        table.put("a", b"1", 0)
