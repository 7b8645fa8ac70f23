"""Answers about several things: a result or an error for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from barnabas.protocol.errors import KafkaError, error_for

T = TypeVar("T")
K = TypeVar("K")


def result(outcome: T | KafkaError) -> T:
    """Return a result; raise an error."""
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


def results(outcomes: Mapping[K, T | KafkaError]) -> dict[K, T]:
    """Return all results, or raise the first error."""
    return {key: result(outcome) for key, outcome in outcomes.items()}


def outcome_of(error_code: int, message: str | None = None) -> KafkaError | None:
    """Return the error that a response's fields name; None if they name none."""
    return error_for(error_code, message or None) if error_code else None
