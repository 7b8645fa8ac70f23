"""The delivery states of share partitions, read from the records that the share coordinator writes to `__share_group_state`.

    group, topic id, partition ──Java's hash──► a partition of `__share_group_state`

    ShareSnapshot   the whole state
    ShareUpdate     a change, joined with the state before it
    a snapshot without a value ends the state

Kafka has no request for this: its coordinator gives states to leaders alone. The records are those of Apache Kafka and of barnabas, so a
user who may read the topic sees the same on both. The last records of a partition are read first, and more of them until each state
begins with a snapshot: the log may be long, and a coordinator writes a snapshot after every 500 changes.

Limit: the log has what was written. A leader writes an acknowledgement, a release and the end of a lock, but no delivery.

Sources: KIP-932; Kafka classes `ShareCoordinatorShard`, `ShareGroupOffset`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicMetadata, TopicPartition
from barnabas.client.offsets import EARLIEST, LATEST, list_offsets
from barnabas.client.outcome import result
from barnabas.client.partition_records import records_between
from barnabas.client.topics import describe_topics
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.protocol.messages import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue
from barnabas.protocol.partition_for import partition_for, share_coordinator_key
from barnabas.protocol.state_batches import RecordState, StateBatch, combine
from barnabas.protocol.topic_names import SHARE_GROUP_STATE
from barnabas.records.record import Record

READ_FIRST = 5_000
"""So many offsets at the end of the log are read at first."""
READ_MAX = 500_000
"""No more offsets are read, a few seconds: the coordinator deletes records that no snapshot needs."""
_int16 = struct.Struct(">h")
_UNCHANGED = -1
_Value = TypeVar("_Value", ShareSnapshotValue, ShareUpdateValue)


class ShareState(NamedTuple):
    """A share partition's delivery state, as it was last written.

    Attributes:
        start_offset: the first offset that is not finished; -1 until a leader has decided where the group begins.
        batches: sorted, without overlaps, from the start offset on. What is in none was not acknowledged, released or timed out.
    """

    start_offset: int
    batches: tuple[StateBatch, ...] = ()

    def unfinished_between(self, begin: int, end: int) -> int:
        """Return how many offsets from one on, before another, may still be delivered."""
        begin = max(begin, self.start_offset)
        finished = sum(
            max(0, min(each.last_offset + 1, end) - max(each.first_offset, begin))
            for each in self.batches
            if RecordState(each.delivery_state).is_terminal
        )
        return max(0, end - begin - finished)


class StateFold:
    """Joins the records of one partition of the topic to states. Records before the last snapshot are forgotten undecoded.

    Args:
        wanted: by the name of a share partition, its group, topic id and partition.

    Attributes:
        open: the share partitions whose state has not begun with a snapshot yet.
    """

    def __init__(self, wanted: Mapping[TopicPartition, tuple[str, bytes, int]]) -> None:
        self.open = set(wanted)
        self._snapshots: dict[bytes, TopicPartition] = {}
        self._updates: dict[bytes, TopicPartition] = {}
        self._last: dict[TopicPartition, bytes] = {}
        self._since: dict[TopicPartition, list[bytes]] = {each: [] for each in wanted}
        for where, (group_id, topic_id, partition) in wanted.items():
            snapshot = ShareSnapshotKey(group_id=group_id, topic_id=topic_id, partition=partition)
            update = ShareUpdateKey(group_id=group_id, topic_id=topic_id, partition=partition)
            self._snapshots[_key(snapshot)], self._updates[_key(update)] = where, where

    def __repr__(self) -> str:
        return f"<StateFold snapshots={len(self._last)} open={len(self.open)}>"

    def feed(self, record: Record) -> None:
        """Take a record; one of another share partition changes nothing."""
        key = record.key or b""
        if (where := self._snapshots.get(key)) is not None:
            self.open.discard(where)
            self._since[where].clear()
            if record.value is None:
                self._last.pop(where, None)
            else:
                self._last[where] = record.value
        elif (where := self._updates.get(key)) is not None and record.value is not None:
            self._since[where].append(record.value)

    def states(self) -> dict[TopicPartition, ShareState]:
        """Return the states, without those that ended.

        Raises:
            KafkaError: UNSUPPORTED_VERSION, a record is of a newer broker; or it is malformed.
        """
        found = {}
        for where, values in self._since.items():
            start, batches = _UNCHANGED, []
            if (value := self._last.get(where)) is not None:
                snapshot = _decoded(ShareSnapshotValue, value)
                start, batches = snapshot.start_offset, _batches(snapshot)
            elif not values:
                continue
            for value in values:
                update = _decoded(ShareUpdateValue, value)
                start = start if update.start_offset == _UNCHANGED else update.start_offset
                batches += _batches(update)
            # The order does not matter: of two batches the one with more deliveries wins.
            found[where] = ShareState(start, combine(batches, start))
        return found


def read_share_states(
    cluster: Cluster, group_id: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ShareState | KafkaError]:
    """Return the state of each partition that a share group reads, without those that have none.

    Raises:
        KafkaError: the topic of the states does not exist, or this user may not read it.
    """
    asked = list(partitions)
    if not asked:
        return {}
    found: dict[TopicPartition, ShareState | KafkaError] = {}
    described = describe_topics(cluster, sorted({SHARE_GROUP_STATE, *(each.topic for each in asked)}))
    count = len(result(described[SHARE_GROUP_STATE]).partitions)
    places: dict[TopicPartition, dict[TopicPartition, tuple[str, bytes, int]]] = {}
    for where in asked:
        topic = described[where.topic]
        if not isinstance(topic, TopicMetadata):
            found[where] = topic
            continue
        key = (group_id, bytes(topic.topic_id), where.partition)
        place = TopicPartition(SHARE_GROUP_STATE, partition_for(share_coordinator_key(*key), count))
        places.setdefault(place, {})[where] = key
    starts, ends = (list_offsets(cluster, dict.fromkeys(places, position)) for position in (EARLIEST, LATEST))
    for place, wanted in places.items():
        try:
            found |= _states(cluster, place, wanted, result(starts[place]).offset, result(ends[place]).offset)
        except KafkaError as error:
            found |= dict.fromkeys(wanted, error)
    return {where: found[where] for where in asked if where in found}


def _states(
    cluster: Cluster,
    place: TopicPartition,
    wanted: Mapping[TopicPartition, tuple[str, bytes, int]],
    start: int,
    end: int,
) -> dict[TopicPartition, ShareState | KafkaError]:
    size = READ_FIRST
    while True:
        begin = max(start, end - size)
        fold = StateFold(wanted)
        for record in records_between(cluster, place, begin, end):
            fold.feed(record)
        if begin == start or not fold.open:
            return {**fold.states()}
        if size >= READ_MAX:
            sentence = (
                f"the last {size} records of partition {place.partition} of {place.topic} do not have the whole state"
            )
            unknown = dict.fromkeys(fold.open, error_for(ErrorCode.OFFSET_NOT_AVAILABLE, sentence))
            return {**fold.states(), **unknown}
        size = min(size * 10, READ_MAX)


def _key(key: ShareSnapshotKey | ShareUpdateKey) -> bytes:
    assert key.API_KEY is not None
    return _int16.pack(key.API_KEY) + bytes(key.encode(0))


def _decoded(kind: type[_Value], data: bytes) -> _Value:
    version = _int16.unpack_from(data)[0] if len(data) >= _int16.size else _UNCHANGED
    if not kind.MIN_VERSION <= version <= kind.MAX_VERSION:
        raise error_for(
            ErrorCode.UNSUPPORTED_VERSION, f"{SHARE_GROUP_STATE} has records of version {version}, of a newer broker"
        )
    return kind.decode(data[_int16.size :], version)


def _batches(value: ShareSnapshotValue | ShareUpdateValue) -> list[StateBatch]:
    return [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in value.state_batches
    ]
