"""An expected error is one sentence for the user; an unexpected one keeps its traceback."""

from __future__ import annotations

import os

import pytest

from barnabas.client.errors import BrokerNotAvailable
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.spark.plain_errors import HIDE_TRACEBACK, QueryError, plain_errors
from barnabas.spark.source.data_loss import DataLoss


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (
            KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic t does not exist"),
            QueryError,
            "topic t does not exist",
        ),
        (BrokerNotAvailable("cannot reach h:1"), QueryError, "cannot reach h:1"),
        (ValueError("wrong option"), ValueError, "wrong option"),
        (DataLoss("gone"), DataLoss, "gone"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_an_expected_error_is_a_sentence(error, kind, message):
    with pytest.raises(kind, match=f"^{message}$") as caught, plain_errors():
        raise error
    assert caught.value.__cause__ is None
    assert os.environ[HIDE_TRACEBACK] == "1"


def test_a_message_that_is_only_the_codes_names_the_code():
    with pytest.raises(QueryError, match=r"\(TOPIC_AUTHORIZATION_FAILED\)$"), plain_errors():
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def test_an_unexpected_error_keeps_its_traceback():
    with pytest.raises(KeyError), plain_errors():
        raise KeyError("ours")
    assert HIDE_TRACEBACK not in os.environ


def test_a_user_may_keep_tracebacks(monkeypatch):
    monkeypatch.setenv(HIDE_TRACEBACK, "")
    with pytest.raises(ValueError, match="wrong"), plain_errors():
        raise ValueError("wrong")
    assert os.environ[HIDE_TRACEBACK] == ""
