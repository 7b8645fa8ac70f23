"""An idempotent producer in a thread, and all that was acknowledged to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from confluent_kafka import Producer

from tests.cluster.waiting import wait_for
from tests.cluster.way_in import way_in
from tests.cluster.worker import Worker

FLUSH_SECONDS = 120.0
QUICK = {
    "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "retry.backoff.ms": 20, "retry.backoff.max.ms": 200,
    "topic.metadata.refresh.interval.ms": 1000, "socket.connection.setup.timeout.ms": 3000, "log_level": 0,
}  # fmt: skip
"""A client's own pauses, shorter than its defaults."""


class Acknowledged(NamedTuple):
    """What a producer was told of one record."""

    partition: int
    number: int
    offset: int


class Load(Worker):
    """Sends numbers to the partitions of a topic in turn, with acks=all. A block that ends well waits until all are acknowledged.

    Args:
        library: settings of librdkafka that replace those of the run's own way in.

    Attributes:
        acknowledged: in the order in which it was told.
        failures: errors of records that were given up; a scenario expects none.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        partitions: int,
        per_second: int = 2000,
        library: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.topic, self.partitions = topic, partitions
        self.producer = Producer({
            "bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "acks": "all", "linger.ms": 2,
            "message.timeout.ms": 600_000, "request.timeout.ms": 5000, "queue.buffering.max.messages": 2000, **QUICK,
            **(way_in.library if library is None else library),
        })  # fmt: skip
        self.acknowledged: list[Acknowledged] = []
        self.failures: list[str] = []
        self.sent = 0
        self._pause = 20 / per_second

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failures.append(str(error))
        else:
            self.acknowledged.append(Acknowledged(message.partition(), int(message.value()), message.offset()))

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.producer.produce(
                    self.topic, str(self.sent), partition=self.sent % self.partitions, on_delivery=self._delivered
                )
                self.sent += 1
            except BufferError:
                self.producer.poll(0.01)
            if not self.sent % 20:
                self.producer.poll(self._pause)

    def __exit__(self, kind: object, *_: object) -> None:
        super().__exit__(kind)
        if kind is None:
            left = self.producer.flush(FLUSH_SECONDS)
            assert not left, f"{left} of {self.sent} records are not acknowledged"

    def await_more(self, count: int) -> None:
        """Wait until so many more records of each partition are acknowledged than now."""
        before = self._counts()

        def is_there() -> bool:
            assert not self.failures, f"the producer gave up: {self.failures[:3]}"
            return all(now >= then + count for now, then in zip(self._counts(), before, strict=True))

        wait_for(f"{count} more records of each partition of {self.topic} are acknowledged", is_there)

    def _counts(self) -> list[int]:
        # A copy of the list is one step for the interpreter; the thread appends meanwhile.
        told = [each.partition for each in list(self.acknowledged)]
        return [told.count(index) for index in range(self.partitions)]
