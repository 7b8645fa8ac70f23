"""Fetch (API key 1, versions 4-18): read batches, and wait for them.

- Returns whole batches up to the high watermark. With isolation level 1 the last stable offset is the end, and the response lists the
  aborted transactions of the range. The first batch is returned even if it is larger than max_bytes (KIP-74).
- Waits up to max_wait_ms for min_bytes; an error in any partition ends the wait. Both byte limits are capped by fetch.max.bytes.
- `replication.fetch_session` explains fetch sessions.
- Records are sent as a slice of the segment's file; an empty partition has zero-length records, not null.
- OFFSET_OUT_OF_RANGE and the other errors have offsets -1, as in Kafka. There is no down-conversion (KIP-724).
- From version 11 on a consumer may read from any replica, up to the high watermark that this replica knows. With
  `replica.selector.class` a leader sends a consumer to a replica in its rack (KIP-392). A consumer that is ahead of a follower's log gets
  OFFSET_OUT_OF_RANGE there, and goes back to the leader.
- A follower reads up to the log end, and its fetch moves the high watermark. A node without a replica gets UNKNOWN_LEADER_EPOCH if it
  sent the current leader epoch, else NOT_LEADER_OR_FOLLOWER.

Version 4 adds the isolation level, 5 the log start offset, 7 sessions (KIP-227), 9 the leader epoch (KIP-320), 10 zstd (KIP-110; Kafka
4 returns zstd batches to older versions too), 11 the rack (KIP-392), 12 is flexible and adds diverging epochs (KIP-595), 13 topic ids
(KIP-516), 15 the replica state (KIP-903), 16 node endpoints (KIP-951), 17 directory ids (KIP-853), 18 the follower's high watermark
(KIP-1166).
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.api.serving.advertised import name_leaders
from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.throttling import fetch_bytes_limit, throttled_fetch
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import FetchRequest, FetchResponse
from barnabas.protocol.primitives import ZERO_UUID, Uuid
from barnabas.replication.fetch_reader import FetchParams, Reading
from barnabas.replication.fetch_session import FetchPartition
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.turns import ELEMENT, RECORD, is_long, pace

RACK_VERSION = 11
TOPIC_ID_VERSION = 13
REPLICA_STATE_VERSION = 15
NODE_ENDPOINTS_VERSION = 16


async def handle(context: RequestContext, request: FetchRequest) -> FetchResponse:
    """Respond as soon as there are enough bytes, an error, or no time to wait."""
    services = context.services
    version = context.version
    uses_topic_ids = version >= TOPIC_ID_VERSION
    replica_id, replica_epoch = request.replica_id, -1
    if version >= REPLICA_STATE_VERSION:
        replica_id, replica_epoch = request.replica_state.replica_id, request.replica_state.replica_epoch
    rack = _rack(context, request, replica_id)
    run = services.loop.run_in_executor
    session_epoch = request.session_epoch
    session = await services.fetch_sessions.context(
        request.session_id,
        session_epoch,
        await run(None, _wanted, context, request) if context.is_long else _wanted(context, request),
        await _forgotten(context, request) if request.forgotten_topics_data else (),
        uses_topic_ids=uses_topic_ids,
        is_follower=replica_id >= 0,
        now_ms=services.now_ms(),
    )
    if session.error:
        return await session.respond(None, session_epoch)
    max_bytes = min(request.max_bytes, services.config.fetch_max_bytes)
    accounting = context.accounting
    if accounting is not None:
        if replica_id >= 0:
            accounting.is_settled = True
        else:
            max_bytes = min(max_bytes, fetch_bytes_limit(context))
    may_read = _may_read(context, replica_id)
    if services.authorizer is not None and session.session is not None:
        # A denial reaches the partitions of the session that have nothing new, too.
        session.session.note_rights(services.authorizer.version)
    params = FetchParams(
        version,
        replica_id,
        request.max_wait_ms,
        min(request.min_bytes, max_bytes),
        max_bytes,
        request.isolation_level,
        session.session is not None,
        replica_epoch=replica_epoch,
        rack=rack,
        listener=context.connection.listener_name,
        may_read=may_read,
    )
    read = await services.replica_manager.fetches.fetch(params, session.partitions, session.session)
    # Few partitions were asked for, but many of the session have changed.
    context.is_long = context.is_long or is_long(len(read.results) * ELEMENT)
    if accounting is not None and replica_id < 0:
        throttled = await throttled_fetch(context, read, session, session_epoch)
        if throttled is not None:
            return throttled
    response = await session.respond(read, session_epoch)
    if read.bytes_read:
        if replica_id < 0:
            await _count_bytes_out(context, read)
        else:
            services.replica_manager.replicated(read)
    if read.must_respond and version >= NODE_ENDPOINTS_VERSION:
        await _point_to_leaders(context, read, response)
    return response


def _may_read(context: RequestContext, replica_id: int) -> Callable[[str | None], bool] | None:
    """Return what says whether the sender may read a topic; None if it may read everything."""
    asker = context.asker
    if asker is None:
        return None
    if replica_id >= 0:
        is_node = asker.may_cluster(AclOperation.CLUSTER_ACTION)
        return None if is_node else lambda topic: False

    def may_read(topic: str | None) -> bool:
        return topic is None or asker.may(AclOperation.READ, ResourceType.TOPIC, topic)

    return may_read


def _wanted(context: RequestContext, request: FetchRequest) -> list[FetchPartition]:
    """Return the partitions that a request names; any thread may call this."""
    uses_topic_ids = context.version >= TOPIC_ID_VERSION
    by_id = context.services.replica_manager.topics_by_id
    wanted = []
    for topic in request.topics:
        if uses_topic_ids:
            topic_id = Uuid(topic.topic_id)
            hosted = by_id.get(topic_id)
            name = None if hosted is None else hosted.name
        else:
            topic_id, name = ZERO_UUID, topic.topic
        for asked in topic.partitions:
            wanted.append(
                FetchPartition(
                    name,
                    topic_id,
                    asked.partition,
                    asked.fetch_offset,
                    asked.partition_max_bytes,
                    asked.current_leader_epoch,
                    asked.last_fetched_epoch,
                    asked.log_start_offset,
                )
            )
    return wanted


def _rack(context: RequestContext, request: FetchRequest, replica_id: int) -> str:
    """Return the rack of a consumer that this broker may send elsewhere; empty for others."""
    if replica_id >= 0 or context.version < RACK_VERSION or not context.services.replica_manager.names_replicas_by_rack:
        return ""
    return request.rack_id


async def _point_to_leaders(context: RequestContext, read: Reading, response: FetchResponse) -> None:
    """Name the leaders of the partitions that this broker does not lead; it need not have replicas of them (KIP-951)."""
    topics = context.services.image().topics
    leaders = set()
    for wanted, data in read.results:
        await pace(RECORD)
        if (
            data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            and wanted.partition is None
            and wanted.topic is not None
        ):
            found = topics.partition(wanted.topic, wanted.index)
            if found is not None:
                data.current_leader = FetchResponse.LeaderIdAndEpoch(
                    leader_id=found.leader, leader_epoch=found.leader_epoch
                )
        leaders.add(data.current_leader.leader_id)
    name_leaders(context, response, leaders)


async def _count_bytes_out(context: RequestContext, read: Reading) -> None:
    has_many = context.is_long
    for wanted, data in read.results:
        if has_many:
            await pace(RECORD)
        records = data.records
        # Records are a slice of the log; a partition without records has empty bytes.
        if records is not None and not isinstance(records, bytes | bytearray | memoryview):
            assert wanted.partition is not None, "records without a partition"
            wanted.partition.topic.traffic.bytes_out += records.size


async def _forgotten(context: RequestContext, request: FetchRequest) -> list[tuple[str | bytes, int]]:
    """Return the keys of the partitions that the session forgets."""
    has_many = context.is_long
    forgotten: list[tuple[str | bytes, int]] = []
    for topic in request.forgotten_topics_data:
        name = topic.topic_id if context.version >= TOPIC_ID_VERSION else topic.topic
        for index in topic.partitions:
            if has_many:
                await pace(RECORD)
            forgotten.append((name, index))
    return forgotten
