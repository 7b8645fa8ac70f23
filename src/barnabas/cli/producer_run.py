"""Send records with librdkafka and count what was acknowledged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import click
from confluent_kafka import KafkaError as LibraryError
from confluent_kafka import KafkaException, Message, Producer

from barnabas.cli.failure import Failure
from barnabas.cli.librdkafka import client_settings, library_failure
from barnabas.cli.output import Table
from barnabas.cli.record_format import Given
from barnabas.cli.session import Session
from barnabas.protocol.errors import ErrorCode, KafkaError


class ProducerRun:
    """One producer from the first record to the last acknowledgement."""

    def __init__(self, session: Session, topic: str | None, extra: tuple[str, ...], options: dict[str, Any]) -> None:
        settings = {name: value for name, value in options.items() if value is not None}
        settings["message.timeout.ms"] = session.timeout_ms
        try:
            self._producer: Producer = Producer(client_settings(session, extra, settings))
        except KafkaException as error:
            raise Failure(error.args[0].str(), "-X takes librdkafka's names of settings") from None
        self._session = session
        self._topic = topic
        self._partitions: Counter[tuple[str, int]] = Counter()
        self._bytes = 0
        self._error: tuple[LibraryError, str] | None = None
        self._failed = 0

    @property
    def delivered(self) -> int:
        return self._partitions.total()

    def send_all(self, records: Iterator[Given]) -> None:
        """Pass records to the library until the input ends or an error occurs.

        Raises:
            ValueError: the input does not fit the format.
        """
        for record in records:
            if self._error is not None:
                return
            topic = self._topic or record.topic
            if topic is None:
                raise ValueError("a record names no topic")
            arguments: dict[str, Any] = {
                "key": record.key,
                "headers": record.headers or None,
                "on_delivery": self._done,
            }
            if record.partition is not None:
                arguments["partition"] = record.partition
            if record.timestamp is not None:
                arguments["timestamp"] = record.timestamp
            self._produce(topic, record.value, arguments)

    def _produce(self, topic: str, value: bytes | None, arguments: dict[str, Any]) -> None:
        while True:
            try:
                self._producer.produce(topic, value, **arguments)
            except BufferError:  # the library's queue is full: wait for acknowledgements
                self._producer.poll(0.1)
                continue
            except OverflowError:
                raise ValueError("the partition or timestamp of a record is out of range") from None
            except KafkaException as error:
                self._error = self._error or (error.args[0], topic)
                self._failed += 1
            self._producer.poll(0)
            return

    def _done(self, error: LibraryError | None, message: Message) -> None:
        if error is not None:
            self._failed += 1
            self._error = self._error or (error, str(message.topic()))
            return
        self._partitions[str(message.topic()), int(message.partition() or 0)] += 1
        self._bytes += len(message)

    def _explain_missing(self, topic: str) -> None:
        """Check whether the topic exists: the library waits for a missing topic and then reports a timeout.

        Raises:
            Failure: it does not exist.
        """
        try:
            with self._session.admin() as admin:
                found = admin.describe_topics([topic])[topic]
        except KafkaError:
            return
        if isinstance(found, KafkaError) and found.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise Failure(
                f"topic {topic} does not exist, and the broker did not create it: {self._failed} records were not produced",
                f"`barnabas topic create {topic}`; brokers create topics only with auto.create.topics.enable=true",
            )

    def finish(self) -> None:
        """Wait for the last acknowledgements."""
        self._producer.flush()

    def report(self) -> None:
        """Print what was produced.

        Raises:
            Failure: some records were not.
        """
        if self._error is not None:
            error, topic = self._error
            self._explain_missing(topic)
            lost = f"{self._failed} of {self._failed + self.delivered} records were not produced"
            raise library_failure(error, f"{lost}: topic {topic}")
        columns = ("TOPIC", "PARTITION", "RECORDS")
        table = Table(columns, [(*where, count) for where, count in sorted(self._partitions.items())])
        data = {"records": self.delivered, "value_bytes": self._bytes, "partitions": table.objects()}
        if self._session.output.is_json:
            self._session.output.show(data)
        else:
            where = ", ".join(
                f"{topic}-{partition}: {count}" for (topic, partition), count in sorted(self._partitions.items())
            )
            plural = "" if self.delivered == 1 else "s"
            click.echo(f"produced {self.delivered} record{plural}{f' ({where})' if where else ''}")
