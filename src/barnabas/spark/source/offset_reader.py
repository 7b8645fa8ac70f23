"""The driver's requests to the cluster: partitions, offsets, leaders; and the group's commit.

The counterpart in Spark's Kafka source is `KafkaOffsetReader`. The driver sends a few small requests per trigger and
reads no records.

Invariants:

- The end of a partition depends on the query's isolation level. For `read_committed` it is the last stable offset: a
  task that reads beyond it would wait for a transaction that may stay open.
- A query may have reached further than that end, with another isolation level or by the offsets that it was given. The
  records there exist, so the end is then the query's own position, and the query waits.
- A starting timestamp is looked up among all records: the first one may belong to an open transaction.
- `latest` is consistent per broker, because one request asks for all partitions of a broker.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType
from typing import Any, TypeVar

from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import ClusterMetadata, TopicMetadata
from barnabas.client.cluster_metadata import TopicPartition as ClusterPartition
from barnabas.client.cuts import CUTS_TOPIC
from barnabas.client.group_offsets import list_group_offsets
from barnabas.client.patience import is_retriable
from barnabas.client.topic_growth import list_growth
from barnabas.client.wire import BlockingConnection
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.protocol.ordered_growth import Generation
from barnabas.spark.denied import Access, asking, denied
from barnabas.spark.named_topics import nearest_topic
from barnabas.spark.source.named_positions import cut_position, group_position
from barnabas.spark.source.offsets import (
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    ByCut,
    ByGroup,
    ByPartitionTimestamp,
    ByTimestamp,
    Earliest,
    Latest,
    OffsetLimit,
    Position,
    Specific,
    TopicPartition,
    missing_partitions,
)
from barnabas.spark.source.options import Assign, IsolationLevel, SourceOptions, Subscribe, TimestampStrategy

ResultT = TypeVar("ResultT")

logger = logging.getLogger("barnabas.spark")

# So long a broker's metadata may lag, generously: what it says for longer is so.
STALE_S = 5.0
_STALE_PAUSE_S = 0.5

_FIRST_PAUSE_S = 0.1
_UNKNOWN_TOPIC_RETRIES = 3
_NOTHING: Mapping[TopicPartition, int] = MappingProxyType({})

# ListOffsets accepts these instead of a timestamp.
_LATEST_TIMESTAMP = -1
_EARLIEST_TIMESTAMP = -2


@dataclass(frozen=True, slots=True)
class Leader:
    """The address and the epoch of a partition's leader (-1 if the broker names none), and the id of the topic."""

    topic_id: bytes
    host: str
    port: int
    epoch: int = -1


class OffsetReader:
    """Finds where partitions begin and end. It connects on first use, so creating one is cheap."""

    def __init__(
        self,
        options: SourceOptions,
        connect: Callable[..., BlockingConnection] = BlockingConnection,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._options = options
        self._now_ms = now_ms
        self._cluster = Cluster(
            options.bootstrap_servers,
            client_id=options.consumer.client_id,
            timeout_ms=options.consumer.request_timeout_ms,
            clock=clock,
            sleep=sleep,
            connect=connect,
            security=options.security.client(),
        )
        self._clock = clock
        self._sleep = sleep
        self._metadata: ClusterMetadata | None = None

    def __repr__(self) -> str:
        return f"<OffsetReader servers={self._options.bootstrap_servers} topics={self._options.topics}>"

    def close(self) -> None:
        self._cluster.close()

    # Partitions
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions that the query reads now, in order.

        Raises:
            KafkaError: a subscribed topic does not exist, or no broker responds.
        """
        selection = self._options.topics
        if isinstance(selection, Assign):
            self._describe({topic for topic, _ in selection.partitions})
            return list(selection.partitions)
        if isinstance(selection, Subscribe):
            topics = self._describe(selection.topics)
        else:
            pattern = re.compile(selection.pattern)
            found = self._retried(lambda: self._ask_metadata(None))
            topics = [topic for name, topic in found.topics.items() if pattern.fullmatch(name)]
        return sorted((topic.name, each.partition) for topic in topics for each in topic.partitions)

    def topic_ids(self) -> dict[str, bytes]:
        """Return the ids of the topics last described. A topic that is created again has another id."""
        return {} if self._metadata is None else {t.name: bytes(t.topic_id) for t in self._metadata.topics.values()}

    def leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Leader]:
        """Return the leader of each partition.

        No request is sent if the last metadata has a leader for all of them.

        Raises:
            KafkaError: a partition does not exist or has no leader.
        """
        wanted = list(partitions)
        known = self._known_leaders()
        if not all(each in known for each in wanted):
            self._retried(lambda: self._ask_leaders({topic for topic, _ in wanted}, wanted))
            known = self._known_leaders()
        return {each: known[each] for each in wanted}

    # Offsets
    def earliest(self, partitions: Iterable[TopicPartition]) -> Position:
        """Return the first offset of each partition."""
        return self._offsets(dict.fromkeys(partitions, _EARLIEST_TIMESTAMP))

    def latest(
        self, partitions: Iterable[TopicPartition], reached: Mapping[TopicPartition, int] = _NOTHING
    ) -> Position:
        """Return where the query must stop reading in each partition now.

        That is the end in the query's isolation level, or the first record that is younger than `minRecordAge`.

        Args:
            reached: the query's position. No partition ends before it whose log has the records up to it.
        """
        ends = self._readable(partitions)
        past = {each: reached[each] for each, end in ends.items() if end < reached.get(each, end)}
        high = self.high_watermarks(past)
        return {**ends, **{each: offset for each, offset in past.items() if offset <= high[each]}}

    def _readable(self, partitions: Iterable[TopicPartition]) -> Position:
        ends = self._offsets(dict.fromkeys(partitions, _LATEST_TIMESTAMP))
        if not self._options.min_record_age_ms:
            return ends
        # Asked for after the ends: what arrived in between lies behind them.
        youngest_ms = self._now_ms() - self._options.min_record_age_ms + 1
        young = _matched(self._offsets(dict.fromkeys(ends, youngest_ms)))
        return {each: min(end, young.get(each, end)) for each, end in ends.items()}

    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> Position:
        """Return the end of each partition, with the records of open transactions."""
        return self._offsets(dict.fromkeys(partitions, _LATEST_TIMESTAMP), IsolationLevel.READ_UNCOMMITTED)

    def at_moment(self, partitions: Iterable[TopicPartition], timestamp_ms: int) -> Position:
        """Return the first offset at or after a moment in each partition, -1 if it has no such record."""
        return self._offsets(dict.fromkeys(partitions, timestamp_ms), IsolationLevel.READ_UNCOMMITTED)

    def start(self, partitions: Iterable[TopicPartition]) -> Position:
        """Return where a new query begins in each partition.

        Raises:
            ValueError: offsets or timestamps were given, but not for exactly these partitions; a partition has no record
                at or after its timestamp and the strategy is `error`; or the cluster does not know the group or the cut.
        """
        wanted = list(partitions)
        found = self._at(
            self._options.starting, wanted, self._options.words.starting, moments=IsolationLevel.READ_UNCOMMITTED
        )
        late = [each for each in wanted if each not in found]
        if late and self._options.timestamp_strategy is TimestampStrategy.ERROR:
            names = ", ".join(f"{topic}-{partition}" for topic, partition in late)
            raise ValueError(
                f"No offset matched from request of timestamp for topic-partition(s) {names}: they have no record at "
                "or after it. Set startingOffsetsByTimestampStrategy to latest to begin at their end."
            )
        return {**found, **self.latest(late)}

    def end(self, start: Position) -> Position:
        """Return where a batch ends that begins at `start`: at a partition's end if it has no record at or after the timestamp."""
        found = self._at(self._options.ending, list(start), self._options.words.ending, start)
        return {**found, **self.latest((each for each in start if each not in found), start)}

    def _at(
        self,
        limit: OffsetLimit,
        partitions: list[TopicPartition],
        option: str,
        reached: Mapping[TopicPartition, int] = _NOTHING,
        moments: IsolationLevel | None = None,
    ) -> Position:
        """Return the offsets of a limit, without partitions that have no record at or after its timestamp."""
        if isinstance(limit, Earliest):
            return self.earliest(partitions)
        if isinstance(limit, Latest):
            return self.latest(partitions, reached)
        if isinstance(limit, ByTimestamp):
            return _matched(self._offsets(dict.fromkeys(partitions, limit.timestamp_ms), moments))
        if isinstance(limit, ByGroup | ByCut):
            known = self._retried(lambda: self._named(limit, partitions))
            return {**self.earliest(each for each in partitions if each not in known), **known}
        given = limit.timestamps_ms if isinstance(limit, ByPartitionTimestamp) else limit.offsets
        if complaint := missing_partitions(partitions, given):
            name = f"{option}ByTimestamp" if isinstance(limit, ByPartitionTimestamp) else option
            raise ValueError(f"If {name} contains specific offsets, {complaint}")
        if isinstance(limit, ByPartitionTimestamp):
            return _matched(self._offsets(dict(limit.timestamps_ms), moments))
        return self._specific(limit, reached)

    def _named(self, limit: ByGroup | ByCut, partitions: list[TopicPartition]) -> Position:
        if isinstance(limit, ByCut):
            with asking(Access("Read", "topic", CUTS_TOPIC)):
                return cut_position(self._cluster, limit.name, partitions, self.topic_ids())
        is_committed = self._options.consumer.isolation_level is IsolationLevel.READ_COMMITTED
        with asking(Access("Describe", "group", limit.group_id)):
            return group_position(self._cluster, limit.group_id, partitions, require_stable=is_committed)

    def _specific(self, limit: Specific, reached: Mapping[TopicPartition, int]) -> Position:
        first = [each for each, offset in limit.offsets.items() if offset == EARLIEST_OFFSET]
        last = [each for each, offset in limit.offsets.items() if offset == LATEST_OFFSET]
        return {**limit.offsets, **self.earliest(first), **self.latest(last, reached)}

    def _offsets(self, timestamps: Mapping[TopicPartition, int], isolation: IsolationLevel | None = None) -> Position:
        """Return the offset at a timestamp in each partition; -1 if it has no record at or after the timestamp."""
        if not timestamps:
            return {}
        level = (isolation or self._options.consumer.isolation_level).value
        wanted = {ClusterPartition(*each): timestamp for each, timestamp in timestamps.items()}

        def ask(connection: BlockingConnection, items: list[ClusterPartition]) -> dict[ClusterPartition, Any]:
            return _list_offsets(connection, {each: wanted[each] for each in items}, level)

        def attempt() -> Position:
            found: Position = {}
            for each, answer in self._cluster.ask_each(wanted, self._cluster.leaders, ask).items():
                if isinstance(answer, KafkaError):
                    raise answer
                found[each.topic, each.partition] = answer
            return found

        return self._retried(attempt)

    def settled(self, look: Callable[[], ResultT], is_settled: Callable[[ResultT], bool]) -> ResultT:
        """Call `look` until its answer is settled, for as long as a broker may lag behind the cluster.

        Returns:
            The last answer, settled or not.
        """
        deadline = self._clock() + STALE_S
        while not is_settled(found := look()) and self._clock() < deadline:
            self._cluster.forget()
            self._sleep(_STALE_PAUSE_S)
        return found

    def growth(self, topics: Iterable[str]) -> dict[str, tuple[Generation, ...]]:
        """Return the generations of those topics that have grown in order.

        Raises:
            ValueError: a newer release wrote one.
        """
        wanted = list(topics)
        return self._retried(lambda: list_growth(self._cluster, wanted))

    # The group
    def commit(self, group_id: str, position: Mapping[TopicPartition, int], metadata: str = "") -> None:
        """Store a position as the offsets of a consumer group without members.

        Args:
            metadata: a note on each offset, for readers of the group.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID if the group has members; or no coordinator responds.
        """
        by_topic: dict[str, list[Any]] = {}
        request_class = messages.OffsetCommitRequest
        for (topic, partition), offset in sorted(position.items()):
            by_topic.setdefault(topic, []).append(
                request_class.OffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata=metadata
                )
            )
        request = request_class(
            group_id=group_id,
            generation_id_or_member_epoch=-1,
            topics=[request_class.OffsetCommitRequestTopic(name=name, partitions=p) for name, p in by_topic.items()],
        )

        def ask() -> None:
            connection = self._cluster.connection(self._cluster.coordinator(group_id))
            # From version 10 on topics are named by id, which is not needed here.
            for topic in connection.request(request, highest=9).topics:
                for answer in topic.partitions:
                    if answer.error_code:
                        raise error_for(answer.error_code)

        with asking(Access("Read", "group", group_id)):
            self._cluster.retry(ask)

    def committed_notes(self, group_id: str, partitions: Iterable[TopicPartition]) -> set[str]:
        """Return the metadata of the offsets that a group committed for some partitions."""
        wanted = [ClusterPartition(*each) for each in partitions]
        return {each.metadata or "" for each in list_group_offsets(self._cluster, group_id, wanted).values()}

    # Asking
    def _describe(self, topics: Iterable[str]) -> list[TopicMetadata]:
        wanted = sorted(topics)
        try:
            found = self._retried(lambda: self._ask_topics(wanted))
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            known = self._metadata.topics if self._metadata is not None else {}
            absent = next(name for name in wanted if name not in known)
            meant = nearest_topic(self._cluster, absent)
            raise error_for(error.code, f"topic {absent} does not exist{meant}") from None
        return [found.topics[name] for name in wanted]

    def _ask_topics(self, names: list[str]) -> ClusterMetadata:
        found = self._ask_metadata(names)
        for name in names:
            if name not in found.topics:
                error = found.errors.get(name) or error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise error_for(error.code, f"topic {name} does not exist")
                raise denied(error, Access("Read", "topic", name))
        return found

    def _ask_metadata(self, topics: list[str] | None) -> ClusterMetadata:
        self._metadata = found = self._cluster.metadata(topics)
        for error in found.errors.values():
            if is_retriable(error) and error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise error
        return found

    def _ask_leaders(self, topics: set[str], partitions: list[TopicPartition]) -> None:
        self._ask_topics(sorted(topics))
        known = self._known_leaders()
        for topic, partition in partitions:
            if (topic, partition) not in known:
                raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {topic}-{partition} has no leader")

    def _known_leaders(self) -> dict[TopicPartition, Leader]:
        metadata = self._metadata
        if metadata is None:
            return {}
        known: dict[TopicPartition, Leader] = {}
        for topic in metadata.topics.values():
            for each in topic.partitions:
                if (node := metadata.brokers.get(each.leader)) is not None:
                    known[topic.name, each.partition] = Leader(
                        bytes(topic.topic_id), node.host, node.port, each.leader_epoch
                    )
        return known

    def _retried(self, ask: Callable[[], ResultT]) -> ResultT:
        """Call `ask` until it raises no retriable error.

        After `kafka.default.api.timeout.ms` no retry begins, unless there were fewer than `fetchOffset.numRetries`. The
        pause doubles, up to `fetchOffset.retryIntervalMs`.
        """
        deadline = self._clock() + self._options.api_timeout_ms / 1000
        for attempt in count():
            try:
                return ask()
            except KafkaError as error:
                pause_s = min(
                    _FIRST_PAUSE_S * 2 ** min(attempt, 20), self._options.fetch_offset_retry_interval_ms / 1000
                )
                if not self._may_pass(error, attempt, in_time=self._clock() + pause_s < deadline):
                    raise
                if attempt == 0 and error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    logger.warning("%s; retrying for up to %d ms", error, self._options.api_timeout_ms)
            self._cluster.forget()
            self._sleep(pause_s)
        raise AssertionError("count() does not end")

    def _may_pass(self, error: KafkaError, attempt: int, *, in_time: bool) -> bool:
        if not is_retriable(error):
            return False
        # A broker that has just started may not know a topic yet. A wrong name should not cost a minute.
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return in_time and attempt < _UNKNOWN_TOPIC_RETRIES
        return in_time or attempt < self._options.fetch_offset_retries


def _list_offsets(
    connection: BlockingConnection, timestamps: Mapping[ClusterPartition, int], isolation: int
) -> dict[ClusterPartition, int | KafkaError]:
    request_class = messages.ListOffsetsRequest
    by_topic: dict[str, list[Any]] = {}
    for each, timestamp in timestamps.items():
        by_topic.setdefault(each.topic, []).append(
            request_class.ListOffsetsPartition(partition_index=each.partition, timestamp=timestamp)
        )
    request = request_class(
        replica_id=-1,
        isolation_level=isolation,
        topics=[request_class.ListOffsetsTopic(name=name, partitions=parts) for name, parts in by_topic.items()],
    )
    found: dict[ClusterPartition, int | KafkaError] = {}
    for topic in connection.request(request).topics:
        for answer in topic.partitions:
            each = ClusterPartition(topic.name, answer.partition_index)
            error = error_for(answer.error_code) if answer.error_code else None
            found[each] = answer.offset if error is None else denied(error, Access("Read", "topic", topic.name))
    return found


def _matched(found: Position) -> Position:
    return {each: offset for each, offset in found.items() if offset >= 0}
