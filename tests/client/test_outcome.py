"""An outcome is a result or an error; `result` and `results` tell them apart."""

import pytest

from barnabas.client.outcome import outcome_of, result, results
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for

FAILED = error_for(ErrorCode.INVALID_CONFIG)


def test_a_result_is_returned_and_an_error_raised() -> None:
    assert result(5) == 5
    assert results({"a": 1, "b": 2}) == {"a": 1, "b": 2}
    with pytest.raises(KafkaError):
        result(FAILED)
    with pytest.raises(KafkaError):
        results({"a": 1, "b": FAILED})


def test_fields_of_a_response_become_an_error_with_their_message() -> None:
    assert outcome_of(0, "no error") is None
    assert str(outcome_of(ErrorCode.INVALID_CONFIG, "no such setting")) == "INVALID_CONFIG: no such setting"
    # An empty message is no message: Kafka's own sentence for the code takes its place.
    error = outcome_of(ErrorCode.INVALID_CONFIG, "")
    assert error is not None
    assert error.message
