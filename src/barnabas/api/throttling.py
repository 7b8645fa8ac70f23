"""What a request costs its client's quotas, and how long the client must rest for it. Both planes.

A broker answers at once, says in `throttle_time_ms` how long the client shall rest, and does not read from the connection
until then (KIP-219). That holds in every version: clients too old to rest by themselves are held back by the silence.

    dispatch ──► `Accounting` in the context ──► handler ──► `settle` ──► throttle_time_ms, connection mutes

| request | costs |
|---|---|
| any | the time its handling took, in percent of a thread |
| Produce | and its size in bytes; with acks=0 only that |
| Fetch | and the size of its response; one that is over quota is answered empty, and costs no bytes |
| ShareFetch | and the size of the records that it gives; they are the member's, so they are given also over quota |
| CreateTopics, CreatePartitions, DeleteTopics | and the partitions it makes or removes, counted by the controller |
| between brokers | nothing |

The accounting exists only while some client has a quota, or while metrics are served; without either a request pays two looks
at an attribute.

Sources: Kafka's `RequestHandlerHelper`, `KafkaApis.handleProduceRequest`, `KafkaApis.handleFetchRequest`; KIP-13, KIP-124,
KIP-219, KIP-599.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages import FetchResponse
from barnabas.replication.fetch_session import grouped

if TYPE_CHECKING:
    from barnabas.api.context import RequestContext
    from barnabas.quota.quota_manager import MutationQuota
    from barnabas.replication.fetch_reader import FetchRead
    from barnabas.replication.fetch_session import FetchContext

__all__ = ["Accounting", "fetch_bytes_limit", "mutation_quota", "settle", "throttled_fetch"]

NANOS_TO_PERCENT = 100.0 / 1e9

# Requests of brokers among themselves; followers' fetches are recognised by their replica id.
_EXEMPT = frozenset(
    {
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    }
)
# From which version on a mutation that is over quota is refused, rather than carried out and paid for with a rest.
_STRICT_SINCE = {ApiKey.CREATE_TOPICS: 6, ApiKey.CREATE_PARTITIONS: 3, ApiKey.DELETE_TOPICS: 5}
# The size that Kafka's FetchResponse.sizeOf adds to the body.
_FETCH_SIZE_FIELD = 4


class Accounting:
    """One request's costs.

    Attributes:
        started_ns: when it was taken out of the connection's buffer.
        request_bytes: header and body.
        busy_ns: how long it kept the loop busy, up to its response.
        throttle_ms: how long its client shall rest from now on.
        mutation: what the controller counts with, for requests that create or delete partitions.
        is_settled: the handler has charged the request itself.
    """

    __slots__ = ("busy_ns", "is_settled", "mutation", "request_bytes", "started_ns", "throttle_ms")

    def __init__(self, started_ns: int, request_bytes: int) -> None:
        self.started_ns = started_ns
        self.request_bytes = request_bytes
        self.busy_ns = 0
        self.throttle_ms = 0
        self.mutation: MutationQuota | None = None
        self.is_settled = False


def user_name(principal: str) -> str:
    """The name that quotas know a principal by: without its type."""
    return principal.partition(":")[2]


def settle(context: RequestContext, request: Any, response: Any, now_ms: int) -> None:
    """Charge a request that is about to be answered, and tell its client how long to rest.

    Args:
        response: None for a Produce with acks=0.
    """
    accounting, services = context.accounting, context.services
    assert accounting is not None, "a request is charged that was never counted"
    key = context.api_key
    if accounting.is_settled or key in _EXEMPT:
        return
    quotas = services.quotas
    user, client_id = user_name(context.connection.principal), context.client_id
    throttle_ms = 0
    if key != ApiKey.PRODUCE or request.acks != 0:
        cost = accounting.busy_ns * NANOS_TO_PERCENT
        throttle_ms = quotas.request.record_and_throttle(user, client_id, cost, now_ms)
    by = quotas.request
    if key == ApiKey.PRODUCE:
        bytes_ms = quotas.produce.record_and_throttle(user, client_id, accounting.request_bytes, now_ms)
        if bytes_ms > throttle_ms:
            throttle_ms, by = bytes_ms, quotas.produce
    elif key == ApiKey.SHARE_FETCH:
        bytes_ms = quotas.fetch.record_and_throttle(user, client_id, _shared_bytes(response), now_ms)
        if bytes_ms > throttle_ms:
            throttle_ms, by = bytes_ms, quotas.fetch
    if throttle_ms:
        by.throttled(user, client_id, throttle_ms, now_ms)
    if accounting.mutation is not None:
        throttle_ms = max(throttle_ms, accounting.mutation.throttle_ms())
    if throttle_ms:
        accounting.throttle_ms = throttle_ms
        # A few responses, such as DescribeQuorum's, have no room for it; their client is held back by the silence alone.
        if hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = throttle_ms


def _shared_bytes(response: Any) -> int:
    """The records that a ShareFetch gives."""
    return sum(len(partition.records or b"") for topic in response.responses for partition in topic.partitions)


def fetch_bytes_limit(context: RequestContext) -> int:
    """The most bytes that one fetch may return: more would be over quota for certain, and never be delivered."""
    if not context.services.quotas.is_enabled:
        return 2**31 - 1
    return context.services.quotas.fetch.max_value_in_window(user_name(context.connection.principal), context.client_id)


def throttled_fetch(
    context: RequestContext, read: FetchRead, session: FetchContext, epoch: int
) -> FetchResponse | None:
    """Charge a consumer's fetch; the empty response that it gets if it is over quota, None if it is not."""
    accounting, services = context.accounting, context.services
    if accounting is None or not services.quotas.is_enabled:
        return None
    quotas, now_ms = services.quotas, services.now_ms()
    user, client_id = user_name(context.connection.principal), context.client_id
    accounting.is_settled = True
    accounting.busy_ns = accounting.busy_ns or services.monotonic_ns() - accounting.started_ns
    throttle_ms = quotas.request.record_and_throttle(user, client_id, accounting.busy_ns * NANOS_TO_PERCENT, now_ms)
    by = quotas.request
    if quotas.fetch.is_enabled:
        parts = FetchResponse(responses=grouped(read)).encode_parts(context.version)
        size = _FETCH_SIZE_FIELD + sum(len(part) if isinstance(part, bytearray) else part.size for part in parts)
        bytes_ms = quotas.fetch.record_and_throttle(user, client_id, size, now_ms)
        if bytes_ms > throttle_ms:
            throttle_ms, by = bytes_ms, quotas.fetch
        if throttle_ms:
            quotas.fetch.record(user, client_id, -size, now_ms)
    if not throttle_ms:
        return None
    by.throttled(user, client_id, throttle_ms, now_ms)
    accounting.throttle_ms = throttle_ms
    response = session.respond_empty(epoch)
    response.throttle_time_ms = throttle_ms
    return response


def mutation_quota(context: RequestContext) -> MutationQuota | None:
    """What the controller counts a request's partitions with; None when its client has no such quota."""
    accounting = context.accounting
    if accounting is None or not context.services.quotas.is_enabled:
        return None
    since = _STRICT_SINCE.get(ApiKey(context.api_key))
    accounting.mutation = context.services.quotas.controller_mutation.quota_for(
        user_name(context.connection.principal),
        context.client_id,
        is_strict=since is not None and context.version >= since,
    )
    return accounting.mutation
