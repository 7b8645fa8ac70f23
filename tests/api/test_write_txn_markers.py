"""WriteTxnMarkers over real logs: each marker ends a transaction in a partition, or fails alone."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import WriteTxnMarkersRequest
from tests.api.transaction_hosting import TransactionHosting
from tests.replication.hosting import Hosting

OK = ErrorCode.NONE
Marker = WriteTxnMarkersRequest.WritableTxnMarker
Topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic


@pytest.fixture
def host(hosting: Hosting) -> TransactionHosting:
    return TransactionHosting(hosting)


def marker(producer: tuple[int, int], *partitions: int, topic: str = "t", **fields: Any) -> Any:
    fields.setdefault("coordinator_epoch", 0)
    topics = [Topic(name=topic, partition_indexes=list(partitions or (0,)))]
    return Marker(producer_id=producer[0], producer_epoch=producer[1], topics=topics, **fields)


def write(host: TransactionHosting, *markers: Any, version: int = 1) -> dict[tuple[int, str, int], ErrorCode]:
    """Return the code of each marker's partition; a producer has one entry, and each of its topics, too."""
    answered = host.ask(27, WriteTxnMarkersRequest(markers=list(markers)), version).markers
    assert len({each.producer_id for each in answered}) == len(answered)
    found: dict[tuple[int, str, int], ErrorCode] = {}
    for each in answered:
        assert len({topic.name for topic in each.topics}) == len(each.topics)
        for topic in each.topics:
            for part in topic.partitions:
                key = (each.producer_id, topic.name, part.partition_index)
                assert key not in found
                found[key] = ErrorCode(part.error_code)
    return found


def test_an_administrator_ends_a_hanging_transaction(host: TransactionHosting) -> None:
    producer = host.producer()
    host.produce(producer, 0, b"a")
    assert write(host, marker(producer)) == {(producer[0], "t", 0): OK}
    assert host.contents() == ["a", "ABORT/0"]
    assert host.log().last_stable_offset == 2


def test_each_marker_has_its_own_outcome_and_its_own_partitions(host: TransactionHosting) -> None:
    one, two = host.producer("one"), host.producer("two")
    for index in (0, 1):
        host.produce(one, 0, b"1", index=index, transactional_id="one")
    host.produce(two, 0, b"2", transactional_id="two")
    commit = marker(one, 0, 1, transaction_result=True)
    assert write(host, commit, marker(two)) == {(one[0], "t", 0): OK, (one[0], "t", 1): OK, (two[0], "t", 0): OK}
    assert host.contents() == ["1", "2", "COMMIT/0", "ABORT/0"]
    assert host.contents(index=1) == ["1", "COMMIT/0"]


def test_a_partition_that_fails_stops_no_other(host: TransactionHosting) -> None:
    producer = host.producer()
    host.produce(producer, 0, b"a")
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    written = write(host, marker(producer, 0, topic="nobody"), marker(producer, 7, 0), marker((77, 0), topic="gone"))
    id_ = producer[0]
    assert written == {(id_, "nobody", 0): unknown, (id_, "t", 7): unknown, (id_, "t", 0): OK, (77, "gone", 0): unknown}
    assert host.contents() == ["a", "ABORT/0"]


def test_a_marker_of_version_2_needs_a_newer_epoch(host: TransactionHosting) -> None:
    producer = host.producer()
    key = (producer[0], "t", 0)
    host.produce(producer, 0, b"a")
    late = write(host, marker(producer, transaction_version=2), version=2)
    assert late == {key: ErrorCode.INVALID_PRODUCER_EPOCH}
    bumped = marker((producer[0], 1), transaction_version=2)
    assert write(host, bumped, version=2) == {key: OK}
    assert write(host, bumped, version=2) == {key: OK}, "a repeated marker does no harm"


def test_a_request_of_version_1_says_nothing_of_the_transaction_version(host: TransactionHosting) -> None:
    """The epoch of the batches is enough then, as in version 2 of the request with transaction version 0."""
    producer = host.producer()
    host.produce(producer, 0, b"a")
    assert write(host, marker(producer), version=1) == {(producer[0], "t", 0): OK}
    assert write(host, marker(producer, transaction_version=0), version=2) == {(producer[0], "t", 0): OK}


def test_a_replaced_coordinator_is_fenced(host: TransactionHosting) -> None:
    producer = host.producer()
    key = (producer[0], "t", 0)
    assert write(host, marker(producer, coordinator_epoch=5)) == {key: OK}
    assert write(host, marker(producer, coordinator_epoch=4)) == {key: ErrorCode.TRANSACTION_COORDINATOR_FENCED}


def test_offsets_wait_for_their_coordinator(host: TransactionHosting) -> None:
    host.coordinator.on_resigned(0)
    wanted = marker((1, 0), 0, 1, topic="__consumer_offsets")
    assert write(host, wanted) == {
        (1, "__consumer_offsets", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER,
        (1, "__consumer_offsets", 1): OK,
    }
