"""The costs of a request, charged to its client's quotas, and the client's throttle time.

A broker responds immediately, with the client's pause in `throttle_time_ms`, and does not read from the connection until then (KIP-219).
That holds in every version: it slows down clients that are too old to pause by themselves.

    dispatch ──► `Accounting` in the context ──► handler ──► `settle` ──► throttle_time_ms, connection muted

| request | costs |
|---|---|
| any | the time of its handling, in percent of a thread |
| Produce | plus its size in bytes; with acks=0 only that |
| Fetch | plus the size of its response; over quota the response is empty and costs no bytes |
| ShareFetch | plus the size of its records; the member has acquired them, so it gets them over quota too |
| CreateTopics, CreatePartitions, DeleteTopics | plus the partitions it creates or deletes, counted by the controller |
| between nodes | nothing |

The accounting exists only while a client has a quota or metrics are served; without both a request pays for two attribute reads.

Sources: Kafka's `RequestHandlerHelper`, `KafkaApis.handleProduceRequest`, `KafkaApis.handleFetchRequest`; KIP-13, KIP-124,
KIP-219, KIP-599.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages import FetchResponse
from barnabas.replication.fetch_session_cache import grouped

if TYPE_CHECKING:
    from barnabas.api.serving.context import AnyContext, RequestContext
    from barnabas.protocol.primitives import RecordSlice
    from barnabas.quota.quota_manager import MutationQuota
    from barnabas.replication.fetch_reader import Reading
    from barnabas.replication.fetch_session_cache import FetchContext

__all__ = ["fetch_bytes_limit", "mutation_quota", "settle", "throttled_fetch"]

NANOS_TO_PERCENT = 100.0 / 1e9

# Requests between nodes; `fetch` recognises followers by their replica id, and `peer_requests` exempts what the quorum's nodes send.
# The request in an envelope is charged by itself.
_EXEMPT = frozenset(
    {
        ApiKey.ENVELOPE,
        ApiKey.ALTER_PARTITION,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    }
)
# The first version in which a mutation over quota is rejected; in earlier ones it is done and the client is throttled.
_STRICT_SINCE = {ApiKey.CREATE_TOPICS: 6, ApiKey.CREATE_PARTITIONS: 3, ApiKey.DELETE_TOPICS: 5}
# The size that Kafka's FetchResponse.sizeOf adds to the body.
_FETCH_SIZE_FIELD = 4


def settle(context: AnyContext, request: Any, response: Any, now_ms: int) -> None:
    """Charge a request whose response is about to leave, and set the response's throttle time.

    Args:
        response: None for a Produce with acks=0.
    """
    accounting, services = context.accounting, context.services
    assert accounting is not None, "the request has no accounting"
    key = context.api_key
    if accounting.is_settled or key in _EXEMPT:
        return
    quotas = services.quotas
    user, client_id = context.connection.principal.name, context.client_id
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
        # A controller on another node counts the mutations itself, and its response has the throttle time.
        throttle_ms = max(throttle_ms, accounting.mutation.throttle_ms(), getattr(response, "throttle_time_ms", 0))
    if throttle_ms:
        accounting.throttle_ms = throttle_ms
        # A few responses, such as DescribeQuorum's, have no field for it; then only the muted connection slows the client.
        if hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = throttle_ms


def _shared_bytes(response: Any) -> int:
    """Return the size of a ShareFetch response's records."""
    return sum(len(partition.records or b"") for topic in response.responses for partition in topic.partitions)


def fetch_bytes_limit(context: RequestContext) -> int:
    """Return the most bytes that one fetch may return: more would always be over quota, and never be delivered."""
    if not context.services.quotas.is_enabled:
        return 2**31 - 1
    return context.services.quotas.fetch.max_value_in_window(context.connection.principal.name, context.client_id)


async def throttled_fetch(
    context: RequestContext, read: Reading, session: FetchContext, epoch: int
) -> FetchResponse | None:
    """Charge a consumer's fetch; return the empty response if it is over quota, None if it is not."""
    accounting, services = context.accounting, context.services
    if accounting is None or not services.quotas.is_enabled:
        return None
    quotas, now_ms = services.quotas, services.now_ms()
    user, client_id = context.connection.principal.name, context.client_id
    accounting.is_settled = True
    accounting.busy_ns = accounting.busy_ns or services.monotonic_ns() - accounting.started_ns
    throttle_ms = quotas.request.record_and_throttle(user, client_id, accounting.busy_ns * NANOS_TO_PERCENT, now_ms)
    by = quotas.request
    if quotas.fetch.is_enabled:
        run = services.loop.run_in_executor
        measure = partial(_response_parts, read, context.version)
        parts = await run(None, measure) if context.is_long else measure()
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


def _response_parts(read: Reading, version: int) -> list[bytearray | RecordSlice]:
    return FetchResponse(responses=grouped(read)).encode_parts(version)


def mutation_quota(context: AnyContext) -> MutationQuota | None:
    """Return the quota that the controller charges with partitions, None if no client has quotas."""
    accounting = context.accounting
    if accounting is None or not context.services.quotas.is_enabled:
        return None
    since = _STRICT_SINCE.get(ApiKey(context.api_key))
    accounting.mutation = context.services.quotas.controller_mutation.quota_for(
        context.connection.principal.name,
        context.client_id,
        is_strict=since is not None and context.version >= since,
    )
    return accounting.mutation
