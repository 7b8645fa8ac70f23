"""Offsets by time, and the special times that stand for an end of the log (ListOffsets)."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.replication.offset_lookup import FoundOffset, lookup_offset
from barnabas.replication.partition import Partition
from tests.replication.hosting import NODE, Hosting
from tests.replication.test_fetch_reader import append_transaction

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4
UNCOMMITTED, COMMITTED, FOLLOWER = 0, 1, None
NOTHING = FoundOffset(-1, -1, -1)


def look_up(hosting: Hosting, timestamp: int, isolation: int | None = UNCOMMITTED) -> FoundOffset:
    return lookup_offset(hosting.replicas.partition("t", 0), timestamp, isolation)


@pytest.fixture
def replicated(hosting: Hosting) -> Hosting:
    """Three records, of epoch 0, 0 and 1; the first is committed."""
    id_ = hosting.create_topic("t", replicas=(NODE, 2))
    hosting.append("t", b"a", timestamp=1000)
    hosting.append("t", b"b", timestamp=3000)
    hosting.change(id_, leader=NODE)
    hosting.append("t", b"c", timestamp=2000)
    hosting.replicas.partition("t", 0).update_follower(2, 1)
    return hosting


@pytest.fixture
def caught_up(replicated: Hosting) -> Hosting:
    """The same, and the high watermark has reached the start of epoch 1."""
    replicated.replicas.partition("t", 0).update_follower(2, 2)
    return replicated


def test_the_latest_offset_is_the_end_of_what_the_reader_may_see(caught_up: Hosting) -> None:
    assert look_up(caught_up, LATEST) == (2, -1, 1)
    assert look_up(caught_up, LATEST, COMMITTED) == (2, -1, 1)
    assert look_up(caught_up, LATEST, FOLLOWER) == (3, -1, 1)


@pytest.mark.parametrize("isolation", [UNCOMMITTED, COMMITTED])
@pytest.mark.parametrize("timestamp", [LATEST, MAX_TIMESTAMP, 1001, 9999])
def test_a_new_leader_does_not_know_the_end_at_once(replicated: Hosting, timestamp: int, isolation: int) -> None:
    """KIP-207: the leader before it may have answered with a later end than the one this leader knows."""
    with pytest.raises(KafkaError) as refused:
        look_up(replicated, timestamp, isolation)
    assert refused.value.code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert look_up(replicated, 0, isolation) == (0, 1000, 0), "that record is below the end in any case"
    assert look_up(replicated, EARLIEST, isolation) == (0, -1, 0)
    replicated.replicas.partition("t", 0).update_follower(2, 2)
    look_up(replicated, timestamp, isolation)


def test_only_a_leader_begins_an_epoch(replicated: Hosting) -> None:
    partition = replicated.replicas.partition("t", 0)
    assert partition.epoch_start_offset == 2
    replicated.change(replicated.image.topics.by_name["t"].topic_id, leader=2)
    assert partition.epoch_start_offset == -1
    assert look_up(replicated, LATEST) == (1, -1, 2), "a debugging reader asks a follower"


def test_a_log_that_is_opened_late_begins_the_epoch_at_its_end(replicated: Hosting) -> None:
    topic = replicated.replicas.topics["t"]
    opened = Partition(topic, 0, NODE, replicated.replicas)
    opened.update(replicated.image.topics.by_name["t"].partitions[0])
    assert opened.epoch_start_offset == -1
    with pytest.raises(KafkaError) as refused:
        lookup_offset(opened, LATEST, UNCOMMITTED)
    assert refused.value.code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert opened.epoch_start_offset == 3


def test_read_committed_ends_at_the_last_stable_offset(hosting: Hosting) -> None:
    hosting.create_topic("t")
    hosting.append("t", b"a", timestamp=1000)
    append_transaction(hosting, commit=None)
    assert look_up(hosting, LATEST, UNCOMMITTED) == (2, -1, 0)
    assert look_up(hosting, LATEST, COMMITTED) == (1, -1, 0)
    assert look_up(hosting, 1001, UNCOMMITTED).offset == 1
    assert look_up(hosting, 1001, COMMITTED) == NOTHING


@pytest.mark.parametrize("timestamp", [EARLIEST, EARLIEST_LOCAL])
def test_the_earliest_offset_is_the_start_of_the_log(replicated: Hosting, timestamp: int) -> None:
    assert look_up(replicated, timestamp) == (0, -1, 0)
    partition = replicated.replicas.partition("t", 0)
    partition.update_follower(2, 3)
    partition.log.delete_records_before(2)
    assert look_up(replicated, timestamp) == (2, -1, 1)


def test_the_earliest_offset_of_an_empty_log(hosting: Hosting) -> None:
    hosting.create_topic("t")
    assert look_up(hosting, EARLIEST).offset == 0
    assert look_up(hosting, MAX_TIMESTAMP) == look_up(hosting, 0) == NOTHING


def test_the_first_record_at_or_after_a_time(replicated: Hosting) -> None:
    assert [look_up(replicated, time, FOLLOWER) for time in (0, 1000, 1001, 3000)] == [
        (0, 1000, 0),
        (0, 1000, 0),
        (1, 3000, 0),
        (1, 3000, 0),
    ]
    assert look_up(replicated, 3001, FOLLOWER) == NOTHING


def test_a_record_that_the_reader_may_not_see_is_no_answer(caught_up: Hosting) -> None:
    caught_up.append("t", b"d", timestamp=4000)
    assert look_up(caught_up, 1001) == (1, 3000, 0)
    assert look_up(caught_up, 3001) == NOTHING
    assert look_up(caught_up, MAX_TIMESTAMP) == NOTHING
    assert look_up(caught_up, MAX_TIMESTAMP, FOLLOWER) == (3, 4000, 1)


@pytest.mark.parametrize("timestamp", [-5, -6])
def test_special_times_that_mean_nothing_here(replicated: Hosting, timestamp: int) -> None:
    assert look_up(replicated, timestamp, FOLLOWER) == NOTHING
