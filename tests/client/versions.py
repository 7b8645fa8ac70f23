"""Requests in every version: each must fit the one that is negotiated."""

from typing import Any

from barnabas.client.cluster_metadata import TopicPartition
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.client.scripted_broker import MemoryCluster

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def every_version(request_class: Any, lowest: int | None = None, highest: int | None = None) -> list[int]:
    low = request_class.MIN_VERSION if lowest is None else lowest
    return list(range(low, (request_class.MAX_VERSION if highest is None else highest) + 1))


def only(memory: MemoryCluster, request_class: Any, version: int) -> None:
    memory.versions = {**memory.versions, request_class.API_KEY: (0, version)}


def error_code(outcome: object) -> ErrorCode:
    assert isinstance(outcome, KafkaError)
    return outcome.code
