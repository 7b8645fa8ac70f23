"""Queues of requests to other brokers: batches, one request at a time, moved leaders, lost answers."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import pytest

from barnabas.coordinator.request_queues import ITEMS_PER_REQUEST, RequestQueues
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.steps import start
from tests.coordinator.virtual_loop import VirtualLoop


class Item(NamedTuple):
    name: str
    company: str = ""


class Names:
    """Items are names; a response is a list of outcomes."""

    moved = ErrorCode.NOT_LEADER_OR_FOLLOWER
    lost = ErrorCode.NETWORK_EXCEPTION

    def __init__(self) -> None:
        self.leaders: dict[str, int] = {}

    def broker_of(self, item: Item) -> int:
        return self.leaders.get(item.name, 2)

    def subject(self, item: Item) -> Hashable:
        return item.name

    def company(self, item: Item) -> Hashable:
        return item.company

    def request(self, items: Sequence[Item]) -> Any:
        if any(item.name == "broken" for item in items):
            raise ZeroDivisionError
        return [item.name for item in items]

    def outcomes(self, items: Sequence[Item], response: Any) -> list[Any]:
        if isinstance(response, KafkaError):
            raise response
        return [KafkaError(response) if isinstance(response, ErrorCode) else f"{item.name}!" for item in items]


class Subject:
    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.kind = Names()
        self.requests: list[tuple[int, list[str], asyncio.Future[Any]]] = []
        self.queues: RequestQueues[Item, str] = RequestQueues(self.kind, self.send, self.loop)  # type: ignore[arg-type]

    async def send(self, broker_id: int, message: Any) -> Any:
        self.requests.append((broker_id, message, self.loop.create_future()))
        return await self.requests[-1][2]

    def ask(self, name: str, company: str = "") -> asyncio.Future[str]:
        return start(self.queues.ask(Item(name, company)), self.loop)

    def answer(self, number: int, response: Any = ErrorCode.NONE) -> None:
        future = self.requests[number][2]
        if isinstance(response, Exception):
            future.set_exception(response)
        else:
            future.set_result("fine" if response is ErrorCode.NONE else response)
        self.loop.run_ready()

    @property
    def sent(self) -> list[tuple[int, list[str]]]:
        self.loop.run_ready()
        return [(broker_id, names) for broker_id, names, _ in self.requests]


def code(asked: asyncio.Future[str]) -> ErrorCode:
    loop = asked.get_loop()
    assert isinstance(loop, VirtualLoop)
    loop.run_ready()
    error = asked.exception()
    assert isinstance(error, KafkaError), error
    return error.code


def test_what_is_asked_in_one_turn_travels_together() -> None:
    subject = Subject()
    asked = [subject.ask(name) for name in "abc"]
    assert subject.requests == [], "not before the turn ends"
    assert subject.sent == [(2, ["a", "b", "c"])]
    assert repr(subject.queues) == "<RequestQueues Names brokers=[2] unanswered=3>"
    subject.answer(0)
    assert [one.result() for one in asked] == ["a!", "b!", "c!"]
    assert repr(subject.queues) == "<RequestQueues Names brokers=[] unanswered=0>"


def test_one_request_is_under_way_to_each_broker() -> None:
    subject = Subject()
    subject.kind.leaders["x"] = 3
    subject.ask("a")
    assert subject.sent == [(2, ["a"])]
    subject.ask("b")
    subject.ask("x")
    subject.ask("c")
    assert subject.sent == [(2, ["a"]), (3, ["x"])]
    subject.answer(0)
    assert subject.sent == [(2, ["a"]), (3, ["x"]), (2, ["b", "c"])]


def test_a_subject_is_named_once_in_a_request() -> None:
    subject = Subject()
    first, second, other = subject.ask("a"), subject.ask("a"), subject.ask("b")
    assert subject.sent == [(2, ["a", "b"])]
    subject.answer(0)
    assert (first.done(), other.done(), second.done()) == (True, True, False)
    assert subject.sent[1:] == [(2, ["a"])]
    subject.answer(1)
    assert second.result() == "a!"


def test_items_share_a_request_with_their_company() -> None:
    subject = Subject()
    for name, company in (("a", "g"), ("b", "h"), ("c", "g"), ("d", "h")):
        subject.ask(name, company)
    assert subject.sent == [(2, ["a", "c"])]
    subject.answer(0)
    assert subject.sent[1:] == [(2, ["b", "d"])]


def test_a_request_has_a_largest_size() -> None:
    subject = Subject()
    for number in range(ITEMS_PER_REQUEST + 1):
        subject.ask(str(number))
    assert len(subject.sent[0][1]) == ITEMS_PER_REQUEST
    subject.answer(0)
    assert subject.sent[1] == (2, [str(ITEMS_PER_REQUEST)])


def test_an_item_without_a_broker_fails_at_once() -> None:
    subject = Subject()
    subject.kind.leaders["a"] = -1
    assert code(subject.ask("a")) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert subject.sent == []


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (KafkaError(ErrorCode.REQUEST_TIMED_OUT), ErrorCode.NETWORK_EXCEPTION),
        (KafkaError(ErrorCode.UNSUPPORTED_VERSION), ErrorCode.NETWORK_EXCEPTION),
        (ZeroDivisionError(), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_failure_reaches_everybody_who_asked(answer: Any, expected: ErrorCode) -> None:
    subject = Subject()
    asked = [subject.ask("a"), subject.ask("b")]
    assert len(subject.sent) == 1
    later = subject.ask("c")
    subject.answer(0, answer)
    assert [code(one) for one in asked] == [expected] * 2
    subject.answer(1)
    assert later.result() == "c!", "the queue goes on"


def test_an_error_of_a_whole_response_is_the_outcome_of_all() -> None:
    subject = Subject()
    asked = subject.ask("a")
    assert len(subject.sent) == 1
    subject.requests[0][2].set_result(KafkaError(ErrorCode.INVALID_TXN_STATE))
    subject.loop.run_ready()
    assert code(asked) is ErrorCode.INVALID_TXN_STATE


def test_a_request_that_cannot_be_made_fails_its_items() -> None:
    subject = Subject()
    asked = subject.ask("broken")
    assert subject.sent == []
    assert code(asked) is ErrorCode.UNKNOWN_SERVER_ERROR
    subject.ask("a")
    assert subject.sent == [(2, ["a"])]


def test_items_whose_leader_moves_fail_at_once_wherever_they_are() -> None:
    subject = Subject()
    moved_under_way, under_way = subject.ask("a"), subject.ask("b")
    assert subject.sent == [(2, ["a", "b"])]
    moved_waiting, waiting = subject.ask("c"), subject.ask("d")
    subject.kind.leaders |= {"a": 3, "c": 3}
    subject.queues.reroute()
    assert (code(moved_under_way), code(moved_waiting)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER,) * 2
    again = subject.ask("a")
    assert subject.sent[1:] == [(3, ["a"])], "the new leader need not wait for the old one's answer"
    subject.answer(0)
    assert under_way.result() == "b!"
    assert subject.sent[2:] == [(2, ["d"])], "what moved is not sent to the old leader"
    subject.answer(2)
    subject.answer(1)
    assert (waiting.result(), again.result()) == ("d!", "a!")


def test_dropped_items_are_not_sent() -> None:
    subject = Subject()
    under_way = subject.ask("a")
    assert subject.sent == [(2, ["a"])]
    waiting, kept = subject.ask("b"), subject.ask("c")
    subject.queues.drop(lambda item: item.name in "ab")
    assert (code(under_way), code(waiting)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER,) * 2
    subject.answer(0)
    assert subject.sent[1:] == [(2, ["c"])]
    subject.queues.close()
    assert code(kept) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    subject.answer(1)


def test_an_item_that_nobody_waits_for_is_not_sent() -> None:
    subject = Subject()
    subject.ask("a")
    assert len(subject.sent) == 1
    waiting = subject.ask("b")
    waiting.cancel()
    subject.answer(0)
    assert subject.sent == [(2, ["a"])]
    assert waiting.cancelled()
