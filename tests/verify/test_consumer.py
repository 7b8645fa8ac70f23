"""A consumer's positions: kept while it is assigned, given back after a failed operation."""

from __future__ import annotations

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from barnabas.verify import consumer as module
from barnabas.verify.consumer import ConsumerFailed, Layout, ReadCommittedConsumer


class Message:
    """A record of key 1, or an error."""

    def __init__(self, offset: int, error: KafkaError | None = None) -> None:
        self._offset, self._error = offset, error

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 1

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return b"%d" % (100 + self._offset)

    def error(self) -> KafkaError | None:
        return self._error


class Library:
    """The library's consumer: logs from 5 to 50, messages as a test puts them."""

    def __init__(self, settings: dict[str, object]) -> None:
        self.messages: list[Message] = []
        self.assigned: list[tuple[int, int]] = []
        self.sought: list[tuple[int, int]] = []
        self.seek_fails = False

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        return 5, 50

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned = [(each.partition, each.offset) for each in partitions]

    def poll(self, timeout: float) -> Message | None:
        return self.messages.pop(0) if self.messages else None

    def consume(self, most: int, timeout: float) -> list[Message]:
        taken, self.messages = self.messages[:most], self.messages[most:]
        return taken

    def seek(self, partition: TopicPartition) -> None:
        if self.seek_fails:
            raise KafkaException(KafkaError(KafkaError._STATE))
        self.sought.append((partition.partition, partition.offset))


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> tuple[ReadCommittedConsumer, Library]:
    monkeypatch.setattr(module, "LibraryConsumer", Library)
    made = ReadCommittedConsumer("b:1", Layout(["t"], 2), "g")
    library = made.consumer
    assert isinstance(library, Library)
    return made, library


def test_a_layout_numbers_the_partitions_of_all_topics() -> None:
    layout = Layout(["a", "b"], 3)
    assert [layout.place(key) for key in (0, 2, 3)] == [("a", 0), ("a", 2), ("b", 0)]
    assert layout.keys("b") == (3, 4, 5)
    assert all(layout.key(*layout.place(key)) == key for key in range(6))


def test_a_new_key_begins_near_the_end_and_a_kept_one_where_it_is(
    consumer: tuple[ReadCommittedConsumer, Library],
) -> None:
    made, library = consumer
    made.assign([1], 20)
    assert library.assigned == [(1, 30)]
    library.messages = [Message(30), Message(31)]
    assert made.poll(0) == {1: [(30, 130), (31, 131)]}
    made.assign([0, 1], None)
    assert library.assigned == [(0, OFFSET_BEGINNING), (1, 32)]


def test_a_failed_operation_gives_its_position_back(consumer: tuple[ReadCommittedConsumer, Library]) -> None:
    made, library = consumer
    made.assign([1], 20)
    library.messages = [Message(30)]
    made.poll(0)
    made.begin()
    library.messages = [Message(31)]
    made.poll(0)
    made.rewind()
    made.rewind()
    assert library.sought == [(1, 31)]


def test_a_failed_seek_ends_the_consumer(consumer: tuple[ReadCommittedConsumer, Library]) -> None:
    made, library = consumer
    made.assign([1], 20)
    library.messages = [Message(30)]
    made.poll(0)
    library.seek_fails = True
    with pytest.raises(ConsumerFailed):
        made.rewind()


def test_only_errors_that_stay_end_a_poll(consumer: tuple[ReadCommittedConsumer, Library]) -> None:
    made, library = consumer
    library.messages = [Message(0, KafkaError(KafkaError._TRANSPORT)), Message(7)]
    assert made.poll(0) == {1: [(7, 107)]}
    library.messages = [Message(0, KafkaError(KafkaError._FATAL))]
    with pytest.raises(ConsumerFailed):
        made.poll(0)
