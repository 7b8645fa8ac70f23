"""A fenced producer's code, by the version of its request."""

from __future__ import annotations

import pytest

from barnabas.api.serving.producer_errors import producer_error
from barnabas.protocol.errors import ErrorCode, KafkaError


@pytest.mark.parametrize(
    ("code", "version", "sent"),
    [
        (ErrorCode.PRODUCER_FENCED, 1, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.PRODUCER_FENCED, 2, ErrorCode.PRODUCER_FENCED),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 1, ErrorCode.CONCURRENT_TRANSACTIONS),
    ],
)
def test_only_a_fenced_producer_of_an_old_version_gets_another_code(
    code: ErrorCode, version: int, sent: ErrorCode
) -> None:
    assert producer_error(KafkaError(code), version, fenced_since=2) is sent
