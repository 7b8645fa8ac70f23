"""What the library's errors mean for an operation's outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from barnabas.verify import librdkafka_producer
from barnabas.verify.librdkafka_producer import LibrdkafkaProducer
from barnabas.verify.producers import Abortable, Refused, Unknown

RETRIABLE = KafkaException(KafkaError(KafkaError._TIMED_OUT, retriable=True))
ABORTABLE = KafkaException(KafkaError(KafkaError._STATE, txn_requires_abort=True))
FATAL = KafkaException(KafkaError(KafkaError._FENCED, fatal=True))


class ScriptedLibrary:
    """The library's producer; each call raises the next item of its script."""

    script: dict[str, list[Exception]]
    settings: dict[str, Any]
    unanswered = 0
    deliveries: list[KafkaError | None]

    def __init__(self, settings: dict[str, Any]) -> None:
        type(self).settings = settings
        self.pending: list[Callable[[Any, Any], None]] = []

    def _call(self, name: str) -> None:
        errors = self.script.get(name, [])
        if errors:
            raise errors.pop(0)

    def init_transactions(self, timeout: float) -> None:
        self._call("init")

    def begin_transaction(self) -> None:
        self._call("begin")

    def commit_transaction(self, timeout: float) -> None:
        self._call("commit")

    def abort_transaction(self, timeout: float) -> None:
        self._call("abort")

    def produce(self, topic: str, value: bytes, *, partition: int, on_delivery: Callable[[Any, Any], None]) -> None:
        self._call("produce")
        self.pending.append(on_delivery)

    def flush(self, timeout: float) -> int:
        for place, (delivered, error) in enumerate(zip(self.pending, self.deliveries, strict=False)):
            delivered(error, type("Message", (), {"offset": staticmethod(lambda place=place: 10 + place)}))
        return self.unanswered


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> type[ScriptedLibrary]:
    made = type("Library", (ScriptedLibrary,), {"script": {}, "deliveries": [None] * 9})
    monkeypatch.setattr(librdkafka_producer, "LibraryProducer", made)
    return made


def producer(transactional_id: str | None = "x", timeout_s: float = 30) -> LibrdkafkaProducer:
    return LibrdkafkaProducer("b:1", transactional_id, timeout_s=timeout_s, transaction_timeout_ms=10_000)


def test_a_retriable_error_is_retried(library: type[ScriptedLibrary]) -> None:
    library.script = {"init": [RETRIABLE, RETRIABLE], "commit": [RETRIABLE]}
    producer().commit()
    assert library.script == {"init": [], "commit": []}


def test_a_retriable_error_is_unknown_after_the_timeout(library: type[ScriptedLibrary]) -> None:
    library.script = {"commit": [RETRIABLE] * 3}
    with pytest.raises(Unknown, match="still failing after -1 s"):
        producer(timeout_s=-1).commit()


@pytest.mark.parametrize("error", [ABORTABLE, FATAL])
def test_a_failed_commit_is_unknown(library: type[ScriptedLibrary], error: Exception) -> None:
    library.script = {"commit": [error]}
    with pytest.raises(Unknown):
        producer().commit()


@pytest.mark.parametrize("call", ["init", "abort"])
def test_a_fatal_error_refuses(library: type[ScriptedLibrary], call: str) -> None:
    library.script = {call: [FATAL]}
    with pytest.raises(Refused):
        producer().abort()


def test_offsets_are_in_the_order_sent(library: type[ScriptedLibrary]) -> None:
    sending = producer(None)
    sending.send("t", 0, b"1")
    sending.send("t", 1, b"2")
    assert sending.flush() == [10, 11]


@pytest.mark.parametrize(("transactional_id", "raised"), [("x", Abortable), (None, Unknown)])
def test_an_undelivered_record(
    library: type[ScriptedLibrary], transactional_id: str | None, raised: type[Exception]
) -> None:
    library.deliveries = [None, KafkaError(KafkaError._MSG_TIMED_OUT)]
    sending = producer(transactional_id)
    sending.send("t", 0, b"1")
    sending.send("t", 0, b"2")
    with pytest.raises(raised):
        sending.flush()


def test_a_record_waits_no_longer_than_its_transaction(library: type[ScriptedLibrary]) -> None:
    producer()
    assert library.settings["message.timeout.ms"] == 10_000
    producer(None)
    assert library.settings["message.timeout.ms"] == 30_000
