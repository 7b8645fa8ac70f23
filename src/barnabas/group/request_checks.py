"""Checks that the requests of several group types share."""

from __future__ import annotations

from barnabas.protocol.errors import ErrorCode, KafkaError


def invalid_request(message: str) -> KafkaError:
    """The error of a request that no group could accept."""
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def check_not_blank(text: str | None, name: str) -> None:
    """Reject an empty field; None is accepted. Raises: KafkaError INVALID_REQUEST."""
    if text is not None and not text.strip():
        raise invalid_request(f"{name} can't be empty.")
