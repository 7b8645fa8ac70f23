"""ShareFetch (API key 78, versions 1-2): acquire records for a member of a share group, and apply its acknowledgements.

- The response has the acquired records with their offsets and delivery counts; the record batches may hold other records, which the client
  skips. At most max_records are acquired, rounded up to whole batches unless acquire mode is 1 (record_limit).
- The request waits up to max_wait_ms for min_bytes; released records and expired locks end the wait like new records.
- Share sessions as in `share.sessions`. Without a free slot the broker returns SHARE_SESSION_LIMIT_REACHED after max_wait_ms,
  so that the client does not spin. Epoch 0 with acknowledgements gets INVALID_REQUEST. The last request (epoch -1) acquires nothing and
  releases the records that the member still holds.
- Each partition of the response has an error and message for the acknowledgements too.
- A request that renews locks acquires nothing; its limits must be 0, else it gets INVALID_REQUEST.
- The group's share.isolation.level decides whether records of open and aborted transactions are delivered.

Version notes: 1 KIP-932 (0 was early access), 2 acquire mode (KIP-1206) and renew (KIP-1222).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.api.authorization.asker import Asker
from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.share_requests import (
    RENEW_VERSION,
    acknowledge,
    check_group,
    check_member,
    check_share_groups_enabled,
    lead_hints,
    read_acknowledgements,
)
from barnabas.api.serving.throttling import fetch_bytes_limit
from barnabas.metadata.topics_image import TopicImage
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ShareFetchRequest, ShareFetchResponse
from barnabas.replication.fetch_session_cache import FINAL_EPOCH, INITIAL_EPOCH, next_epoch
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.share.fetch import ShareFetchParams
from barnabas.share.sessions import ShareSession, TopicPartitionId
from barnabas.share.share_partition_manager import AcknowledgeAnswer, FetchAnswer
from barnabas.steps import observe, sleep, start
from barnabas.turns import ELEMENT, pace

__all__ = ["handle"]

RECORD_LIMIT = 1

_Data = ShareFetchResponse.PartitionData
_Topic = ShareFetchResponse.ShareFetchableTopicResponse


async def handle(context: RequestContext, request: ShareFetchRequest) -> ShareFetchResponse:
    """Apply the acknowledgements, then acquire."""
    check_share_groups_enabled(context)
    check_group(context, request.group_id)
    group_id, member_id = check_member(request.group_id, request.member_id)
    is_renew = context.version >= RENEW_VERSION and request.is_renew_ack
    if is_renew:
        _check_renewal(request)
    services = context.services
    manager = services.share.partitions
    try:
        session = await _session(context, request, group_id, member_id)
    except KafkaError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            await sleep(max(request.max_wait_ms, 0) / 1000, services.loop)
        raise
    epoch = request.share_session_epoch
    acknowledged = await read_acknowledgements(context, request.topics, is_renew=is_renew, only_with_batches=True)
    acknowledging = start(acknowledge(context, group_id, member_id, acknowledged), services.loop)
    observe(acknowledging)  # The fetch may fail, or its client leave, before it is awaited.
    fetched: FetchAnswer = {}
    if not is_renew and epoch != FINAL_EPOCH:
        max_bytes = min(request.max_bytes, services.config.fetch_max_bytes, fetch_bytes_limit(context))
        params = ShareFetchParams(
            group_id=group_id,
            member_id=member_id,
            max_wait_ms=request.max_wait_ms,
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            max_records=request.max_records,
            batch_size=request.batch_size,
            strict=request.share_acquire_mode == RECORD_LIMIT,
            isolation_level=manager.settings.isolation_level(group_id),
        )
        rejected: FetchAnswer = {}
        wanted = await _wanted(services.image().topics.by_id, session, rejected, context.asker)
        fetched = {**await manager.fetch(params, wanted, epoch), **rejected}
    outcome = await acknowledging
    response = await _response(context, group_id, session, epoch, fetched, outcome)
    if epoch == FINAL_EPOCH and manager.sessions.get(group_id, member_id) is session:
        manager.release_session(group_id, member_id)
    return response


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


async def _session(context: RequestContext, request: ShareFetchRequest, group_id: str, member_id: str) -> ShareSession:
    """Return the session that the request opens, continues or ends.

    Raises:
        KafkaError: as `share.sessions`, and INVALID_REQUEST.
    """
    sessions = context.services.share.partitions.sessions
    epoch = request.share_session_epoch
    by_id = context.services.image().topics.by_id
    is_new = epoch == INITIAL_EPOCH
    if is_new:
        for topic in request.topics:
            await pace(ELEMENT)
            for partition in topic.partitions:
                await pace(ELEMENT)
                if partition.acknowledgement_batches:
                    raise KafkaError(ErrorCode.INVALID_REQUEST)
        connection = context.connection
        session = sessions.open(group_id, member_id, (), connection.connection_id)
        connection.when_closed(sessions.connection_closed)
    else:
        session = sessions.advance(group_id, member_id, epoch)
    if epoch != FINAL_EPOCH:
        for topic in request.topics:
            await pace(ELEMENT)
            topic_id, name = bytes(topic.topic_id), _name(by_id, topic.topic_id)
            for partition in topic.partitions:
                await pace(ELEMENT)
                partition_id = TopicPartitionId(topic_id, partition.partition_index)
                session.add(partition_id, name, must_answer=not is_new)
    if not is_new and epoch != FINAL_EPOCH:
        for forgotten in request.forgotten_topics_data:
            await pace(ELEMENT)
            for index in forgotten.partitions:
                await pace(ELEMENT)
                session.partitions.pop(TopicPartitionId(bytes(forgotten.topic_id), index), None)
    return session


def _name(by_id: Mapping[bytes, TopicImage], topic_id: bytes) -> str | None:
    topic = by_id.get(topic_id)
    return None if topic is None else topic.name


async def _wanted(
    by_id: Mapping[bytes, TopicImage], session: ShareSession, rejected: FetchAnswer, asker: Asker | None
) -> list[TopicPartitionId]:
    """Return the session's partitions that exist; put an error for each other one into `rejected`."""
    wanted = []
    for partition_id, shared in list(session.partitions.items()):
        await pace(ELEMENT)
        topic = by_id.get(partition_id.topic_id)
        if shared.topic is None:
            rejected[partition_id] = _rejected(partition_id, ErrorCode.UNKNOWN_TOPIC_ID)
        elif asker is not None and not asker.may(AclOperation.READ, ResourceType.TOPIC, shared.topic):
            rejected[partition_id] = _rejected(partition_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif topic is None or partition_id.partition not in topic.partitions:
            rejected[partition_id] = _rejected(partition_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            wanted.append(partition_id)
    return wanted


def _rejected(partition_id: TopicPartitionId, error: ErrorCode) -> _Data:
    return _Data(partition_index=partition_id.partition, error_code=int(error), records=b"")


async def _response(
    context: RequestContext,
    group_id: str,
    session: ShareSession,
    epoch: int,
    fetched: FetchAnswer,
    acknowledged: AcknowledgeAnswer,
) -> ShareFetchResponse:
    """Return one response from both halves."""
    if epoch > INITIAL_EPOCH:
        # The session may have had another request while this one waited.
        if session.epoch != next_epoch(epoch):
            return ShareFetchResponse(error_code=ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        fetched, read = {}, fetched
        for partition_id, data in read.items():
            await pace(ELEMENT)
            has_records, has_error = bool(data.acquired_records), bool(data.error_code)
            if session.note_answered(partition_id, has_records=has_records, has_error=has_error):
                fetched[partition_id] = data
    for partition_id, error in acknowledged.items():
        await pace(ELEMENT)
        data = fetched.setdefault(partition_id, _Data(partition_index=partition_id.partition, records=b""))
        if error is not None:
            data.acknowledge_error_code = int(error.code)
            data.acknowledge_error_message = error.message
    response = ShareFetchResponse(
        acquisition_lock_timeout_ms=context.services.share.partitions.settings.lock_duration_ms(group_id),
        responses=await _grouped(fetched.items()),
    )
    await lead_hints(context, fetched.items(), response)
    return response


async def _grouped(answered: Iterable[tuple[TopicPartitionId, _Data]]) -> list[_Topic]:
    topics: dict[bytes, _Topic] = {}
    for partition_id, data in answered:
        await pace(ELEMENT)
        topics.setdefault(partition_id.topic_id, _Topic(topic_id=partition_id.topic_id)).partitions.append(data)
    return list(topics.values())
