"""Read records with librdkafka and print them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from confluent_kafka import Consumer, KafkaException, Message
from confluent_kafka import KafkaError as LibraryError
from confluent_kafka import TopicPartition as LibraryPartition

from barnabas.cli.failure import Failure
from barnabas.cli.librdkafka import client_settings, library_failure
from barnabas.cli.record_format import Shown
from barnabas.cli.session import Session
from barnabas.client.cluster_metadata import TopicPartition

_BATCH_RECORDS = 1000
_POLL_SECONDS = 0.5


class opened:
    """Opens a consumer and always closes it; Ctrl-C ends the block without an error."""

    def __init__(self, session: Session, extra: tuple[str, ...], settings: dict[str, Any]) -> None:
        try:
            self._consumer = Consumer(client_settings(session, extra, settings))
        except KafkaException as error:
            raise Failure(error.args[0].str(), "-X takes librdkafka's names of settings") from None

    def __enter__(self) -> ConsumerRun:
        return ConsumerRun(self._consumer)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        self._consumer.close()
        return kind is KeyboardInterrupt


class ConsumerRun:
    """Reads until the count, the range or the end."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._open: set[tuple[str, int]] = set()
        """Partitions that may have more records to print."""
        self._ends: dict[tuple[str, int], int] = {}
        self._bounded = False

    def assign(self, bounds: dict[TopicPartition, tuple[int, int | None]]) -> None:
        wanted = []
        for where, (begin, end) in bounds.items():
            if end is not None:
                self._ends[where] = end
                if begin >= end:
                    continue
            self._open.add(where)
            wanted.append(LibraryPartition(where.topic, where.partition, begin))
        self._bounded = bool(self._ends)
        self._consumer.assign(wanted)

    def subscribe(self, topics: list[str]) -> None:
        def assigned(consumer: Consumer, partitions: list[LibraryPartition]) -> None:
            self._open = {(each.topic, each.partition) for each in partitions}

        self._consumer.subscribe(topics, on_assign=assigned)
        self._open = {("", -1)}  # until the group assigns partitions

    def read(self, show: Callable[[Shown], bytes], count: int | None, exit_at_end: bool, *, commit: bool) -> None:
        """Print records until the count, the range or the end is reached.

        Raises:
            Failure: the broker rejects the request, or is gone.
        """
        stream = sys.stdout.buffer
        left = count
        try:
            while self._open or not (exit_at_end or self._bounded):
                messages = self._next(left)
                for message in messages:
                    error = message.error()
                    if error is not None:
                        self._note(error, message, exit_at_end)
                        continue
                    if not self._within(message):
                        continue
                    stream.write(show(_shown(message)))
                    if commit:
                        self._consumer.store_offsets(message)
                    if left is not None:
                        left -= 1
                        if not left:
                            return
                if messages:
                    stream.flush()
        except BrokenPipeError:
            _forget_stdout()
        finally:
            _flush(stream)

    def _next(self, left: int | None) -> list[Message]:
        """Wait for the next message; return it with those that arrived after it."""
        first = self._consumer.poll(_POLL_SECONDS)
        if first is None:
            return []
        room = _BATCH_RECORDS if left is None else min(left - 1, _BATCH_RECORDS)
        return [first, *self._consumer.consume(room, 0)] if room else [first]

    def _within(self, message: Message) -> bool:
        where = (str(message.topic()), int(message.partition() or 0))
        end = self._ends.get(where)
        if end is None:
            return True
        offset = int(message.offset() or 0)
        if offset >= end - 1:
            self._finish(where)
        return offset < end

    def _note(self, error: LibraryError, message: Message, exit_at_end: bool) -> None:
        where = (str(message.topic()), int(message.partition() or 0))
        if error.code() == LibraryError._PARTITION_EOF:
            end = self._ends.get(where)
            # The last offset of a range may be a transaction's marker, which is never delivered.
            if exit_at_end or (end is not None and int(message.offset() or 0) >= end):
                self._finish(where)
            return
        if error.retriable() and not error.fatal():
            return
        raise library_failure(error, f"topic {where[0]}" if message.topic() else "cannot consume")

    def _finish(self, where: tuple[str, int]) -> None:
        if where in self._open:
            self._open.discard(where)


def _shown(message: Message) -> Shown:
    kind, timestamp = message.timestamp()
    epoch = message.leader_epoch()
    headers: Any = message.headers() or ()
    return Shown(
        str(message.topic()),
        int(message.partition() or 0),
        int(message.offset() or 0),
        timestamp if kind else -1,
        _bytes(message.key()),
        _bytes(message.value()),
        [(name, _bytes(value)) for name, value in headers],
        -1 if epoch is None else epoch,
    )


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data


def _flush(stream: BinaryIO) -> None:
    try:
        stream.flush()
    except BrokenPipeError:
        _forget_stdout()


def _forget_stdout() -> None:
    """Keep the interpreter from an error at exit, after `| head` has closed the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
