"""What the consumer of the source makes of the library's messages and errors."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException

from barnabas.mirror.source_records import Arrived, SourceRecords
from barnabas.retries.record import Record


class Message:
    """A message of the library, or an error of partition 1."""

    def __init__(self, code: int | None = None, *, retriable: bool = False) -> None:
        self._error = None if code is None else KafkaError(code, retriable=retriable)

    def error(self) -> KafkaError | None:
        return self._error

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return 1

    def offset(self) -> int:
        return 7

    def timestamp(self) -> tuple[int, int]:
        return 1, 1000

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return b"v"

    def headers(self) -> None:
        return None


class Scripted:
    """A consumer with these messages, and these watermarks."""

    def __init__(self, *messages: Message, watermarks: object = None) -> None:
        self._messages = messages
        self._watermarks = watermarks

    def consume(self, count: int, seconds: float) -> tuple[Message, ...]:
        return self._messages

    def get_watermark_offsets(self, partition: object, cached: bool) -> Any:
        return self._watermarks


def look(*messages: Message) -> Arrived:
    return SourceRecords(Scripted(*messages)).look(0.1)  # type: ignore[arg-type]


def test_records_and_ends() -> None:
    found = look(Message(), Message(KafkaError._PARTITION_EOF))
    assert found == Arrived([Record("orders", 1, 7, 1000, b"k", b"v")], {("orders", 1): 7})


def test_a_position_that_the_source_does_not_have() -> None:
    assert look(Message(KafkaError._AUTO_OFFSET_RESET)) == Arrived(lost=[("orders", 1)])


def test_a_topic_that_is_not_known() -> None:
    assert look(Message(KafkaError.UNKNOWN_TOPIC_OR_PART)) == Arrived(unknown=True)


def test_errors_that_pass_and_one_that_does_not() -> None:
    assert (
        look(Message(KafkaError._TRANSPORT), Message(KafkaError.NOT_LEADER_FOR_PARTITION, retriable=True)) == Arrived()
    )
    with pytest.raises(KafkaException):
        look(Message(KafkaError.TOPIC_AUTHORIZATION_FAILED))


@pytest.mark.parametrize(("watermarks", "end"), [(None, None), ((0, OFFSET_INVALID), None), ((3, 9), 9)])
def test_the_end_of_a_log_is_known_after_a_fetch(watermarks: object, end: int | None) -> None:
    assert SourceRecords(Scripted(watermarks=watermarks)).log_end(("orders", 1)) == end  # type: ignore[arg-type]
