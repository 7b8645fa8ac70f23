"""What the next request of a fetch session is, after each kind of answer."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FetchResponse
from barnabas.replication.fetch_session_handler import FetchSessionHandler
from tests.replication.hosting import topic_id

ID = topic_id(1)
SAID: Any = "what was said"


def response(*indexes: int, session_id: int = 7, error: int = 0) -> FetchResponse:
    found = [FetchResponse.PartitionData(partition_index=index) for index in indexes]
    topics = [FetchResponse.FetchableTopicResponse(topic_id=ID, partitions=found)]
    return FetchResponse(session_id=session_id, error_code=error, responses=topics)


def name(handler: FetchSessionHandler, *indexes: int, forget: tuple[int, ...] = ()) -> None:
    handler.name({(ID, index): SAID for index in indexes}, [(ID, index) for index in forget])


@pytest.fixture
def opened() -> FetchSessionHandler:
    handler = FetchSessionHandler()
    name(handler, 0, 1)
    assert handler.accept(response(0, 1))
    return handler


def test_a_session_goes_on(opened: FetchSessionHandler) -> None:
    assert repr(opened) == "<FetchSessionHandler id=7 epoch=1 partitions=2>"
    name(opened, 2, forget=(0,))
    assert [index for _, index in opened.requested] == [1, 2]
    assert opened.accept(response(1))
    assert (opened.session_id, opened.epoch, opened.is_full) == (7, 2, False)


def test_the_leader_may_have_no_slot() -> None:
    handler = FetchSessionHandler()
    name(handler, 0)
    assert handler.accept(response(0, session_id=0))
    assert (handler.session_id, handler.epoch) == (0, 0)


@pytest.mark.parametrize(
    ("code", "session_id"),
    [(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0), (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 7)],
)
def test_after_an_error_a_full_request_follows(opened: FetchSessionHandler, code: ErrorCode, session_id: int) -> None:
    assert not opened.accept(response(error=int(code), session_id=0))
    assert (opened.session_id, opened.epoch, opened.requested) == (session_id, 0, {})


def test_a_full_answer_has_all_partitions_of_the_request() -> None:
    handler = FetchSessionHandler()
    for indexes in ((0,), (0, 1, 2)):
        name(handler, 0, 1)
        assert not handler.accept(response(*indexes))
        assert handler.is_full


def test_an_incremental_answer_has_only_partitions_of_the_session(opened: FetchSessionHandler) -> None:
    assert not opened.accept(response(2))
    assert (opened.session_id, opened.epoch) == (7, 0)


def test_an_answer_of_another_session_is_not_used(opened: FetchSessionHandler) -> None:
    assert not opened.accept(response(1, session_id=8))
