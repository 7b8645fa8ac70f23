"""Codes and the exceptions that carry them."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import (
    RETRIABLE,
    STALE_METADATA,
    EncodeError,
    ErrorCode,
    FrameTooLarge,
    KafkaError,
    MalformedMessage,
    RetriableError,
    StaleMetadataError,
    UnsupportedVersionField,
    error_for,
    known_code,
)


def test_every_code_from_minus_one_to_136() -> None:
    assert [int(code) for code in ErrorCode] == list(range(-1, 137))


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (3, "UNKNOWN_TOPIC_OR_PARTITION"),
        (35, "UNSUPPORTED_VERSION"),
        (100, "UNKNOWN_TOPIC_ID"),
        (129, "REBOOTSTRAP_REQUIRED"),
        (133, "SHARE_SESSION_LIMIT_REACHED"),
        (136, "CONTROLLER_ID_NOT_REGISTERED"),
    ],
)
def test_names(code: int, name: str) -> None:
    assert ErrorCode(code).name == name


def test_error_for_says_whether_to_try_again() -> None:
    assert type(error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER)) is StaleMetadataError
    assert type(error_for(ErrorCode.NOT_ENOUGH_REPLICAS)) is RetriableError
    assert type(error_for(ErrorCode.TOPIC_ALREADY_EXISTS)) is KafkaError
    assert RETRIABLE > STALE_METADATA
    for code in ErrorCode:
        if code is not ErrorCode.NONE:
            error = error_for(code)
            assert isinstance(error, RetriableError) == code.retriable == (code in RETRIABLE)
            assert isinstance(error, StaleMetadataError) == (code in STALE_METADATA)
            assert error.code is code
    with pytest.raises(AssertionError):
        error_for(0)


def test_a_message_is_the_clients_only_if_it_is_made_for_the_client() -> None:
    assert KafkaError(ErrorCode.CORRUPT_MESSAGE, "m").client_message is None
    assert KafkaError(ErrorCode.CORRUPT_MESSAGE, "m", for_client=True).client_message == "m"
    assert error_for(3, "m").client_message is None


def test_messages() -> None:
    assert error_for(3).message == "Unknown topic or partition."
    assert error_for(3, "").message == ""
    assert str(error_for(3, "no t")) == "UNKNOWN_TOPIC_OR_PARTITION: no t"


def test_a_code_of_a_later_release() -> None:
    assert known_code(3000) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert error_for(3000).code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_the_codec_s_own() -> None:
    assert MalformedMessage("x").code is ErrorCode.INVALID_REQUEST
    assert isinstance(FrameTooLarge("x"), MalformedMessage)
    assert EncodeError("x").code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert UnsupportedVersionField("x").code is ErrorCode.UNSUPPORTED_VERSION
