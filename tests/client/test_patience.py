"""Requests that are repeated until a deadline, on a virtual clock."""

from __future__ import annotations

import pytest

from barnabas.client.cluster import Cluster
from barnabas.client.errors import BrokerNotAvailable
from barnabas.client.patience import insist, is_retriable
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Answers:
    """Raises its errors one after the other, then returns."""

    def __init__(self, *errors: KafkaError) -> None:
        self.errors = list(errors)
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cluster(clock: Clock) -> Cluster:
    return Cluster("h:1", clock=clock, sleep=clock.sleep)


def test_a_broker_that_is_away_is_asked_until_it_is_back(cluster, clock):
    answers = Answers(*[BrokerNotAvailable("cannot reach h:1")] * 20)
    assert insist(cluster, answers, 60_000) == "done"
    assert 10 < clock.now < 20


def test_the_last_error_when_the_time_is_over(cluster, clock):
    answers = Answers(*[error_for(ErrorCode.NOT_COORDINATOR)] * 99)
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        insist(cluster, answers, 5_000)
    assert 4 < clock.now <= 5


def test_a_final_error_at_once(cluster):
    answers = Answers(error_for(ErrorCode.PRODUCER_FENCED))
    with pytest.raises(KafkaError, match="PRODUCER_FENCED"):
        insist(cluster, answers, 5_000)
    assert answers.asked == 1


def test_a_missing_topic_is_asked_for_a_few_times(cluster, clock):
    answers = Answers(*[error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)] * 99)
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        insist(cluster, answers, 60_000)
    assert answers.asked == 6
    assert clock.now < 1


@pytest.mark.parametrize(("code", "forgets"), [("NOT_COORDINATOR", True), ("CONCURRENT_TRANSACTIONS", False)])
def test_a_coordinator_that_moved_is_forgotten_and_a_busy_one_is_not(cluster, monkeypatch, code, forgets):
    forgotten: list[str] = []
    monkeypatch.setattr(cluster, "forget", lambda: forgotten.append(code))
    insist(cluster, Answers(error_for(ErrorCode[code])), 60_000)
    assert bool(forgotten) == forgets


def test_an_error_is_retriable_by_its_code_or_because_no_broker_was_reached() -> None:
    assert is_retriable(KafkaError(ErrorCode.NETWORK_EXCEPTION))
    assert is_retriable(BrokerNotAvailable("cannot reach h:9092"))
    assert not is_retriable(KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
