"""A follower's requests to one leader, and the handling of the answers; no I/O but the logs'.

    add ──► begin: open the log ──► request: named in the next Fetch ──► accept, process: append, truncate ──► …
                                            ▲              └ an error: delayed by replica.fetch.backoff.ms ┐
                                            └──────────────────────────────────────────────────────────────┤
                                            └──── take_ends, take_starts: ListOffsets ◄── OFFSET_OUT_OF_RANGE

- Each request continues a fetch session, so the cost of a request is that of the partitions that have changed (see
  `fetch_session_handler`). At most 1,000 are named in one; the rest follow in the next ones, which then do not wait for records.
- The fetch offset is the log's end and the last fetched epoch is the log's latest epoch. A leader whose log differs there answers with
  a diverging epoch, and the follower truncates (KIP-595). Such an answer moves neither the high watermark nor the log start.
- With `barnabas.flush.before.ack` a log is synced before its end is reported: `states_to_sync`, once for all of an answer's batches.
- Partitions may be added and removed at any time, also while a request is under way. An answer counts only for the state that the
  request named: in the same leader epoch, with the same log end. Any other is dropped, and the partition is fetched again.
- FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER and UNKNOWN_TOPIC_ID mean that one of the two brokers has old
  metadata. The partition is delayed; newer metadata adds it again with a newer epoch, or removes it. (After FENCED_LEADER_EPOCH Kafka
  never asks again.)
- If the leader may be the one with old metadata, the first delays are short, because acks=all waits until this follower fetches. (In
  Kafka they are replica.fetch.backoff.ms too.)
- A throttled replica that is not in sync is left out of requests while the follower's quota is exceeded (`replica_quota`).
- Records that are not valid delay the one partition. Nothing of the answer's batches is appended then.
- A disk that fails delays the partition, and stops this broker (`ReplicaManager.disk_failed`).

`replica_fetcher_loop` sends the requests, and `replica_fetcher_manager` has a fetcher for each leader.

Source: Kafka's `AbstractFetcherThread`, `ReplicaFetcherThread`, `RemoteLeaderEndPoint`; KIP-73, KIP-227, KIP-320, KIP-595, KIP-903.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from barnabas.log.errors import KafkaStorageError
from barnabas.protocol.errors import ErrorCode, KafkaError, known_code
from barnabas.protocol.messages import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from barnabas.replication.fetch_session_handler import FetchSessionHandler, Requested
from barnabas.replication.follower_log import (
    append_fetched,
    begin_to_follow,
    truncate_to_divergence,
    truncate_to_end,
    truncate_to_start,
)
from barnabas.replication.offset_lookup import EARLIEST, LATEST
from barnabas.replication.partition import Partition
from barnabas.replication.partition_fetch_state import FetchStage, PartitionFetchState, PartitionKey
from barnabas.replication.replica_quota import UNBOUNDED, ReplicaQuota

logger = logging.getLogger(__name__)

__all__ = ["FetcherConfig", "PartitionAnswer", "ReplicaFetcher"]

PARTITIONS_PER_REQUEST = 1_000
"""How many partitions one request names at most. More would hold the loop for too long, here and at the leader."""

LOGS_PER_REQUEST = 100
"""How many logs are opened before the next request; the partitions that are ready wait for that request."""

EXPECTED = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)
"""Errors that stop when both brokers have the same metadata."""

AWAITS_LEADER = EXPECTED - {ErrorCode.FENCED_LEADER_EPOCH}
"""The errors of a leader that may not know yet that it leads."""

SHORTEST_DELAY_MS = 20
"""The first delay after one of these errors; each next one is twice as long, up to replica.fetch.backoff.ms."""

THROTTLED_MS = 100
"""How long a throttled partition is left out before the quota is looked at again."""


@dataclass(frozen=True, slots=True)
class FetcherConfig:
    """The settings replica.fetch.*, and this broker's node id."""

    node_id: int
    fetch_max_bytes: int = 1_048_576
    response_max_bytes: int = 10_485_760
    min_bytes: int = 1
    wait_max_ms: int = 500
    backoff_ms: int = 1_000


class PartitionAnswer(NamedTuple):
    """One partition's part of an answer, and of the request."""

    requested: Requested
    data: FetchResponse.PartitionData


class ReplicaFetcher:
    """The partitions that this broker fetches from one leader.

    Args:
        broker_epoch: returns the epoch of this broker's registration (KIP-903).
        advanced: called when a log's end, high watermark or start has moved.
        quota: the follower's.
    """

    def __init__(
        self,
        config: FetcherConfig,
        broker_epoch: Callable[[], int],
        advanced: Callable[[Partition], None],
        quota: ReplicaQuota = UNBOUNDED,
    ) -> None:
        self.config = config
        self.partitions: dict[PartitionKey, PartitionFetchState] = {}
        self._broker_epoch = broker_epoch
        self._advanced = advanced
        self._quota = quota
        self._session = FetchSessionHandler()
        # A state is in one of these four, or in the session and unchanged.
        self._to_begin: dict[PartitionKey, PartitionFetchState] = {}
        self._to_name: dict[PartitionKey, PartitionFetchState] = {}
        self._out_of_range: dict[PartitionKey, PartitionFetchState] = {}
        self._delayed: dict[PartitionKey, PartitionFetchState] = {}
        # In the session; the next request removes them from it.
        self._to_forget: dict[PartitionKey, None] = {}

    def __repr__(self) -> str:
        return (
            f"<ReplicaFetcher partitions={len(self.partitions)} delayed={len(self._delayed)} session={self._session!r}>"
        )

    # Which partitions

    def add(self, partition: Partition) -> None:
        """Fetch a partition in its present leader epoch; nothing changes if it is fetched in this epoch already."""
        state = PartitionFetchState(partition)
        known = self.partitions.get(state.key)
        if known is not None:
            if known.partition is partition and known.leader_epoch == state.leader_epoch:
                return
            self.remove(known.key)
        self.partitions[state.key] = state
        self._enqueue(state)

    def remove(self, key: PartitionKey) -> None:
        """Fetch a partition no longer; an answer for it that is under way is dropped."""
        state = self.partitions.pop(key, None)
        if state is not None:
            self._dequeue(state)

    def _queues(self) -> tuple[dict[PartitionKey, PartitionFetchState], ...]:
        return self._to_begin, self._to_name, self._out_of_range, self._delayed

    def _dequeue(self, state: PartitionFetchState) -> None:
        for queue in self._queues():
            queue.pop(state.key, None)
        self._forget(state.key)

    def _forget(self, key: PartitionKey) -> None:
        if key in self._session.requested:
            self._to_forget[key] = None

    def _enqueue(self, state: PartitionFetchState) -> None:
        """Put a state where its stage says."""
        if state.stage is FetchStage.TRUNCATING:
            self._to_begin[state.key] = state
        elif state.stage is FetchStage.OUT_OF_RANGE:
            self._out_of_range[state.key] = state
        else:
            self._to_name[state.key] = state

    def _is_current(self, state: PartitionFetchState) -> bool:
        return self.partitions.get(state.key) is state and state.is_current

    # Delays

    def _delay(self, state: PartitionFetchState, now_ms: int, delay_ms: int | None = None) -> None:
        self._dequeue(state)
        state.delayed_until_ms = now_ms + (self.config.backoff_ms if delay_ms is None else delay_ms)
        self._delayed[state.key] = state

    def _end_delays(self, now_ms: int) -> None:
        if not self._delayed:
            return
        for state in [each for each in self._delayed.values() if each.is_due(now_ms)]:
            del self._delayed[state.key]
            state.delayed_until_ms = None
            self._enqueue(state)

    def next_delay_end_ms(self) -> int | None:
        """Return when the first delay ends; None if no partition is delayed."""
        ends = (state.delayed_until_ms for state in self._delayed.values() if state.delayed_until_ms is not None)
        return min(ends, default=None)

    def _failed(self, state: PartitionFetchState, error: KafkaError, doing: str, now_ms: int) -> None:
        delay_ms = self.config.backoff_ms
        if error.code in AWAITS_LEADER:
            delay_ms = min(delay_ms, SHORTEST_DELAY_MS << min(state.refusals, 16))
            state.refusals += 1
        # All partitions of a broker that dies have these errors for a moment.
        level = logging.DEBUG if error.code in EXPECTED else logging.ERROR
        logger.log(level, "%s: %s failed, trying again in %d ms: %s", state.name, doing, delay_ms, error.message)
        self._delay(state, now_ms, delay_ms)
        if isinstance(error, KafkaStorageError) and state.is_current:
            state.partition.disk_failed(error)

    # Beginning

    def states_to_begin(self, now_ms: int) -> list[PartitionFetchState]:
        """Return some of the partitions whose logs are not ready; the caller passes each to `begin`."""
        self._end_delays(now_ms)
        return list(islice(self._to_begin.values(), LOGS_PER_REQUEST))

    @property
    def has_to_begin(self) -> bool:
        """Whether logs are not ready."""
        return bool(self._to_begin)

    def begin(self, state: PartitionFetchState, now_ms: int) -> None:
        """Open a partition's log and make it ready to fetch; may take milliseconds."""
        if self._to_begin.get(state.key) is not state:
            return
        if not state.is_current:
            del self._to_begin[state.key]  # Newer metadata is on its way to this fetcher.
            return
        try:
            begin_to_follow(state.partition.log)
        except KafkaError as error:
            self._failed(state, error, "opening the log", now_ms)
        else:
            self._next_stage(state, FetchStage.FETCHING)

    def _next_stage(self, state: PartitionFetchState, stage: FetchStage) -> None:
        self._dequeue(state)
        state.stage = stage
        self._enqueue(state)

    # Syncs before the end is reported

    def states_to_sync(self, now_ms: int) -> list[PartitionFetchState]:
        """Return the partitions that no request names before their logs are synced; the caller syncs them and calls `synced`."""
        self._end_delays(now_ms)
        return [state for state in self._to_name.values() if state.awaits_sync and state.is_current]

    def synced(self, states: Iterable[PartitionFetchState], now_ms: int) -> None:
        """Note that these syncs have ended; a log that is not synced now has failed."""
        for state in states:
            if self._is_current(state) and state.awaits_sync:
                self._failed(state, KafkaStorageError(f"{state.name} was not synced"), "syncing the log", now_ms)

    # Requests

    def request(self, now_ms: int) -> FetchRequest | None:
        """Return the next Fetch request; None if there is nothing to fetch now.

        The caller passes the answer to `accept`, or calls `request_failed`, before it asks for another.
        """
        self._end_delays(now_ms)
        self._hold_back_throttled(now_ms)
        session = self._session
        forgotten = dict.fromkeys(self._to_forget)  # A set has another order in each process.
        if forgotten and len(forgotten) == len(session.requested):
            if not self._to_name:
                return None  # The session stays as it is; it cannot be empty.
            session.start_over()
            forgotten.clear()
            self._to_forget.clear()
        wanted = self._take_wanted(forgotten, now_ms)
        if not wanted and session.is_full:
            return None
        for key in forgotten:
            self._to_forget.pop(key, None)
        request = self._build(wanted, forgotten, now_ms)
        session.name(wanted, forgotten)
        return request

    def _take_wanted(self, forgotten: Collection[PartitionKey], now_ms: int) -> dict[PartitionKey, Requested]:
        """Take the partitions that the next request names.

        A forgotten partition is named by the request after it. To the leader it is a new one then, and its offsets are sent again:
        the answer that had them last may have been dropped.
        """
        wanted: dict[PartitionKey, Requested] = {}
        for key in list(self._to_name)[:PARTITIONS_PER_REQUEST]:
            if key in forgotten or (self._to_name[key].awaits_sync and self._to_name[key].is_current):
                continue
            state = self._to_name.pop(key)
            if not state.is_current:
                self._forget(key)  # Its log may be deleted; newer metadata is on its way to this fetcher.
                continue
            try:
                log = state.partition.log
            except KafkaError as error:
                self._failed(state, error, "opening the log", now_ms)
                continue
            wanted[key] = Requested(state, log.log_end_offset, log.latest_epoch, log.log_start_offset)
        return wanted

    def _hold_back_throttled(self, now_ms: int) -> None:
        """Leave the throttled partitions out while the quota is exceeded, but for in-sync replicas.

        The next request already has the session forget them: the leader would else send records of them.
        """
        if not self._quota.is_exceeded():
            return
        for state in list(self._to_name.values()):
            partition = state.partition
            if not state.is_in_sync and self._quota.is_throttled(partition.topic.name, partition.index):
                self._delay(state, now_ms, THROTTLED_MS)

    def _build(
        self, wanted: Mapping[PartitionKey, Requested], forgotten: Iterable[PartitionKey], now_ms: int
    ) -> FetchRequest:
        config, session = self.config, self._session
        topics: dict[bytes, FetchRequest.FetchTopic] = {}
        for (topic_id, index), said in wanted.items():
            topic = topics.setdefault(topic_id, FetchRequest.FetchTopic(topic_id=topic_id))
            topic.partitions.append(
                FetchRequest.FetchPartition(
                    partition=index,
                    current_leader_epoch=said.state.leader_epoch,
                    fetch_offset=said.fetch_offset,
                    last_fetched_epoch=said.last_fetched_epoch,
                    log_start_offset=said.log_start_offset,
                    partition_max_bytes=config.fetch_max_bytes,
                )
            )
        gone: dict[bytes, FetchRequest.ForgottenTopic] = {}
        for topic_id, index in forgotten:
            gone.setdefault(topic_id, FetchRequest.ForgottenTopic(topic_id=topic_id)).partitions.append(index)
        return FetchRequest(
            replica_state=FetchRequest.ReplicaState(replica_id=config.node_id, replica_epoch=self._broker_epoch()),
            # The partitions that did not fit, or whose logs are not open, must not wait for records of the others.
            max_wait_ms=0 if self._to_name or self._to_begin else self._wait_max_ms(now_ms),
            min_bytes=config.min_bytes,
            max_bytes=config.response_max_bytes,
            session_id=session.session_id,
            session_epoch=session.epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(gone.values()),
        )

    def _wait_max_ms(self, now_ms: int) -> int:
        """Return how long the leader may wait for records: until the next delay ends."""
        due_ms = self.next_delay_end_ms()
        wait_ms = self.config.wait_max_ms
        return wait_ms if due_ms is None else min(wait_ms, max(0, due_ms - now_ms))

    def request_failed(self) -> None:
        """Begin a new session: the leader may have handled the request or not."""
        self._session.start_over()
        self._name_all()

    def _name_all(self) -> None:
        self._to_forget.clear()
        self._to_name = {key: state for key, state in self.partitions.items() if state.is_fetching}

    # Answers

    def accept(self, response: FetchResponse) -> list[PartitionAnswer] | None:
        """Return the parts of an answer, for `process`; None if the answer cannot be used and a full request follows."""
        session = self._session
        if not session.accept(response):
            if response.error_code:
                logger.info("a new fetch session follows: %s", known_code(response.error_code).default_message)
            else:
                logger.warning("the answer to a fetch does not have the partitions of the request; trying again")
            self._name_all()
            return None
        answers = [
            PartitionAnswer(session.requested[topic.topic_id, data.partition_index], data)
            for topic in response.responses
            for data in topic.partitions
        ]
        if session.is_full:
            # There is no session: the next requests name the partitions of this one again, after the others.
            for key, said in session.requested.items():
                if self.partitions.get(key) is said.state and said.state.is_fetching:
                    self._to_name[key] = said.state
            session.start_over()
            self._to_forget.clear()
        return answers

    def process(self, answer: PartitionAnswer, now_ms: int) -> None:
        """Append or truncate as one partition's part of an answer demands."""
        said, data = answer
        state = said.state
        if not self._is_current(state) or not state.is_fetching:
            return
        try:
            log = state.partition.log
            if said.fetch_offset != log.log_end_offset:
                self._to_name[state.key] = state
            elif data.error_code:
                self._rejected(state, known_code(data.error_code), now_ms)
            elif data.diverging_epoch.epoch >= 0:
                truncate_to_divergence(log, data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
                self._to_name[state.key] = state
            else:
                self._append(said, data)
        except KafkaError as error:
            self._failed(state, error, f"following the leader at offset {said.fetch_offset}", now_ms)

    def _append(self, said: Requested, data: FetchResponse.PartitionData) -> None:
        state, log = said.state, said.state.partition.log
        state.refusals = 0
        topic = state.partition.topic
        if data.records and self._quota.is_throttled(topic.name, state.partition.index):
            assert isinstance(data.records, bytes | bytearray | memoryview), "fetched records are in memory"
            self._quota.record(len(data.records))
        if append_fetched(log, data, state.leader_epoch):
            self._advanced(state.partition)
        state.lag = max(0, data.high_watermark - log.log_end_offset)
        if data.records or said.log_start_offset != log.log_start_offset:
            self._to_name[state.key] = state

    def _rejected(self, state: PartitionFetchState, code: ErrorCode, now_ms: int) -> None:
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._next_stage(state, FetchStage.OUT_OF_RANGE)
        else:
            self._failed(state, KafkaError(code), "fetching", now_ms)

    # The leader's range

    def states_out_of_range(self, now_ms: int) -> list[PartitionFetchState]:
        """Return the partitions whose log end the leader does not have: `ends_request` and `starts_request` ask for its log."""
        self._end_delays(now_ms)
        return [state for state in self._out_of_range.values() if state.is_current][:PARTITIONS_PER_REQUEST]

    def ends_request(self, states: Iterable[PartitionFetchState]) -> ListOffsetsRequest:
        """Ask for the leader's log ends; the answer is for `take_ends`."""
        return self._list_offsets(states, LATEST)

    def starts_request(self, states: Iterable[PartitionFetchState]) -> ListOffsetsRequest:
        """Ask for the leader's log starts; the answer is for `take_starts`."""
        return self._list_offsets(states, EARLIEST)

    def _list_offsets(self, states: Iterable[PartitionFetchState], timestamp: int) -> ListOffsetsRequest:
        topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
        for state in states:
            name = state.partition.topic.name
            topics.setdefault(name, ListOffsetsRequest.ListOffsetsTopic(name=name)).partitions.append(
                ListOffsetsRequest.ListOffsetsPartition(
                    partition_index=state.partition.index,
                    current_leader_epoch=state.leader_epoch,
                    timestamp=timestamp,
                )
            )
        return ListOffsetsRequest(replica_id=self.config.node_id, topics=list(topics.values()))

    def take_ends(
        self, states: Iterable[PartitionFetchState], response: ListOffsetsResponse, now_ms: int
    ) -> list[PartitionFetchState]:
        """Truncate the logs that go beyond the leader's; return the others, whose leader's start is still to be asked for."""
        return [
            state
            for state, offset in self._offsets(states, response, now_ms)
            if not self._fit(state, truncate_to_end, offset, now_ms) and state.key in self._out_of_range
        ]

    def take_starts(self, states: Iterable[PartitionFetchState], response: ListOffsetsResponse, now_ms: int) -> None:
        """Start the logs again that end before the leader's begin; the others are in range by now, and are fetched after a delay."""
        for state, offset in self._offsets(states, response, now_ms):
            if not self._fit(state, truncate_to_start, offset, now_ms) and state.key in self._out_of_range:
                state.stage = FetchStage.FETCHING
                self._delay(state, now_ms)

    def offsets_failed(self, states: Iterable[PartitionFetchState], now_ms: int) -> None:
        """Delay the partitions of a ListOffsets request that has no answer."""
        for state in states:
            if self._is_current(state):
                self._delay(state, now_ms)

    def _fit(self, state: PartitionFetchState, truncate: Callable[..., bool], offset: int, now_ms: int) -> bool:
        """Truncate if the leader's offset demands it; return whether the partition is in range now."""
        try:
            if not truncate(state.partition.log, offset):
                return False
        except KafkaError as error:
            self._failed(state, error, "truncating", now_ms)
            return False
        self._next_stage(state, FetchStage.FETCHING)
        return True

    def _offsets(
        self, states: Iterable[PartitionFetchState], response: ListOffsetsResponse, now_ms: int
    ) -> list[tuple[PartitionFetchState, int]]:
        """Return each partition with its offset in the answer; one without is delayed."""
        answers = {
            (topic.name, answer.partition_index): answer for topic in response.topics for answer in topic.partitions
        }
        found = []
        for state in states:
            if not self._is_current(state) or self._out_of_range.get(state.key) is not state:
                continue
            answer = answers.get((state.partition.topic.name, state.partition.index))
            if answer is None or answer.error_code or answer.offset < 0:
                code = ErrorCode.UNKNOWN_SERVER_ERROR if answer is None else known_code(answer.error_code)
                self._failed(state, KafkaError(code), "asking for the leader's offsets", now_ms)
            else:
                found.append((state, answer.offset))
        return found
