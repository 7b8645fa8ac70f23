"""The loads of `barnabas perf`, by librdkafka: the client that Python programs use, so that its cost is part of the figures.

- `ProduceLoad` sends records as fast as acknowledgements come, or at a rate. A latency is from `produce` to the acknowledgement.
- `ConsumeLoad` reads partitions from their beginning, without a group, which would stay behind.
- `RoundTrips` sends one record at a time and reads it back. A latency is from `produce` to the record in the consumer.

Values are slices of random letters, as those of kafka-producer-perf-test: a codec has as much to do as with text that never repeats.
"""

from __future__ import annotations

import random
import string
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from barnabas.cli.failure import Failure
from barnabas.cli.latencies import Latencies, Summary
from barnabas.cli.librdkafka import library_failure

MEBI = 1 << 20
"""Kafka's performance tools call this a MB."""
_POOL_BYTES = 1 << 20
_POLL_EVERY = 100
_BATCH_RECORDS = 10_000
_WAIT_S = 0.1


class Produced(NamedTuple):
    """Figures named as kafka-producer-perf-test names them; a MB is 1,048,576 bytes of values."""

    records_sent: int
    records_per_sec: float
    mb_per_sec: float
    latency: Summary


class Consumed(NamedTuple):
    """Figures named as kafka-consumer-perf-test names them; `fetch` is the time after the first record, None if there is none."""

    data_consumed_in_mb: float
    mb_per_sec: float
    data_consumed_in_nmsg: int
    nmsg_per_sec: float
    first_record_ms: float
    fetch_time_ms: float
    fetch_mb_per_sec: float | None
    fetch_nmsg_per_sec: float | None


class ProduceLoad:
    """One producer's load on a topic.

    Args:
        records: to send at most.
        size: bytes of a value.
        rate: records a second at most; None for as many as possible.
        seconds: to send at most; None without a limit.
        partition: of every record; None lets the library spread them.
    """

    def __init__(
        self,
        producer: Producer,
        topic: str,
        *,
        records: int,
        size: int,
        rate: float | None = None,
        seconds: float | None = None,
        partition: int | None = None,
    ) -> None:
        self._producer = producer
        self._topic = topic
        self.records = records
        self._size = size
        self._rate = rate
        self._seconds = seconds
        self._to: dict[str, Any] = {} if partition is None else {"partition": partition}
        letters = random.Random(size).choices(string.ascii_uppercase, k=_POOL_BYTES)
        self._pool = ("".join(letters).encode() * (2 + size // _POOL_BYTES))[: _POOL_BYTES + size]
        self._latencies = Latencies()
        self._error: KafkaError | None = None
        self._began_s = self._ended_s = time.perf_counter()

    def __repr__(self) -> str:
        return f"<ProduceLoad topic={self._topic} acknowledged={self.acknowledged}>"

    @property
    def acknowledged(self) -> int:
        return len(self._latencies)

    def line(self) -> str:
        """Return the progress in the words of Kafka's tool."""
        seconds = max(time.perf_counter() - self._began_s, 0.001)
        count = self.acknowledged
        return (
            f"{count:,} records sent, {count / seconds:,.1f} records/sec"
            f" ({count * self._size / MEBI / seconds:,.2f} MB/sec), {self._latencies.average_s() * 1000:.2f} ms avg latency,"
            f" {self._latencies.max_s * 1000:.2f} ms max latency"
        )

    def run(self) -> None:
        """Send until the count or the time is reached; wait for the acknowledgements.

        Raises:
            Failure: a record was not acknowledged.
            KeyboardInterrupt: at Ctrl-C; the records that were sent are acknowledged by then.
        """
        self._began_s = self._ended_s = time.perf_counter()
        try:
            self._send_all()
        finally:
            self._producer.flush()
        if self._error is not None:
            raise library_failure(self._error, f"topic {self._topic}")

    def _send_all(self) -> None:
        produce, poll, pool, size = self._producer.produce, self._producer.poll, self._pool, self._size
        for number in range(self.records):
            at = number * size % _POOL_BYTES
            while True:
                try:
                    produce(self._topic, pool[at : at + size], on_delivery=self._done, **self._to)
                    break
                except BufferError:  # the library's queue is full: wait for acknowledgements
                    poll(0.1)
                except KafkaException as error:
                    self._error = error.args[0]
                    return
            if self._rate is not None:
                while (early_s := self._began_s + (number + 1) / self._rate - time.perf_counter()) > 0:
                    poll(early_s)
            if not number % _POLL_EVERY:
                poll(0)
                is_late = self._seconds is not None and time.perf_counter() - self._began_s > self._seconds
                if is_late or self._error is not None:
                    return

    def _done(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._error = self._error or error
            return
        self._latencies.add(message.latency() or 0.0)
        self._ended_s = time.perf_counter()

    def figures(self) -> Produced:
        seconds = max(self._ended_s - self._began_s, 1e-6)
        count = self.acknowledged
        size = count * self._size / MEBI
        return Produced(count, round(count / seconds, 1), round(size / seconds, 2), self._latencies.summary())


class ConsumeLoad:
    """One consumer's load: the records that partitions have now.

    Args:
        bounds: first and last offset by partition; the second is excluded.
        records: to read at most; None for all.
        timeout_s: how long no record may come.
    """

    def __init__(
        self,
        consumer: Consumer,
        bounds: Mapping[tuple[str, int], tuple[int, int]],
        *,
        records: int | None,
        timeout_s: float,
    ) -> None:
        self._consumer = consumer
        self._bounds = {where: span for where, span in bounds.items() if span[0] < span[1]}
        there = sum(end - begin for begin, end in self._bounds.values())
        self.wanted = there if records is None else min(records, there)
        self._timeout_s = timeout_s
        self.records = 0
        self._bytes = 0
        self._began_s = self._first_s = self._ended_s = time.perf_counter()

    def __repr__(self) -> str:
        return f"<ConsumeLoad records={self.records} wanted={self.wanted}>"

    def line(self) -> str:
        """Return the progress in words."""
        seconds = max(time.perf_counter() - self._began_s, 0.001)
        return f"{self.records:,} records, {self.records / seconds:,.1f} nMsg.sec, {self._bytes / MEBI / seconds:,.2f} MB.sec"

    def run(self) -> None:
        """Read until the count or every end is reached.

        Raises:
            Failure: the broker rejects a request, or no record comes in time.
        """
        self._began_s = self._first_s = self._ended_s = time.perf_counter()
        open_ = set(self._bounds)
        self._consumer.assign([TopicPartition(*where, begin) for where, (begin, _) in self._bounds.items()])
        last_s = self._began_s
        while self.records < self.wanted and open_:
            # The call waits for as many as it may return: the first record is awaited alone.
            most = min(_BATCH_RECORDS, self.wanted - self.records) if self.records else 1
            messages = self._consumer.consume(most, _WAIT_S)
            now_s = time.perf_counter()
            if messages:
                last_s = now_s
            elif now_s - last_s > self._timeout_s:
                raise Failure(
                    f"no record came for {self._timeout_s:g} s", "check the brokers; --timeout-ms waits longer"
                )
            open_ -= self._count(messages, now_s)

    def _count(self, messages: list[Message], now_s: float) -> set[tuple[str, int]]:
        """Count records; return the partitions that end, also with offsets that hold no record."""
        ended = set()
        for message in messages:
            error = message.error()
            if error is None:
                if not self.records:
                    self._first_s = now_s
                self.records += 1
                self._bytes += len(message) + len(message.key() or b"")
                self._ended_s = now_s
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add((str(message.topic()), int(message.partition() or 0)))
            elif error.fatal() or not error.retriable():
                raise library_failure(error, f"topic {message.topic()}" if message.topic() else "cannot consume")
        return ended

    def figures(self) -> Consumed:
        all_s, fetch_s = self._ended_s - self._began_s, self._ended_s - self._first_s
        size = self._bytes / MEBI
        return Consumed(
            round(size, 4),
            _per_second(size, all_s) or 0.0,
            self.records,
            _per_second(self.records, all_s) or 0.0,
            round((self._first_s - self._began_s) * 1000, 1),
            round(fetch_s * 1000, 1),
            _per_second(size, fetch_s),
            _per_second(self.records, fetch_s),
        )


def _per_second(count: float, seconds: float) -> float | None:
    return round(count / seconds, 4) if seconds > 0 else None


class RoundTrips:
    """Records that go to a topic and back, one at a time.

    Args:
        ends: the end of each partition now.
        timeout_s: how long one record may take.
    """

    def __init__(
        self,
        producer: Producer,
        consumer: Consumer,
        ends: Mapping[tuple[str, int], int],
        *,
        records: int,
        size: int,
        timeout_s: float,
    ) -> None:
        self._producer = producer
        self._consumer = consumer
        self._ends = ends
        self.records = records
        self._size = size
        self._timeout_s = timeout_s
        self._run = random.Random().randbytes(8)
        self._latencies = Latencies()

    def __repr__(self) -> str:
        return f"<RoundTrips done={self.done} records={self.records}>"

    @property
    def done(self) -> int:
        return len(self._latencies)

    def line(self) -> str:
        """Return the progress in words."""
        return f"{self.done:,} records, Avg latency: {self._latencies.average_s() * 1000:.4f} ms"

    def run(self) -> None:
        """Send and read each record.

        Raises:
            Failure: a record is not acknowledged, or does not come back in time.
        """
        self._consumer.assign([TopicPartition(*where, end) for where, end in self._ends.items()])
        partitions = list(self._ends)
        # Connections and first requests are not counted.
        for number in range(-len(partitions), self.records):
            seconds = self._round(partitions[number % len(partitions)], number)
            if number >= 0:
                self._latencies.add(seconds)

    def _round(self, where: tuple[str, int], number: int) -> float:
        """Return the seconds that a record took."""
        token = self._run + number.to_bytes(8, "big", signed=True)
        failed: list[KafkaError | None] = []
        began_s = time.perf_counter()
        topic, partition = where
        self._producer.produce(
            topic, token.ljust(self._size, b"."), partition=partition, on_delivery=lambda error, _: failed.append(error)
        )
        while time.perf_counter() - began_s < self._timeout_s:
            message = self._consumer.poll(0.1)
            now_s = time.perf_counter()
            if message is not None and message.error() is None and (message.value() or b"")[:16] == token:
                self._producer.poll(0)
                return now_s - began_s
            self._producer.poll(0)
            if failed and (error := failed[0]) is not None:
                raise library_failure(error, f"topic {topic}")
        raise Failure(
            f"record {number + 1} did not come back from topic {topic} within {self._timeout_s:g} s",
            "check the brokers; --timeout-ms waits longer",
        )

    def figures(self) -> Summary:
        return self._latencies.summary()
