"""The persister's five requests to share coordinators on other brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from barnabas.protocol.state_batches import StateBatch
from barnabas.share.persister import FIRST_BACKOFF_MS, StatePersister
from barnabas.share.remote_share_coordinator import ClusterShareCoordinator
from barnabas.share.share_coordinator_shard import StateSummary, StateWrite
from barnabas.share.state_records import SharePartitionKey
from barnabas.steps import start
from tests.coordinator.other_brokers import OtherBrokers, Sent
from tests.coordinator.virtual_loop import VirtualLoop
from tests.share.test_persister import STATE, SUMMARY, Coordinator

NODE = 1
TOPIC, OTHER = b"t" * 16, b"u" * 16
KEY = SharePartitionKey("g", TOPIC, 3)
BATCH = StateBatch(8, 9, 2, 1)
WRITE = StateWrite(4, 2, 7, 1, (BATCH,))

_RESPONSES: dict[type, tuple[type, Any]] = {
    InitializeShareGroupStateRequest: (
        InitializeShareGroupStateResponse,
        InitializeShareGroupStateResponse.InitializeStateResult,
    ),
    ReadShareGroupStateRequest: (ReadShareGroupStateResponse, ReadShareGroupStateResponse.ReadStateResult),
    WriteShareGroupStateRequest: (WriteShareGroupStateResponse, WriteShareGroupStateResponse.WriteStateResult),
    ReadShareGroupStateSummaryRequest: (
        ReadShareGroupStateSummaryResponse,
        ReadShareGroupStateSummaryResponse.ReadStateSummaryResult,
    ),
    DeleteShareGroupStateRequest: (DeleteShareGroupStateResponse, DeleteShareGroupStateResponse.DeleteStateResult),
}

Call = Callable[[StatePersister], Coroutine[Any, Any, Any]]
CALLS: dict[str, Call] = {
    "initialize": lambda persister: persister.initialize(KEY, 5, -1),
    "read": lambda persister: persister.read(KEY, 2),
    "write": lambda persister: persister.write(KEY, WRITE),
    "summary": lambda persister: persister.summary(KEY),
    "delete": lambda persister: persister.delete(KEY),
}


class Subject:
    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.brokers = OtherBrokers(self.loop)
        self.local = Coordinator()
        self.leader = 2
        self.coordinator = ClusterShareCoordinator(
            self.local, NODE, lambda key: self.leader, self.brokers.send, self.loop
        )
        self.persister = StatePersister(self.coordinator, self.loop, lambda: True, self._create)

    async def _create(self) -> None:
        raise AssertionError("the topic is there")

    def call(self, call: Call) -> asyncio.Future[Any]:
        return start(call(self.persister), self.loop)

    def answer(self, sent: Sent, **fields: Any) -> None:
        """Answer each share partition with these fields."""
        kind, topic_result = _RESPONSES[type(sent.message)]
        response: Any = kind()
        for topic in sent.message.topics:
            parts = [response.PartitionResult(partition=part.partition, **fields) for part in topic.partitions]
            response.results.append(topic_result(topic_id=topic.topic_id, partitions=parts))
        self.brokers.answer(sent, response)


def part(sent: Sent) -> Any:
    """The only share partition of a request."""
    (topic,) = sent.message.topics
    (asked,) = topic.partitions
    assert (sent.message.group_id, bytes(topic.topic_id), asked.partition) == KEY
    return asked


@pytest.mark.parametrize("name", CALLS)
def test_this_brokers_own_coordinator_needs_no_request(name: str) -> None:
    subject = Subject()
    subject.leader = NODE
    found = subject.call(CALLS[name]).result()
    assert found == {"read": STATE, "summary": SUMMARY}.get(name)
    assert len(subject.local.calls) == 1
    assert subject.brokers.sent == []


def test_initialize() -> None:
    subject = Subject()
    done = subject.call(CALLS["initialize"])
    sent = subject.brokers.take()
    assert (sent.broker_id, part(sent).state_epoch, part(sent).start_offset) == (2, 5, -1)
    subject.answer(sent)
    assert done.result() is None


def test_read() -> None:
    subject = Subject()
    found = subject.call(CALLS["read"])
    sent = subject.brokers.take()
    assert part(sent).leader_epoch == 2
    batches = [ReadShareGroupStateResponse.StateBatch(**BATCH._asdict())]
    subject.answer(sent, state_epoch=4, start_offset=7, state_batches=batches)
    state = found.result()
    assert (state.state_epoch, state.leader_epoch, state.start_offset, state.state_batches) == (4, 2, 7, (BATCH,))


def test_write() -> None:
    subject = Subject()
    done = subject.call(CALLS["write"])
    sent = subject.brokers.take()
    asked = part(sent)
    assert (asked.state_epoch, asked.leader_epoch, asked.start_offset, asked.delivery_complete_count) == WRITE[:4]
    (batch,) = asked.state_batches
    assert (batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count) == BATCH
    subject.answer(sent)
    assert done.result() is None


def test_summary() -> None:
    subject = Subject()
    found = subject.call(CALLS["summary"])
    sent = subject.brokers.take()
    part(sent)
    subject.answer(sent, state_epoch=4, leader_epoch=2, start_offset=7, delivery_complete_count=1)
    assert found.result() == StateSummary(4, 2, 7, 1)


def test_delete() -> None:
    subject = Subject()
    done = subject.call(CALLS["delete"])
    sent = subject.brokers.take()
    part(sent)
    subject.answer(sent)
    assert done.result() is None


@pytest.mark.parametrize("name", CALLS)
def test_an_error_of_the_coordinator_is_the_callers(name: str) -> None:
    subject = Subject()
    failed = subject.call(CALLS[name])
    sent = subject.brokers.take()
    subject.answer(sent, error_code=ErrorCode.FENCED_STATE_EPOCH, error_message="too old")
    error = failed.exception()
    assert isinstance(error, KafkaError)
    assert (error.code, error.message) == (ErrorCode.FENCED_STATE_EPOCH, "too old")


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, None],
)
@pytest.mark.parametrize("name", CALLS)
def test_a_coordinator_that_cannot_answer_now_is_asked_again(name: str, code: ErrorCode | None) -> None:
    subject = Subject()
    done = subject.call(CALLS[name])
    sent = subject.brokers.take()
    if code is None:
        subject.brokers.lose(sent)
    else:
        subject.answer(sent, error_code=code)
    assert not done.done()
    subject.leader = 3
    subject.loop.advance(FIRST_BACKOFF_MS)
    again = subject.brokers.take()
    assert again.broker_id == 3, "the coordinator has moved"
    subject.answer(again)
    assert done.exception() is None


def test_a_coordinator_that_moves_here_is_asked_without_waiting_for_the_old_one() -> None:
    subject = Subject()
    done = subject.call(CALLS["write"])
    held = subject.brokers.take()
    subject.leader = NODE
    subject.coordinator.reroute()
    subject.loop.advance(FIRST_BACKOFF_MS)
    assert done.result() is None
    assert subject.local.calls == [(KEY, WRITE)]
    subject.brokers.lose(held)


def test_a_request_is_about_one_group() -> None:
    subject = Subject()
    keys = [KEY, SharePartitionKey("h", TOPIC, 3), SharePartitionKey("g", OTHER, 0), SharePartitionKey("g", TOPIC, 4)]
    done = [subject.call(lambda persister, key=key: persister.delete(key)) for key in keys]  # type: ignore[misc]
    for group, topics in (("g", [(TOPIC, [3, 4]), (OTHER, [0])]), ("h", [(TOPIC, [3])])):
        sent = subject.brokers.take()
        assert sent.message.group_id == group
        named = [
            (bytes(topic.topic_id), [each.partition for each in topic.partitions]) for topic in sent.message.topics
        ]
        assert named == topics
        subject.answer(sent)
    assert all(each.result() is None for each in done)


def test_kinds_of_requests_do_not_wait_for_each_other() -> None:
    subject = Subject()
    for call in CALLS.values():
        subject.call(call)
    assert len({type(subject.brokers.take().message) for _ in CALLS}) == len(CALLS)
    subject.coordinator.close()
    subject.loop.run_ready()
    assert "ClusterShareCoordinator" in repr(subject.coordinator)


def test_a_share_partition_that_the_answer_leaves_out_has_failed() -> None:
    subject = Subject()
    failed = subject.call(CALLS["delete"])
    subject.brokers.answer(subject.brokers.take(), DeleteShareGroupStateResponse())
    error = failed.exception()
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
