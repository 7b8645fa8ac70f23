"""Read records with librdkafka and print them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

import click
from confluent_kafka import Consumer, Message
from confluent_kafka import KafkaError as LibraryError
from confluent_kafka import TopicPartition as LibraryPartition

from barnabas.cli.failure import Failure
from barnabas.cli.librdkafka import connected, library_failure
from barnabas.cli.offset_grammar import Span
from barnabas.cli.progress import Measured, on_terminal, rate
from barnabas.cli.rare_collections import rare_collections
from barnabas.cli.record_printer import Printer
from barnabas.cli.session import Session
from barnabas.cli.termination import ends_cleanly
from barnabas.cli.watched_topics import GONE, WatchedTopics
from barnabas.cli.wording import as_typed
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.words.printable import printable

_BATCH_RECORDS = 1000
_COMMITTED_RECORDS = 50
"""Records that are printed before their offsets are stored: so many at most are printed again if Ctrl-C ends a write that a slow reader
blocks."""
_POLL_SECONDS = 0.5
_PATIENT_POLLS = 10
"""Polls without an assignment, after which the command says what it waits for: 5 s, longer than the 3 s that every new group waits for
more members (`group.initial.rebalance.delay.ms`)."""


@contextmanager
def opened(session: Session, extra: tuple[str, ...], settings: dict[str, Any]) -> Iterator[ConsumerRun]:
    """Yield a run of a consumer that is always closed: it commits what it printed, and leaves its group.

    Ctrl-C ends the block without an error, SIGTERM and SIGHUP with their exit codes.
    """
    consumer: Consumer = connected(Consumer, session, extra, settings)
    with suppress(KeyboardInterrupt), ends_cleanly(), rare_collections():
        try:
            yield ConsumerRun(consumer)
        finally:
            consumer.close()


class ConsumerRun:
    """Reads until the count, the range or the end."""

    def __init__(self, consumer: Consumer, clock: Callable[[], float] = time.monotonic) -> None:
        self._consumer = consumer
        self._topics = WatchedTopics(consumer, clock)
        self._open: set[tuple[str, int]] = set()
        """Partitions that may have more records to print."""
        self._ends: dict[tuple[str, int], int] = {}
        self._bounded = False
        self._spans: dict[tuple[str, int], tuple[int, int]] = {}
        """Where each partition's records begin, and where they ended when the run began."""
        self._records = 0
        self._written_bytes = 0
        self._wanted_records: int | None = None
        self._group: str | None = None
        """The group that has not assigned partitions yet."""
        self._empty_polls = 0

    def progress(self) -> Callable[[], Measured]:
        """Return a function that measures how far the run is, for the thread that draws."""
        began_s = time.monotonic()

        def measure() -> Measured:
            text = rate(self._records, self._written_bytes, time.monotonic() - began_s)
            if self._wanted_records is not None:
                return Measured(text, self._records, self._wanted_records)
            if not self._spans:
                return Measured(text)
            wanted = [LibraryPartition(*where) for where in self._spans]
            done = 0
            for at in self._consumer.position(wanted):
                begin, end = self._spans[at.topic, at.partition]
                # The position is negative before the first record.
                done += max(min(at.offset, end) - begin, 0)
            return Measured(text, done, sum(end - begin for begin, end in self._spans.values()))

        return measure

    def assign(self, bounds: dict[TopicPartition, Span]) -> None:
        wanted = []
        self._topics.watch(where.topic for where in bounds)
        for where, (begin, end, log_end) in bounds.items():
            if end is not None:
                self._ends[where] = end
                if begin >= end:
                    continue
            self._open.add(where)
            self._spans[where] = (begin, max(begin, log_end if end is None else end))
            wanted.append(LibraryPartition(where.topic, where.partition, begin))
        self._bounded = bool(self._ends)
        self._consumer.assign(wanted)

    def subscribe(self, topics: list[str], group: str) -> None:
        def assigned(consumer: Consumer, partitions: list[LibraryPartition]) -> None:
            self._group = None
            self._open = {(each.topic, each.partition) for each in partitions}
            if not partitions:
                _tell(f"group {printable(group)} has no partition for this consumer: its other members read them all")

        self._group = group
        self._topics.watch(topics)
        self._consumer.subscribe(topics, on_assign=assigned)
        self._open = {("", -1)}  # until the group assigns partitions

    def read(
        self,
        show: Printer,
        count: int | None,
        exit_at_end: bool,
        *,
        commit: bool,
        passing: Callable[[list[Message]], list[Message]] | None = None,
    ) -> None:
        """Print records until the count, the range or the end is reached.

        Args:
            passing: returns the messages to print; what it leaves out is committed, too.

        Raises:
            Failure: the broker rejects the request, or is gone.
        """
        stream = sys.stdout.buffer
        self._wanted_records = count
        try:
            while self._open or not (exit_at_end or self._bounded):
                messages = self._next()
                for wanted, error in self._parted(messages):
                    self._print(stream, show, wanted, passing, commit=commit)
                    if error is not None:
                        self._note(error, exit_at_end)
                if self._records == count:
                    return
                if messages:
                    stream.flush()
        except BrokenPipeError:
            forget_stdout()
        finally:
            _flush(stream)

    def _parted(self, messages: list[Message]) -> Iterator[tuple[list[Message], Message | None]]:
        """Yield the records up to each message that is an error, and that message; at last the rest, and None."""
        errors = list(map(Message.error, messages))
        if not any(errors):  # nearly always
            yield self._within(messages), None
            return
        begin = 0
        for index, error in enumerate(errors):
            if error is not None:
                yield self._within(messages[begin:index]), messages[index]
                begin = index + 1
        yield self._within(messages[begin:]), None

    def _print(
        self,
        stream: BinaryIO,
        show: Printer,
        messages: list[Message],
        passing: Callable[[list[Message]], list[Message]] | None,
        *,
        commit: bool,
    ) -> None:
        step = _COMMITTED_RECORDS if commit else _BATCH_RECORDS
        for begin in range(0, len(messages), step):
            piece = messages[begin : begin + step]
            printed = piece if passing is None else passing(piece)
            if printed:
                self._written_bytes += stream.write(show(printed))
            if commit:
                last = {(message.topic(), message.partition()): message for message in piece}
                for message in last.values():
                    self._consumer.store_offsets(message)
            self._records += len(printed)

    def _next(self) -> list[Message]:
        """Wait for the next message; return it with those that arrived after it."""
        for topic in self._topics.deleted():
            self._forget(topic)
        first = self._consumer.poll(_POLL_SECONDS)
        if first is None:
            self._note_wait()
            return []
        wanted = self._wanted_records
        room = _BATCH_RECORDS if wanted is None else min(wanted - self._records - 1, _BATCH_RECORDS)
        return [first, *self._consumer.consume(room, 0)] if room else [first]

    def _note_wait(self) -> None:
        """Say once why nothing is printed, if the group has not assigned partitions yet."""
        if self._group is None:
            return
        self._empty_polls += 1
        if self._empty_polls == _PATIENT_POLLS:
            shows = f"`barnabas group describe {as_typed(printable(self._group))} --members` shows who is in it"
            _tell(f"waiting for group {printable(self._group)} to assign partitions ({shows})")

    def _within(self, messages: list[Message]) -> list[Message]:
        """Return the messages before the ends of their partitions; note which partitions reach theirs."""
        if not messages or not self._ends or max(map(_offset, messages)) < min(self._ends.values()) - 1:
            return messages
        return [message for message in messages if self._is_within(message)]

    def _is_within(self, message: Message) -> bool:
        where = (str(message.topic()), int(message.partition() or 0))
        end = self._ends.get(where)
        if end is None:
            return True
        offset = _offset(message)
        if offset >= end - 1:
            self._finish(where)
        return offset < end

    def _note(self, message: Message, exit_at_end: bool) -> None:
        error = message.error()
        assert error is not None
        where = (str(message.topic()), int(message.partition() or 0))
        if error.code() == LibraryError._PARTITION_EOF:
            end = self._ends.get(where)
            # The last offset of a range may be a transaction's marker, which is never delivered.
            if exit_at_end or (end is not None and _offset(message) >= end):
                self._finish(where)
            return
        if error.retriable() and not error.fatal():
            return
        if error.code() in GONE and where[0] in self._topics:
            self._forget(where[0])
            return
        raise library_failure(error, f"topic {where[0]}" if message.topic() else "cannot consume")

    def _forget(self, topic: str) -> None:
        """Go on without a topic that was deleted.

        Raises:
            Failure: there is no other topic.
        """
        sentence = f"topic {printable(topic)} was deleted"
        self._topics.forget(topic)
        if not self._topics:
            raise Failure(sentence)
        click.echo(sentence, err=True)
        self._open = {where for where in self._open if where[0] != topic}

    def _finish(self, where: tuple[str, int]) -> None:
        if where in self._open:
            self._open.discard(where)


def _tell(sentence: str) -> None:
    """Say something to a person; a script's standard error stays empty."""
    if on_terminal():
        click.echo(sentence, err=True)


def _offset(message: Message) -> int:
    return int(message.offset() or 0)


def _flush(stream: BinaryIO) -> None:
    try:
        stream.flush()
    except BrokenPipeError:
        forget_stdout()


def forget_stdout() -> None:
    """Keep the interpreter from an error at exit, after `| head` has closed the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
