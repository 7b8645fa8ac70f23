"""What all coordinators of a cluster know of producers, or that not all of them have said so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DescribeTransactionsResponse, ListTransactionsResponse
from barnabas.protocol.partition_for import partition_for
from barnabas.steps import start
from barnabas.transaction.coordinator_survey import CoordinatorSurvey, KnownTransaction
from barnabas.transaction.transaction_state import TransactionState
from tests.coordinator.other_brokers import OtherBrokers, Sent
from tests.transaction.one_coordinator import Subject as OneCoordinator

NODE = 1
_State = DescribeTransactionsResponse.TransactionState


class Subject:
    """A broker that coordinates one partition of `__transaction_state`; broker 2 coordinates the others."""

    def __init__(self, *others: int) -> None:
        self.own = OneCoordinator()
        self.loop = self.own.loop
        self.brokers = OtherBrokers(self.loop)
        self.leaders = {index: (leader, 5) for index, leader in enumerate((NODE, *others))}
        self.survey = CoordinatorSurvey(NODE, self.own.coordinator, lambda: self.leaders, self.brokers.send, self.loop)

    def ask(self, *producer_ids: int) -> asyncio.Future[dict[int, KnownTransaction]]:
        asked = start(self.survey.known(producer_ids), self.loop)
        self.loop.run_ready()
        return asked

    def describe(self, sent: Sent, *found: _State, code: ErrorCode = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND) -> None:
        """Answer with what is found, and with a code for every other id."""
        known = {each.transactional_id: each for each in found}
        states = [
            known.get(name) or _State(transactional_id=name, error_code=code) for name in sent.message.transactional_ids
        ]
        self.brokers.answer(sent, DescribeTransactionsResponse(transaction_states=states))

    def list(self, sent: Sent, *names: str, code: ErrorCode = ErrorCode.NONE) -> None:
        listed = [
            ListTransactionsResponse.TransactionState(transactional_id=name, producer_id=9, transaction_state="Ongoing")
            for name in names
        ]
        self.brokers.answer(sent, ListTransactionsResponse(error_code=code, transaction_states=listed))


def ongoing(name: str) -> _State:
    return _State(
        transactional_id=name,
        transaction_state="Ongoing",
        transaction_timeout_ms=60_000,
        producer_id=9,
        producer_epoch=3,
        topics=[DescribeTransactionsResponse.TopicData(topic="t", partitions=[0, 1])],
    )


def code_of(asked: asyncio.Future[Any]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        asked.result()
    return caught.value.code


def test_this_brokers_own_coordinator_is_asked_on_the_spot() -> None:
    subject = Subject()
    producer_id, epoch = subject.own.begin()
    known = subject.ask(producer_id, 77).result()
    expected = KnownTransaction("tx", producer_id, epoch, TransactionState.ONGOING, 60_000, frozenset({("t", 0)}))
    assert known == {producer_id: expected}
    assert subject.brokers.sent == []


def test_another_broker_is_asked_before_and_after_whether_it_has_all_its_partitions() -> None:
    subject = Subject(2, 2)
    asked = subject.ask(9)
    first = subject.brokers.take()
    probes = first.message.transactional_ids
    assert [partition_for(name, 3) for name in probes] == [1, 2]
    subject.describe(first)
    listing = subject.brokers.take()
    assert (listing.broker_id, listing.message.producer_id_filters) == (2, [9])
    subject.list(listing, "theirs")
    again = subject.brokers.take()
    assert again.message.transactional_ids == ["theirs", *probes]
    subject.describe(again, ongoing("theirs"))
    expected = KnownTransaction("theirs", 9, 3, TransactionState.ONGOING, 60_000, frozenset({("t", 0), ("t", 1)}))
    assert asked.result() == {9: expected}


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_broker_that_may_not_know_all_makes_it_fail(code: ErrorCode, when: str) -> None:
    subject = Subject(2)
    asked = subject.ask(9)
    if when == "after":
        subject.describe(subject.brokers.take())
        subject.list(subject.brokers.take())
    subject.describe(subject.brokers.take(), code=code)
    assert code_of(asked) is code


def test_a_list_that_fails_or_a_lost_answer_makes_it_fail() -> None:
    subject = Subject(2)
    asked = subject.ask(9)
    subject.describe(subject.brokers.take())
    subject.list(subject.brokers.take(), code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert code_of(asked) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    asked = subject.ask(9)
    subject.brokers.lose(subject.brokers.take())
    assert code_of(asked) is ErrorCode.NETWORK_EXCEPTION


def test_a_found_id_that_cannot_be_described_makes_it_fail() -> None:
    subject = Subject(2)
    asked = subject.ask(9)
    subject.describe(subject.brokers.take())
    subject.list(subject.brokers.take(), "gone")
    subject.describe(subject.brokers.take())
    assert code_of(asked) is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_a_partition_without_a_leader_or_one_that_moves_makes_it_fail() -> None:
    subject = Subject(-1)
    assert code_of(subject.ask(9)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    subject = Subject(2)
    asked = subject.ask(9)
    subject.describe(subject.brokers.take())
    subject.leaders[1] = (2, 6)
    subject.list(subject.brokers.take())
    subject.describe(subject.brokers.take())
    assert code_of(asked) is ErrorCode.NOT_COORDINATOR
