"""Answers about several things at once: a result or an error for each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from barnabas.client.cluster import Cluster
from barnabas.protocol.errors import KafkaError, error_for

T = TypeVar("T")
K = TypeVar("K")


def result(outcome: T | KafkaError) -> T:
    """Returns a result; raises an error."""
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


def results(outcomes: Mapping[K, T | KafkaError]) -> dict[K, T]:
    """Returns all results; raises the first error."""
    return {key: result(outcome) for key, outcome in outcomes.items()}


def outcome_of(error_code: int, message: str | None = None) -> KafkaError | None:
    """The error of a response's fields, None when there is none."""
    return error_for(error_code, message or None) if error_code else None


class AdminPart:
    """What the parts of Admin share: the cluster they ask."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def _to_controller(self, items: list[K]) -> dict[K, int | KafkaError]:
        return dict.fromkeys(items, self.cluster.controller())
