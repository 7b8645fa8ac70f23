"""Transactions that a broker rejects: sent again, given up, or left to the group's other members."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
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


class Leader(Scripted):
    """A producer whose records get the offsets 10, 11, …, in the order of their production."""

    def produce(self, *_: object, on_delivery: Callable[[object, object], None] | None = None, **__: object) -> None:
        offset = 10 + self.calls.count("produce")
        self.__getattr__("produce")()
        if on_delivery is not None:
            on_delivery(None, SimpleNamespace(offset=lambda: offset))


def placed(producer: Leader, notes: Callable[[list[int]], list[Output]] | None = None) -> list[str]:
    forwarder = Forwarder(producer)  # type: ignore[arg-type]
    forwarder.send_placed([Output("bills", b"v"), Output("bills", b"w")], notes or note)
    return producer.calls


def note(offsets: list[int]) -> list[Output]:
    return [Output("notes", repr(offsets).encode())]


def test_notes_know_the_offsets_of_the_records() -> None:
    seen = []

    def notes(offsets: list[int]) -> list[Output]:
        seen.append(list(offsets))
        return note(offsets)

    assert placed(Leader(), notes) == ["init", "begin", "produce", "produce", "flush", "produce", "commit"]
    assert seen == [[10, 11]]


def test_a_repeated_transaction_has_new_notes() -> None:
    seen = []

    def notes(offsets: list[int]) -> list[Output]:
        seen.append(list(offsets))
        return []

    once = ["begin", "produce", "produce", "flush"]
    fails = Leader(("commit_transaction", abortable(KafkaError.INVALID_PRODUCER_EPOCH)))
    assert placed(fails, notes) == ["init", *once, "commit", *ABORT, *once, "commit"]
    assert seen == [[10, 11], [12, 13]]


def test_a_record_that_is_not_acknowledged_is_sent_again() -> None:
    """A producer that never acknowledges: the transaction is given up after five times."""
    forwarder = Forwarder(Scripted())  # type: ignore[arg-type]
    with pytest.raises(KafkaException) as failure:
        forwarder.send_placed([Output("bills", b"v")], note)
    assert failure.value.args[0].code() == KafkaError._TIMED_OUT


def test_notes_that_raise_abort_the_transaction() -> None:
    def notes(offsets: list[int]) -> list[Output]:
        raise ValueError("another topic")

    producer = Leader()
    with pytest.raises(ValueError, match="another topic"):
        placed(producer, notes)
    assert producer.calls[-2:] == ABORT


def test_a_new_partition_is_looked_for() -> None:
    unknown = KafkaError(KafkaError._UNKNOWN_PARTITION)
    calls = sent(Scripted(("produce", unknown)))
    assert calls == ["init", "begin", "produce", "list_topics", "poll", "produce", "send_offsets_to", "commit"]
