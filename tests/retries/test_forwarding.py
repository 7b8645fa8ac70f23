"""Transactions that a broker rejects: sent again, given up, or left to the group's other members."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from barnabas.retries.forwarding import Forwarder, GroupWentOn
from barnabas.retries.record import Output

POSITIONS = [TopicPartition("orders", 0, 5)]


class Scripted:
    """A producer whose calls fail as a script says.

    Args:
        failures: the name of a call and its error, in their order; each once.
    """

    def __init__(self, *failures: tuple[str, KafkaError]) -> None:
        self._failures = list(failures)
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(*_: object, **__: object) -> int:
            self.calls.append(name.removesuffix("_transaction").removesuffix("_transactions"))
            if self._failures and self._failures[0][0] == name:
                raise KafkaException(self._failures.pop(0)[1])
            return 0

        return call

    def __len__(self) -> int:
        return 0


def abortable(code: int) -> KafkaError:
    return KafkaError(code, txn_requires_abort=True)


def sent(producer: Scripted) -> list[str]:
    forwarder = Forwarder(producer)  # type: ignore[arg-type]
    forwarder.send([Output("bills", b"v")], POSITIONS, "group")
    return producer.calls


ONE = ["begin", "produce", "send_offsets_to", "commit"]
ABORT = ["flush", "abort"]


def test_records_and_positions_are_one_transaction() -> None:
    assert sent(Scripted()) == ["init", *ONE]


def test_a_call_that_may_be_repeated_is_repeated() -> None:
    late = KafkaError(KafkaError._TIMED_OUT, retriable=True)
    assert sent(Scripted(("commit_transaction", late))) == ["init", *ONE, "commit"]


def test_a_transaction_that_must_be_aborted_is_sent_again() -> None:
    producer = Scripted(("commit_transaction", abortable(KafkaError.NOT_ENOUGH_REPLICAS)))
    assert sent(producer) == ["init", *ONE, *ABORT, *ONE]


def test_a_transaction_that_fails_again_and_again_is_an_error() -> None:
    producer = Scripted(*[("commit_transaction", abortable(KafkaError.MSG_SIZE_TOO_LARGE))] * 9)
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        sent(producer)
    assert producer.calls == ["init", *[*ONE, *ABORT] * 5]


def test_a_group_that_went_on_gets_nothing() -> None:
    producer = Scripted(("send_offsets_to_transaction", abortable(KafkaError.ILLEGAL_GENERATION)))
    with pytest.raises(GroupWentOn):
        sent(producer)
    assert producer.calls == ["init", *ONE[:3], *ABORT]


def test_a_producer_that_was_fenced_ends() -> None:
    with pytest.raises(KafkaException, match="FENCED"):
        sent(Scripted(("commit_transaction", KafkaError(KafkaError._FENCED, fatal=True))))


def test_a_full_queue_is_emptied_first() -> None:
    class Full(Scripted):
        def produce(self, *_: object, **__: object) -> None:
            self.calls.append("produce")
            if self.calls.count("produce") == 1:
                raise BufferError

    assert sent(Full()) == ["init", "begin", "produce", "poll", "produce", "send_offsets_to", "commit"]
