"""Errors of the log in the words of coordinators."""

from __future__ import annotations

import pytest

from barnabas.coordinator.append_error import append_error, append_message
from barnabas.protocol.errors import ErrorCode, KafkaError

E = ErrorCode


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (E.UNKNOWN_TOPIC_OR_PARTITION, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_ENOUGH_REPLICAS, E.COORDINATOR_NOT_AVAILABLE),
        (E.REQUEST_TIMED_OUT, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_LEADER_OR_FOLLOWER, E.NOT_COORDINATOR),
        (E.KAFKA_STORAGE_ERROR, E.NOT_COORDINATOR),
        (E.MESSAGE_TOO_LARGE, E.UNKNOWN_SERVER_ERROR),
        (E.RECORD_LIST_TOO_LARGE, E.UNKNOWN_SERVER_ERROR),
        (E.ILLEGAL_GENERATION, E.ILLEGAL_GENERATION),
    ],
)
def test_append_error(error: ErrorCode, told: ErrorCode) -> None:
    assert append_error(KafkaError(error)) is told


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KafkaError(E.INVALID_REQUEST, "MemberEpoch is invalid."), "MemberEpoch is invalid."),
        (KafkaError(E.NOT_COORDINATOR), None),
        (KafkaError(E.KAFKA_STORAGE_ERROR, "the disk says no"), None),
    ],
)
def test_only_a_sentence_of_its_own_goes_along(error: KafkaError, said: str | None) -> None:
    assert append_message(error) == said
