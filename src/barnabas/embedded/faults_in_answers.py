"""The methods by which a test orders faults in the answers to clients: of `barnabas.Broker`, `barnabas.Cluster` and `simulation.Cluster`.

    cluster.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", times=2, topic="orders", client_id="shop")

All of them choose the requests by the same arguments, and return an `InjectedFault`.
"""

from __future__ import annotations

from typing import Any

from barnabas.embedded.fault_arguments import (
    api_key,
    checked_nth,
    checked_seconds,
    checked_times,
    checked_where,
    error_code,
)
from barnabas.embedded.fault_plan import EVERY_API, FaultKind, RequestFault, Where
from barnabas.embedded.fault_tickets import InjectedFault
from barnabas.protocol.api_keys import api as api_of
from barnabas.protocol.errors import ErrorCode

__all__ = ["FaultsInAnswers", "request_settings"]

__tracebackhide__ = True  # pytest's reports end at the caller's line


class FaultsInAnswers:
    """Faults in the answers to clients, the same for `barnabas.Broker` and `barnabas.Cluster`.

    Every method takes these arguments, and returns an `InjectedFault`:

    - api: Kafka's name, such as `Produce`, `Fetch`, `OffsetCommit`, or its key; for delays None means every API.
    - times: how many requests; None for all, until the fault is removed.
    - node: only requests to this node; a broker alone is node 1.
    - topic, partition: only requests that name them. A Fetch names every partition of its session.
    - client_id, group: only requests of this client, or that name this group. A Fetch names no group.
    - nth: the first of those requests that the fault meets, counted from 1; the ones before it are answered as usual.
    """

    def fail(
        self,
        api: str | int,
        error: str | int,
        times: int | None = 1,
        *,
        node: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        client_id: str | None = None,
        group: str | None = None,
        nth: int = 1,
    ) -> InjectedFault:
        """Let the next requests of an API fail: the node answers with the error, and carries nothing out.

        A request that names several topics or partitions gets the error for each of them.

        Args:
            error: Kafka's name, such as `NOT_LEADER_OR_FOLLOWER`, or its code.
        """
        where = checked_where(topic, partition, client_id, group)
        return self._fault(FaultKind.FAIL, api, times, node, where, nth, code=error_code(error))

    def drop_response_after_write(
        self,
        api: str | int = "Produce",
        times: int | None = 1,
        *,
        node: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        client_id: str | None = None,
        group: str | None = None,
        nth: int = 1,
    ) -> InjectedFault:
        """Let the answers to the next successful requests of an API be lost: each is carried out, and its connection closes."""
        where = checked_where(topic, partition, client_id, group)
        return self._fault(FaultKind.DROP_RESPONSE, api, times, node, where, nth)

    def drop_connection(
        self,
        api: str | int,
        times: int | None = 1,
        *,
        node: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        client_id: str | None = None,
        group: str | None = None,
        nth: int = 1,
    ) -> InjectedFault:
        """Close the connection instead of the next requests of an API; nothing is carried out."""
        where = checked_where(topic, partition, client_id, group)
        return self._fault(FaultKind.DROP_CONNECTION, api, times, node, where, nth)

    def delay_request(
        self,
        api: str | int | None,
        seconds: float,
        times: int | None = 1,
        *,
        node: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        client_id: str | None = None,
        group: str | None = None,
        nth: int = 1,
    ) -> InjectedFault:
        """Let the next requests of an API wait before they are carried out."""
        where = checked_where(topic, partition, client_id, group)
        return self._fault(FaultKind.DELAY_REQUEST, api, times, node, where, nth, seconds=seconds)

    def delay_response(
        self,
        api: str | int | None,
        seconds: float,
        times: int | None = 1,
        *,
        node: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        client_id: str | None = None,
        group: str | None = None,
        nth: int = 1,
    ) -> InjectedFault:
        """Let the responses to the next requests of an API wait; the requests are carried out."""
        where = checked_where(topic, partition, client_id, group)
        return self._fault(FaultKind.DELAY_RESPONSE, api, times, node, where, nth, seconds=seconds)

    def duplicate_response(
        self,
        api: str | int,
        times: int | None = 1,
        *,
        node: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        client_id: str | None = None,
        group: str | None = None,
        nth: int = 1,
    ) -> InjectedFault:
        """Send the responses to the next requests of an API twice, with the same correlation id."""
        where = checked_where(topic, partition, client_id, group)
        return self._fault(FaultKind.DUPLICATE_RESPONSE, api, times, node, where, nth)

    def _fault(
        self,
        kind: FaultKind,
        api: str | int | None,
        times: int | None,
        node: int | None,
        where: Where,
        nth: int,
        *,
        code: int = 0,
        seconds: float = 0.0,
    ) -> InjectedFault:
        key = EVERY_API if api is None else api_key(api)
        return self._inject(
            RequestFault(kind, key, where, code, checked_seconds(seconds), checked_times(times), checked_nth(nth)), node
        )

    def _inject(self, fault: RequestFault, node: int | None) -> InjectedFault:
        """Let a fault happen at a node; None for every node."""
        raise NotImplementedError


def request_settings(fault: RequestFault, node: int | None) -> dict[str, Any]:
    """Return what was ordered: the names and values, without those that say nothing."""
    found: dict[str, Any] = {"kind": str(fault.kind)}
    if fault.api_key != EVERY_API:
        found["api"] = api_of(fault.api_key).name
    if fault.kind is FaultKind.FAIL:
        found["error"] = ErrorCode(fault.error_code).name
    if fault.kind in (FaultKind.DELAY_REQUEST, FaultKind.DELAY_RESPONSE):
        found["seconds"] = fault.seconds
    found["times"] = None if fault.times < 0 else fault.times
    chosen = {"node": node, **fault.where._asdict(), "nth": None if fault.nth == 1 else fault.nth}
    return found | {name: value for name, value in chosen.items() if value is not None}
