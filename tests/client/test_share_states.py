"""Delivery states out of records: of a list, and of a cluster in memory."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from barnabas.client import share_states
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.share_states import ShareState, StateFold, read_share_states
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue
from barnabas.protocol.partition_for import partition_for, share_coordinator_key
from barnabas.protocol.state_batches import RecordState, StateBatch, combine
from barnabas.protocol.topic_names import SHARE_GROUP_STATE
from barnabas.records.builder import build_batch
from barnabas.records.record import Record, check_records
from tests.client.scripted_broker import MemoryCluster

AVAILABLE, ACKNOWLEDGED, ARCHIVED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
JOBS, TOPIC_ID = TopicPartition("jobs", 0), bytes(15) + b"\7"
KEY = ("q", TOPIC_ID, 0)
Stored = tuple[bytes, bytes | None]


def stored(key: Any, value: Any, version: int = 0) -> Stored:
    """Return key and value of a record as the coordinator writes them."""
    prefix = struct.pack(">h", key.API_KEY)
    return prefix + key.encode(0), None if value is None else struct.pack(">h", version) + value.encode(version)


def snapshot(start: int, *batches: tuple[int, int, int, int], group: str = "q") -> Stored:
    value = ShareSnapshotValue(
        start_offset=start,
        state_batches=[ShareSnapshotValue.StateBatch(**StateBatch(*each)._asdict()) for each in batches],
    )
    return stored(ShareSnapshotKey(group_id=group, topic_id=TOPIC_ID, partition=0), value)


def update(start: int, *batches: tuple[int, int, int, int]) -> Stored:
    value = ShareUpdateValue(
        start_offset=start,
        state_batches=[ShareUpdateValue.StateBatch(**StateBatch(*each)._asdict()) for each in batches],
    )
    return stored(ShareUpdateKey(group_id="q", topic_id=TOPIC_ID, partition=0), value)


END = stored(ShareSnapshotKey(group_id="q", topic_id=TOPIC_ID, partition=0), None)


def records(*pairs: Stored) -> list[Record]:
    return list(check_records(bytes(build_batch([(0, key, value, ()) for key, value in pairs]))))


def folded(*pairs: Stored) -> StateFold:
    fold = StateFold({JOBS: KEY})
    for record in records(*pairs):
        fold.feed(record)
    return fold


def test_updates_change_a_snapshot() -> None:
    fold = folded(
        snapshot(0, (0, 5, AVAILABLE, 1)),
        snapshot(9, group="another"),
        update(-1, (2, 2, ARCHIVED, 1)),
        update(1, (4, 4, AVAILABLE, 2)),
    )
    first, rejected, between, again, last = fold.states()[JOBS].batches
    assert fold.states()[JOBS].start_offset == 1
    assert (first, rejected) == (StateBatch(1, 1, AVAILABLE, 1), StateBatch(2, 2, ARCHIVED, 1))
    assert (between[:2], again, last[:2]) == ((3, 3), StateBatch(4, 4, AVAILABLE, 2), (5, 5))
    assert repr(fold) == "<StateFold snapshots=1 open=0>"


def test_a_snapshot_replaces_the_state_and_its_end_leaves_none() -> None:
    assert folded(update(0, (0, 0, AVAILABLE, 1)), snapshot(7)).states() == {JOBS: ShareState(7)}
    ended = folded(snapshot(7), END)
    assert (ended.states(), ended.open) == ({}, set())
    assert folded(update(3)).open == {JOBS}


@pytest.mark.parametrize("seed", range(20))
def test_all_updates_at_once_are_the_updates_one_after_another(seed: int) -> None:
    rng = random.Random(seed)
    start, so_far, updates = 0, ShareState(0), []
    for _ in range(rng.randint(1, 8)):
        first = start + rng.randrange(10)
        batch = (first, first + rng.randrange(6), rng.choice((0, 2, 4)), rng.randint(1, 3))
        start += rng.randrange(4)
        updates.append(update(start, batch))
        so_far = ShareState(start, combine((*so_far.batches, StateBatch(*batch)), start))
    assert folded(snapshot(0), *updates).states() == {JOBS: so_far}


def test_records_of_newer_brokers_are_an_error() -> None:
    key, value = snapshot(0)
    with pytest.raises(KafkaError, match="version 9, of a newer broker"):
        folded((key, b"\0\x09" + (value or b"")[2:])).states()


def test_what_may_still_be_delivered() -> None:
    state = ShareState(
        2, (StateBatch(2, 3, AVAILABLE, 1), StateBatch(4, 5, ARCHIVED, 5), StateBatch(8, 9, ACKNOWLEDGED, 1))
    )
    assert [state.unfinished_between(*each) for each in ((0, 10), (2, 5), (5, 9), (8, 10), (12, 10))] == [4, 2, 2, 0, 0]


class Log:
    """One partition of the state topic has the records, a batch each."""

    def __init__(self, *pairs: Stored) -> None:
        self.memory = MemoryCluster()
        self.memory.topics = {"jobs": [1], SHARE_GROUP_STATE: [1, 1, 1]}
        self.memory.topic_ids = {"jobs": TOPIC_ID}
        self.memory.handlers |= {"ListOffsetsRequest": self._list_offsets, "FetchRequest": self._fetch}
        self.batches = [
            bytes(build_batch([(0, key, value, ())], base_offset=offset)) for offset, (key, value) in enumerate(pairs)
        ]
        self.fetched: list[int] = []

    def read(self) -> dict[TopicPartition, Any]:
        with self.memory.client() as cluster:
            return read_share_states(cluster, "q", [JOBS])

    def _list_offsets(self, broker_id: int, request: Any, version: int) -> Any:
        response = messages.ListOffsetsResponse
        (topic,) = request.topics
        (asked,) = topic.partitions
        assert (topic.name, asked.partition_index) == (
            SHARE_GROUP_STATE,
            partition_for(share_coordinator_key(*KEY), 3),
        )
        offset = len(self.batches) if asked.timestamp == -1 else 0
        found = response.ListOffsetsPartitionResponse(partition_index=asked.partition_index, offset=offset)
        return response(topics=[response.ListOffsetsTopicResponse(name=topic.name, partitions=[found])])

    def _fetch(self, broker_id: int, request: Any, version: int) -> Any:
        response = messages.FetchResponse
        (topic,) = request.topics
        (asked,) = topic.partitions
        self.fetched.append(asked.fetch_offset)
        found = response.PartitionData(partition_index=asked.partition, records=self.batches[asked.fetch_offset])
        return response(responses=[response.FetchableTopicResponse(topic=topic.topic, partitions=[found])])


def test_the_partition_of_the_states_is_read() -> None:
    log = Log(snapshot(0), update(-1, (0, 0, AVAILABLE, 1)))
    assert log.read() == {JOBS: ShareState(0, (StateBatch(0, 0, AVAILABLE, 1),))}
    assert log.fetched == [0, 1]
    assert Log().read() == {}


def test_more_is_read_until_there_is_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_states, "READ_FIRST", 1)
    monkeypatch.setattr(share_states, "READ_MAX", 10)
    log = Log(*[snapshot(1)] * 5, update(2), update(3))
    assert log.read() == {JOBS: ShareState(3)}
    assert log.fetched == [6, *range(7)]
    log = Log(snapshot(1), *[update(2)] * 11)
    (error,) = log.read().values()
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.OFFSET_NOT_AVAILABLE
    assert error.message.startswith("the last 10 records of partition ")


def test_without_the_topic_of_the_states_it_is_an_error() -> None:
    log = Log()
    del log.memory.topics[SHARE_GROUP_STATE]
    with pytest.raises(KafkaError, match="topic __share_group_state does not exist"):
        log.read()
    with log.memory.client() as cluster:
        assert read_share_states(cluster, "q", []) == {}


def test_a_topic_that_is_gone_has_an_error_of_its_own() -> None:
    log = Log()
    del log.memory.topics["jobs"]
    (error,) = log.read().values()
    assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
