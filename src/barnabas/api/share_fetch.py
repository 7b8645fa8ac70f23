"""ShareFetch (78): acquire records for a member of a share group, and take acknowledgements along. Data plane.

Versions: 1-2. Flexible from 1.

Behaviour:

- Records acquired are given with their offsets and delivery counts; the record batches sent may hold others, which the client skips. At
  most max_records, rounded up to whole batches, or strictly so with acquire mode 1 (record_limit).
- Waits up to max_wait_ms for min_bytes; released records and locks that run out end the wait as new records do.
- Share sessions as in `share.sessions`. Without a free slot the answer, SHARE_SESSION_LIMIT_REACHED, comes after max_wait_ms,
  so that the client does not spin. Epoch 0 with acknowledgements is INVALID_REQUEST. The last request (epoch -1) acquires nothing, and what
  the member still holds is released.
- Acknowledgements are answered in the same partitions, as error and message of their own.
- A request that renews locks acquires nothing; its limits must be 0, else INVALID_REQUEST.
- The group's share.isolation.level decides whether records of open and aborted transactions are given.

Version notes: 1 KIP-932 (0 was early access), 2 acquire mode (KIP-1206) and renew (KIP-1222).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from barnabas.api.context import RequestContext
from barnabas.api.share_requests import (
    RENEW_VERSION,
    acknowledge,
    check_member,
    check_share_groups_enabled,
    lead_hints,
    read_acknowledgements,
)
from barnabas.api.throttling import fetch_bytes_limit
from barnabas.coordinator.future_steps import gathered
from barnabas.metadata.topics_image import TopicImage
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ShareFetchRequest, ShareFetchResponse
from barnabas.replication.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, next_epoch
from barnabas.share.fetch import ShareFetchParams
from barnabas.share.sessions import ShareSession, TopicPartitionId
from barnabas.share.share_partition_manager import AcknowledgeAnswer, FetchAnswer

__all__ = ["handle"]

RECORD_LIMIT = 1

_Data = ShareFetchResponse.PartitionData
_Topic = ShareFetchResponse.ShareFetchableTopicResponse


def handle(context: RequestContext, request: ShareFetchRequest) -> asyncio.Future[ShareFetchResponse]:
    """Take the acknowledgements, then acquire."""
    check_share_groups_enabled(context)
    group_id, member_id = check_member(request.group_id, request.member_id)
    is_renew = context.version >= RENEW_VERSION and request.is_renew_ack
    if is_renew:
        _check_renewal(request)
    services = context.services
    try:
        session = _session(context, request, group_id, member_id)
    except KafkaError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            return _later(context, error, request.max_wait_ms)
        raise
    epoch = request.share_session_epoch
    acknowledged = read_acknowledgements(context, request.topics, is_renew=is_renew, only_with_batches=True)
    acknowledging = acknowledge(context, group_id, member_id, acknowledged)
    refused: FetchAnswer = {}
    if is_renew or epoch == FINAL_EPOCH:
        fetching: asyncio.Future[FetchAnswer] = services.loop.create_future()
        fetching.set_result({})
    else:
        max_bytes = min(request.max_bytes, services.config.fetch_max_bytes, fetch_bytes_limit(context))
        wanted = _wanted(services.image().topics.by_id, session, refused)
        params = ShareFetchParams(
            group_id=group_id,
            member_id=member_id,
            max_wait_ms=request.max_wait_ms,
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            max_records=request.max_records,
            batch_size=request.batch_size,
            strict=request.share_acquire_mode == RECORD_LIMIT,
            isolation_level=services.share.partitions.settings.isolation_level(group_id),
        )
        fetching = services.share.partitions.fetch(params, wanted, epoch)

    def respond(parts: list[FetchAnswer | AcknowledgeAnswer]) -> ShareFetchResponse:
        fetched, outcome = parts
        response = _response(context, group_id, session, epoch, {**fetched, **refused}, outcome)  # type: ignore[dict-item, arg-type]
        if epoch == FINAL_EPOCH and services.share.partitions.sessions.get(group_id, member_id) is session:
            services.share.partitions.release_session(group_id, member_id)
        return response

    both: list[asyncio.Future[FetchAnswer | AcknowledgeAnswer]] = [fetching, acknowledging]  # type: ignore[list-item]
    answer = gathered(services.loop, both, respond)
    if not fetching.done():
        # The connection may go away while the request waits: then nothing must be acquired.
        answer.add_done_callback(lambda done: fetching.cancel() if done.cancelled() else None)
    return answer


def _check_renewal(request: ShareFetchRequest) -> None:
    limits = {
        "maxBytes": request.max_bytes,
        "minBytes": request.min_bytes,
        "maxRecords": request.max_records,
        "maxWaitMs": request.max_wait_ms,
    }
    wrong = [f"{name} must be set to 0, " for name, value in limits.items() if value]
    if wrong:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "".join(wrong) + "if isRenewAck is true.")


def _session(context: RequestContext, request: ShareFetchRequest, group_id: str, member_id: str) -> ShareSession:
    """The session that the request opens, continues or ends.

    Raises:
        KafkaError: as `share.sessions`, and INVALID_REQUEST.
    """
    sessions = context.services.share.partitions.sessions
    epoch = request.share_session_epoch
    by_id = context.services.image().topics.by_id
    named = [
        (TopicPartitionId(bytes(topic.topic_id), partition.partition_index), _name(by_id, topic.topic_id))
        for topic in request.topics
        for partition in topic.partitions
    ]
    if epoch == INITIAL_EPOCH:
        if any(partition.acknowledgement_batches for topic in request.topics for partition in topic.partitions):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        connection = context.connection
        session = sessions.open(group_id, member_id, named, connection.connection_id)
        connection.when_closed(sessions.connection_closed)
        return session
    session = sessions.advance(group_id, member_id, epoch)
    if epoch != FINAL_EPOCH:
        for partition_id, name in named:
            session.add(partition_id, name, must_answer=True)
        for topic in request.forgotten_topics_data:
            for index in topic.partitions:
                session.partitions.pop(TopicPartitionId(bytes(topic.topic_id), index), None)
    return session


def _name(by_id: Mapping[bytes, TopicImage], topic_id: bytes) -> str | None:
    topic = by_id.get(topic_id)
    return None if topic is None else topic.name


def _wanted(by_id: Mapping[bytes, TopicImage], session: ShareSession, refused: FetchAnswer) -> list[TopicPartitionId]:
    """The session's partitions that exist; the others are refused."""
    wanted = []
    for partition_id, shared in session.partitions.items():
        topic = by_id.get(partition_id.topic_id)
        if shared.topic is None:
            refused[partition_id] = _refused(partition_id, ErrorCode.UNKNOWN_TOPIC_ID)
        elif topic is None or partition_id.partition not in topic.partitions:
            refused[partition_id] = _refused(partition_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            wanted.append(partition_id)
    return wanted


def _refused(partition_id: TopicPartitionId, error: ErrorCode) -> _Data:
    return _Data(partition_index=partition_id.partition, error_code=int(error), records=b"")


def _later(context: RequestContext, error: KafkaError, delay_ms: int) -> asyncio.Future[ShareFetchResponse]:
    """Fail after the time that the client would have waited."""
    loop = context.services.loop
    future: asyncio.Future[ShareFetchResponse] = loop.create_future()

    def fail() -> None:
        if not future.done():
            future.set_exception(error)

    timer = loop.call_later(max(delay_ms, 0) / 1000, fail)
    future.add_done_callback(lambda _: timer.cancel())
    return future


def _response(
    context: RequestContext,
    group_id: str,
    session: ShareSession,
    epoch: int,
    fetched: FetchAnswer,
    acknowledged: AcknowledgeAnswer,
) -> ShareFetchResponse:
    """Both halves in one answer."""
    if epoch > INITIAL_EPOCH:
        # Another request of this session may have come while this one waited.
        if session.epoch != next_epoch(epoch):
            return ShareFetchResponse(error_code=ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        fetched = {
            partition_id: data
            for partition_id, data in fetched.items()
            if session.note_answered(
                partition_id, has_records=bool(data.acquired_records), has_error=bool(data.error_code)
            )
        }
    for partition_id, error in acknowledged.items():
        data = fetched.setdefault(partition_id, _Data(partition_index=partition_id.partition, records=b""))
        if error is not None:
            data.acknowledge_error_code = int(error.code)
            data.acknowledge_error_message = error.message
    response = ShareFetchResponse(
        acquisition_lock_timeout_ms=context.services.share.partitions.settings.lock_duration_ms(group_id),
        responses=_grouped(fetched.items()),
    )
    lead_hints(context, fetched.items(), response)
    return response


def _grouped(answered: Iterable[tuple[TopicPartitionId, _Data]]) -> list[_Topic]:
    topics: dict[bytes, _Topic] = {}
    for partition_id, data in answered:
        topics.setdefault(partition_id.topic_id, _Topic(topic_id=partition_id.topic_id)).partitions.append(data)
    return list(topics.values())
