"""The producer of the second transaction protocol, against brokers in memory: what it sends, and what it says of each failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer

from barnabas.client.errors import ConnectionLost
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode
from barnabas.records.record import iter_records
from barnabas.records.record_batch import read_header
from barnabas.verify.producers import Abortable, Refused, Unknown
from barnabas.verify.transactional_producer import TransactionalProducer, parse_group_metadata
from tests.client.scripted_broker import MemoryCluster

METADATA = b"CGMDv2:\x05\0\0\0g\0member-1\0\1"


class Coordinator:
    """One broker; each API answers with the next code of its script, then with success."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster()
        self.cluster.topics = {"t": [1, 1]}
        self.codes: dict[str, list[int | Exception]] = {}
        self.epoch = 0
        for name, answer in {
            "InitProducerId": self._init, "Produce": self._produce, "TxnOffsetCommit": self._offsets, "EndTxn": self._end,
        }.items():  # fmt: skip
            request = getattr(messages, f"{name}Request")
            self.cluster.versions[request.API_KEY] = (request.MIN_VERSION, request.MAX_VERSION)
            self.cluster.handlers[f"{name}Request"] = self._scripted(name, answer)

    def _scripted(self, name: str, answer: Callable[[Any, int], Any]) -> Callable[[int, Any, int], Any]:
        def handle(broker: int, request: Any, version: int) -> Any:
            script = self.codes.get(name, [])
            item = script.pop(0) if script else 0
            return item if isinstance(item, Exception) else answer(request, item)

        return handle

    def _init(self, request: Any, code: int) -> Any:
        return messages.InitProducerIdResponse(error_code=code, producer_id=7, producer_epoch=self.epoch)

    def _produce(self, request: Any, code: int) -> Any:
        response = messages.ProduceResponse
        (topic,) = request.topic_data
        partition = response.PartitionProduceResponse(
            index=topic.partition_data[0].index, error_code=code, base_offset=40
        )
        return response(responses=[response.TopicProduceResponse(name=topic.name, partition_responses=[partition])])

    def _offsets(self, request: Any, code: int) -> Any:
        response = messages.TxnOffsetCommitResponse
        partition = response.TxnOffsetCommitResponsePartition(partition_index=0, error_code=code)
        return response(topics=[response.TxnOffsetCommitResponseTopic(name="t", partitions=[partition])])

    def _end(self, request: Any, code: int) -> Any:
        if not code:
            self.epoch += 1
        return messages.EndTxnResponse(error_code=code, producer_id=7, producer_epoch=self.epoch)

    def producer(self) -> TransactionalProducer:
        def sleep(seconds: float) -> None:
            self.cluster.now += seconds

        return TransactionalProducer(
            "memory:1", "id", timeout_s=3, transaction_timeout_ms=1000, cluster=self.cluster.client(),
            clock=lambda: self.cluster.now, sleep=sleep,
        )  # fmt: skip

    def batches(self) -> list[tuple[int, int, int, bytes | None]]:
        """(partition, epoch, sequence, value) of every batch that arrived."""
        found = []
        for request in self.cluster.asked("ProduceRequest"):
            data = request.topic_data[0].partition_data[0]
            header = read_header(data.records)
            (record,) = iter_records(data.records)
            found.append((data.index, header.producer_epoch, header.base_sequence, record.value))
        return found


def test_a_transaction() -> None:
    coordinator = Coordinator()
    producer = coordinator.producer()
    producer.begin()
    producer.send("t", 0, b"1")
    producer.send("t", 0, b"2")
    producer.send("t", 1, b"3")
    producer.send_offsets({("t", 0): 9}, METADATA)
    assert producer.flush() == [40, 40, 40]
    producer.commit()
    assert coordinator.batches() == [(0, 0, 0, b"1"), (0, 0, 1, b"2"), (1, 0, 0, b"3")]
    (offsets,) = coordinator.cluster.asked("TxnOffsetCommitRequest")
    assert (offsets.group_id, offsets.generation_id_or_member_epoch, offsets.member_id) == ("g", 5, "member-1")
    (end,) = coordinator.cluster.asked("EndTxnRequest")
    assert (end.producer_epoch, end.committed) == (0, True)
    producer.begin()
    producer.send("t", 0, b"4")
    assert coordinator.batches()[-1] == (0, 1, 0, b"4")  # the next epoch, sequences from zero


def test_an_empty_transaction_asks_for_nothing() -> None:
    coordinator = Coordinator()
    producer = coordinator.producer()
    producer.begin()
    producer.commit()
    producer.begin()
    producer.abort()
    assert coordinator.cluster.asked("EndTxnRequest") == []


LOST = ConnectionLost("gone")


@pytest.mark.parametrize("api", ["Produce", "TxnOffsetCommit", "EndTxn"])
@pytest.mark.parametrize("trouble", [LOST, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR])
def test_what_may_pass_is_asked_again_as_it_was(api: str, trouble: int | Exception) -> None:
    coordinator = Coordinator()
    producer = coordinator.producer()
    coordinator.codes[api] = [trouble, trouble]
    producer.begin()
    producer.send("t", 0, b"1")
    producer.send_offsets({("t", 0): 9}, METADATA)
    producer.commit()
    asked = coordinator.cluster.asked(f"{api}Request")
    assert len(asked) == 3
    assert asked[0] == asked[1] == asked[2]


def test_a_duplicate_is_there_already() -> None:
    coordinator = Coordinator()
    producer = coordinator.producer()
    coordinator.codes["Produce"] = [LOST, ErrorCode.DUPLICATE_SEQUENCE_NUMBER]
    producer.begin()
    producer.send("t", 0, b"1")
    assert producer.flush() == [None]


@pytest.mark.parametrize(
    ("api", "script", "failure"),
    [
        ("Produce", [ErrorCode.TRANSACTION_ABORTABLE], Abortable),
        ("Produce", [ErrorCode.INVALID_PRODUCER_EPOCH], Abortable),
        ("Produce", [ErrorCode.PRODUCER_FENCED], Refused),
        ("Produce", [ErrorCode.MESSAGE_TOO_LARGE], Refused),
        ("Produce", [LOST] * 1000, Abortable),
        ("TxnOffsetCommit", [ErrorCode.ILLEGAL_GENERATION], Abortable),
        ("TxnOffsetCommit", [ErrorCode.PRODUCER_FENCED], Refused),
        ("EndTxn", [ErrorCode.PRODUCER_FENCED], Refused),
        ("EndTxn", [ErrorCode.INVALID_TXN_STATE], Refused),
        ("EndTxn", [ErrorCode.TRANSACTION_ABORTABLE], Abortable),
        # An attempt that nobody answered may have committed.
        ("EndTxn", [LOST, ErrorCode.PRODUCER_FENCED], Unknown),
        ("EndTxn", [LOST, ErrorCode.TRANSACTION_ABORTABLE], Unknown),
        ("EndTxn", [LOST] * 1000, Unknown),
    ],
)
def test_what_a_failure_means(api: str, script: list[int | Exception], failure: type[Exception]) -> None:
    coordinator = Coordinator()
    producer = coordinator.producer()
    coordinator.codes[api] = list(script)
    producer.begin()

    def transaction() -> None:
        producer.send("t", 0, b"1")
        producer.send_offsets({("t", 0): 9}, METADATA)
        producer.commit()

    with pytest.raises(failure) as raised:
        transaction()
    assert type(raised.value) is failure


def test_an_abort_that_fails_is_a_refusal() -> None:
    coordinator = Coordinator()
    producer = coordinator.producer()
    producer.begin()
    producer.send("t", 0, b"1")
    coordinator.codes["EndTxn"] = [LOST, ErrorCode.PRODUCER_FENCED]
    with pytest.raises(Refused):
        producer.abort()


def test_the_id_is_somebody_elses() -> None:
    coordinator = Coordinator()
    coordinator.codes["InitProducerId"] = [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
    with pytest.raises(Refused):
        coordinator.producer()


def test_an_old_broker() -> None:
    coordinator = Coordinator()
    coordinator.cluster.versions[messages.EndTxnRequest.API_KEY] = (0, 4)
    producer = coordinator.producer()
    producer.begin()
    producer.send("t", 0, b"1")
    with pytest.raises(Refused, match="version 2"):
        producer.commit()


@pytest.mark.parametrize("instance", [None, "me", ""])
def test_group_metadata_that_the_library_writes(instance: str | None) -> None:
    settings = {"bootstrap.servers": "127.0.0.1:1", "group.id": "orders", "log_level": 0}
    if instance:
        settings["group.instance.id"] = instance
    consumer = Consumer(settings)
    try:
        assert parse_group_metadata(consumer.consumer_group_metadata()) == ("orders", -1, "", instance or None)
    finally:
        consumer.close()


def test_group_metadata_of_a_member() -> None:
    assert parse_group_metadata(b"CGMDv2:\x05\0\0\0g\0member-1\0\0static\0") == ("g", 5, "member-1", "static")


@pytest.mark.parametrize("metadata", [b"", b"CGMDv1:\0\0\0\0g\0m\0\1", b"CGMDv2:\0"])
def test_other_bytes_are_not_group_metadata(metadata: bytes) -> None:
    with pytest.raises(ValueError):
        parse_group_metadata(metadata)
