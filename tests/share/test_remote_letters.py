"""Dead letters for partitions that other brokers lead."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ProduceResponse
from barnabas.share.remote_letters import RemoteLetters
from barnabas.steps import start
from tests.coordinator.other_brokers import OtherBrokers, Sent
from tests.coordinator.virtual_loop import VirtualLoop
from tests.replication.hosting import batch, topic_id

ID = topic_id(7)


class Subject:
    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.brokers = OtherBrokers(self.loop)
        self.leader = 2
        self.letters = RemoteLetters(lambda topic, index: self.leader, 1234, self.brokers.send, self.loop)

    def append(self, value: bytes, index: int = 0) -> asyncio.Future[Any]:
        return start(self.letters.append("dlq", bytes(ID), index, bytearray(batch(value))), self.loop)

    def answer(self, sent: Sent, code: ErrorCode = ErrorCode.NONE) -> None:
        (topic,) = sent.message.topic_data
        part = ProduceResponse.PartitionProduceResponse(index=topic.partition_data[0].index, error_code=code)
        answered = ProduceResponse.TopicProduceResponse(topic_id=topic.topic_id, partition_responses=[part])
        self.brokers.answer(sent, ProduceResponse(responses=[answered]))


def code(failed: asyncio.Future[Any]) -> ErrorCode:
    error = failed.exception()
    assert isinstance(error, KafkaError)
    return error.code


def test_a_batch_is_a_request_to_the_leader() -> None:
    subject = Subject()
    first, second = subject.append(b"a"), subject.append(b"b", 3)
    sent = subject.brokers.take()
    assert (sent.broker_id, sent.message.acks, sent.message.timeout_ms) == (2, -1, 1234)
    (topic,) = sent.message.topic_data
    (part,) = topic.partition_data
    assert (bytes(topic.topic_id), part.index, bytes(part.records)) == (bytes(ID), 0, bytes(batch(b"a")))
    subject.answer(sent)
    assert first.result() is None
    subject.answer(subject.brokers.take())
    assert second.result() is None
    assert "RemoteLetters" in repr(subject.letters)


@pytest.mark.parametrize("theirs", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.MESSAGE_TOO_LARGE])
def test_an_error_of_the_leader_is_the_writers(theirs: ErrorCode) -> None:
    subject = Subject()
    failed = subject.append(b"a")
    subject.answer(subject.brokers.take(), theirs)
    assert code(failed) is theirs


def test_what_has_no_answer_is_tried_again_by_the_writer() -> None:
    subject = Subject()
    lost = subject.append(b"a")
    subject.brokers.lose(subject.brokers.take())
    moved = subject.append(b"a")
    held = subject.brokers.take()
    subject.leader = 3
    subject.letters.reroute()
    closed = subject.append(b"b")
    subject.letters.close()
    subject.loop.run_ready()
    subject.leader = -1
    nobody = subject.append(b"c")
    assert {code(each) for each in (lost, moved, closed, nobody)} == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
    subject.brokers.lose(held)


def test_an_empty_answer_is_an_error() -> None:
    subject = Subject()
    failed = subject.append(b"a")
    subject.brokers.answer(subject.brokers.take(), ProduceResponse())
    assert code(failed) is ErrorCode.UNKNOWN_SERVER_ERROR
