"""The requests that a node has received from clients, for the assertions of a test.

    assert len(broker.requests("Produce", topic="orders")) == 1

The last `REQUESTS_MAX` are kept. Requests that brokers send each other are not among them.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from barnabas.embedded.fault_plan import EVERY_API, Where
from barnabas.embedded.request_subject import RequestSubject
from barnabas.protocol.api_keys import api

__all__ = ["REQUESTS_MAX", "ObservedRequest", "RequestLog"]

REQUESTS_MAX = 10_000
PARTITIONS_MAX = 1_000
"""Partitions that are noted of one request."""


class ObservedRequest(NamedTuple):
    """A request of a client.

    Attributes:
        api: Kafka's name of it, such as `Produce`.
        client_id: None if the client sent none.
        topics: the partitions by topic, of the first 1,000; none if the request names the topic alone.
        groups: their ids.
        transactional_id: None without one.
        node: that received it.
        time_ms: when, in epoch milliseconds of the node's own clock.
        faults: the ids of the faults that it met.
    """

    api: str
    version: int
    client_id: str | None
    topics: dict[str, list[int]]
    groups: list[str]
    transactional_id: str | None
    node: int
    time_ms: int
    faults: list[int]


class RequestLog:
    """The requests of one node.

    Args:
        node_id: of the node.
    """

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self._kept: deque[tuple[int, RequestSubject, ObservedRequest]] = deque(maxlen=REQUESTS_MAX)

    def __repr__(self) -> str:
        return f"<RequestLog of={self._node_id} requests={len(self._kept)}>"

    def add(
        self, api_key: int, version: int, client_id: str | None, subject: RequestSubject, time_ms: int
    ) -> list[int]:
        """Note a request; return the list of the faults that it meets, for the caller to fill."""
        topics = {topic: sorted(partitions) for topic, partitions in subject.topics.items()}
        faults: list[int] = []
        noted = ObservedRequest(
            api(api_key).name,
            version,
            client_id,
            topics,
            sorted(subject.groups),
            subject.transactional_id,
            self._node_id,
            time_ms,
            faults,
        )
        self._kept.append((api_key, subject, noted))
        return faults

    def found(self, api_key: int, where: Where) -> list[ObservedRequest]:
        """Return the requests of an API (`EVERY_API` for all) that name all of these, the oldest first."""
        return [
            noted
            for key, subject, noted in self._kept
            if api_key in (EVERY_API, key) and subject.meets(where, noted.client_id)
        ]

    def clear(self) -> None:
        self._kept.clear()
