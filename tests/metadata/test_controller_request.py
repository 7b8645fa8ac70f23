"""Until when a request may begin and must end."""

from __future__ import annotations

import pytest

from barnabas.metadata.controller_request import ControllerRequest
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.metadata.controller_harness import Settled


def asked(deadline_ms: int | None, expires_ms: int) -> ControllerRequest:
    body = messages.CreateTopicsRequest()
    return ControllerRequest(19, 7, body, deadline_ms, expires_ms, None, False, Settled())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("deadline_ms", "expires_ms", "is_late"), [(None, 5, False), (None, 4, True), (4, 9, True), (5, 9, False)]
)
def test_a_request_is_late_after_either_of_its_times(deadline_ms: int | None, expires_ms: int, is_late: bool) -> None:
    request = asked(deadline_ms, expires_ms)
    assert request.is_late(5) is is_late
    request.fail_if_late(5)
    assert request.future.done() is is_late
    if is_late:
        error = request.future.exception()
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.REQUEST_TIMED_OUT


def test_a_request_that_is_answered_does_not_fail() -> None:
    request = asked(None, 0)
    request.future.set_result(None)
    request.fail(ValueError("late"))
    assert request.future.result() is None
