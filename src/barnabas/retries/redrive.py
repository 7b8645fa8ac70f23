"""Sends dead letters back to their source topic, each of them once.

A batch of dead letters and the note that they were sent (`redriven`) are one transaction. The transactional id is made of the topic's
name, so a second redrive of the topic fences the first, and reads its notes; the next redrive continues a killed one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from barnabas.retries.committed_records import log_ends, read_committed
from barnabas.retries.forwarding import Forwarder
from barnabas.retries.headers import REDRIVEN_FROM, FailureHeaders, read_failure, without_failure
from barnabas.retries.record import Output, Record
from barnabas.retries.redriven import STATE_TOPIC, Redriven


@dataclass(frozen=True, slots=True)
class DeadLetterTopic:
    """A dead-letter topic.

    Attributes:
        partitions: how many.
    """

    name: str
    id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record of a dead-letter topic.

    Attributes:
        failure: the reason, from its headers.
        follows: the offset after the dead letter before it; no record is in between.
        is_redriven: whether it was sent back.
    """

    record: Record
    failure: FailureHeaders
    follows: int
    is_redriven: bool

    @property
    def place(self) -> str:
        """Its topic, partition and offset, as `orders.dlq-0@17`."""
        return f"{self.record.topic}-{self.record.partition}@{self.record.offset}"


class NoTarget(Exception):
    """A dead letter does not say where it came from, or that topic does not exist.

    Attributes:
        dead_letter: the record.
        topic: the topic that does not exist; None if the record names none.
    """

    def __init__(self, dead_letter: DeadLetter, topic: str | None) -> None:
        super().__init__(f"{dead_letter.place}: {'no source topic' if topic is None else f'no topic {topic}'}")
        self.dead_letter = dead_letter
        self.topic = topic


class DeadLetterReader:
    """Reads dead-letter topics, and which of their records were sent back.

    Args:
        consumer: with `READER_SETTINGS`.
        admin: of the same cluster.
        has_state: whether the state topic exists.
    """

    def __init__(self, consumer: Consumer, admin: AdminClient, *, has_state: bool) -> None:
        self._consumer = consumer
        self._admin = admin
        self._has_state = has_state

    def redriven(self, topic: DeadLetterTopic) -> Redriven:
        """Return which dead letters of a topic were sent back."""
        found = Redriven(topic.name, topic.id)
        if self._has_state:
            ends = log_ends(self._admin, [(STATE_TOPIC, 0)])
            for record in read_committed(self._consumer, {(STATE_TOPIC, 0): 0}, ends):
                found.replay(record)
        return found

    def read(self, topic: DeadLetterTopic, redriven: Redriven) -> Iterator[DeadLetter]:
        """Yield the dead letters that a topic has now."""
        follows: dict[int, int] = {}
        everything = {(topic.name, partition): 0 for partition in range(topic.partitions)}
        for record in read_committed(self._consumer, everything):
            where = record.partition
            failure = read_failure(record.headers) or FailureHeaders()
            yield DeadLetter(record, failure, follows.get(where, 0), redriven.has(where, record.offset))
            follows[where] = record.offset + 1


def transactional_id(topic: str) -> str:
    """Return the transactional id of a topic's redrives."""
    return f"barnabas-redrive-{topic}"


def redrive(
    reader: DeadLetterReader,
    producer: Producer,
    topic: DeadLetterTopic,
    targets: Mapping[str, int],
    *,
    chosen: Callable[[DeadLetter], bool] = lambda _: True,
    limit: int | None = None,
    to: str | None = None,
    letters: Sequence[DeadLetter] | None = None,
) -> dict[str, int]:
    """Send dead letters back that were not sent yet.

    Args:
        producer: with `transactional_id`.
        targets: how many partitions each topic of the cluster has.
        chosen: which dead letters to send.
        limit: how many at most.
        to: another topic than the dead letters' source.
        letters: dead letters that were read before, in the place of the topic.

    Returns:
        How many were sent to each topic.

    Raises:
        NoTarget: a dead letter cannot be sent back; those before it may have been sent.
        KafkaException: the batch that was being sent is not; the batches before it are.
    """
    # First of all: this ends what an earlier redrive of the topic has left open, so that the notes are final.
    forwarder = Forwarder(producer)
    redriven = reader.redriven(topic)
    found = reader.read(topic, redriven) if letters is None else _as_of(redriven, letters)

    def outputs() -> Iterator[Output]:
        for dead_letter in wanted(found, chosen, limit):
            output = output_of(dead_letter, targets, to)
            offset = dead_letter.record.offset
            first = dead_letter.follows if _continues(dead_letter, redriven) else offset
            redriven.add(dead_letter.record.partition, first, offset)
            yield output

    return forwarder.send_noted(outputs(), redriven.changes)


def _as_of(redriven: Redriven, letters: Iterable[DeadLetter]) -> Iterator[DeadLetter]:
    """Yield dead letters that were read before, with what was sent back since."""
    for each in letters:
        yield replace(each, is_redriven=redriven.has(each.record.partition, each.record.offset))


def _continues(dead_letter: DeadLetter, redriven: Redriven) -> bool:
    """Return whether the dead letter before it was sent back too: then what is between them joins the range."""
    return dead_letter.follows == 0 or redriven.has(dead_letter.record.partition, dead_letter.follows - 1)


def wanted(
    dead_letters: Iterator[DeadLetter], chosen: Callable[[DeadLetter], bool], limit: int | None
) -> Iterator[DeadLetter]:
    """Yield the dead letters to send back."""
    count = 0
    for each in dead_letters:
        if not each.is_redriven and chosen(each):
            if count == limit:
                return
            count += 1
            yield each


def output_of(dead_letter: DeadLetter, targets: Mapping[str, int], to: str | None) -> Output:
    """Return a dead letter as it is sent back: without the headers of its failure, so that its attempts begin again.

    Raises:
        NoTarget: there is no topic to send it to.
    """
    record, failure = dead_letter.record, dead_letter.failure
    topic = to or failure.topic
    if topic is None or topic not in targets:
        raise NoTarget(dead_letter, topic)
    headers = tuple(each for each in without_failure(record.headers) if each[0] != REDRIVEN_FROM)
    same = to is None and failure.partition is not None and 0 <= failure.partition < targets[topic]
    partition = failure.partition if same else None
    return Output(topic, record.value, record.key, (*headers, (REDRIVEN_FROM, dead_letter.place.encode())), partition)
