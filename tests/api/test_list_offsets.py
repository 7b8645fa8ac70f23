from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.api import list_offsets
from barnabas.log.partition_log import AppendOrigin
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ListOffsetsRequest, ListOffsetsResponse
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from barnabas.steps import step
from tests.replication.hosting import NODE, Hosting, batch

LATEST = 11


def ask(
    hosting: Hosting,
    timestamp: int,
    *,
    version: int = 9,
    topic: str = "t",
    index: int = 0,
    isolation_level: int = 0,
    epoch: int = -1,
    replica_id: int = -1,
    times: int = 1,
) -> list[Any]:
    asked = ListOffsetsRequest.ListOffsetsPartition(
        partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
    )
    request = ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[asked] * times)],
    )
    decoded = ListOffsetsRequest.decode(request.encode(version), version)
    response = step(list_offsets.handle(hosting.context(2, version), decoded), hosting.loop)
    assert not isinstance(response, asyncio.Future)
    read = ListOffsetsResponse.decode(response.encode(version), version)
    return [
        (ErrorCode(p.error_code).name, p.offset, p.timestamp, p.leader_epoch) for t in read.topics for p in t.partitions
    ]


def found(hosting: Hosting, timestamp: int, **options: Any) -> tuple[int, int, int]:
    ((error, *rest),) = ask(hosting, timestamp, **options)
    assert error == "NONE"
    return tuple(rest)  # type: ignore[return-value]


@pytest.fixture
def filled(hosting: Hosting) -> Hosting:
    """Offsets 0 to 5 with timestamps 100, 300, 200 | 500, 400, 500 after the start of 2026, the second batch compressed."""
    hosting.create_topic("t", 2)
    start = hosting.now_ms()
    for codec, times in ((Compression.NONE, (100, 300, 200)), (Compression.LZ4, (500, 400, 500))):
        records = [(start + time, b"k", b"v", []) for time in times]
        hosting.replicas.append("t", 0, memoryview(build_batch(records, compression=codec)), 1)
    return hosting


@pytest.mark.parametrize("version", range(1, LATEST + 1))
def test_ends_in_every_version(filled: Hosting, version: int) -> None:
    epoch = 0 if version >= 4 else -1
    assert found(filled, -1, version=version) == (6, -1, epoch)
    assert found(filled, -2, version=version) == (0, -1, epoch)


@pytest.mark.parametrize(("timestamp", "since"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 99)])
def test_special_timestamps_need_their_version(filled: Hosting, timestamp: int, since: int) -> None:
    for version in range(1, LATEST + 1):
        ((error, *_),) = ask(filled, timestamp, version=version)
        assert error == ("NONE" if version >= since else "UNSUPPORTED_VERSION")


@pytest.mark.parametrize(
    ("after_ms", "offset", "at_ms"),
    [(0, 0, 100), (100, 0, 100), (101, 1, 300), (300, 1, 300), (301, 3, 500), (500, 3, 500)],
)
def test_by_time_to_the_record(filled: Hosting, after_ms: int, offset: int, at_ms: int) -> None:
    start = filled.now_ms()
    assert found(filled, start + after_ms) == (offset, start + at_ms, 0)


def test_no_record_at_or_after_the_timestamp(filled: Hosting) -> None:
    assert found(filled, filled.now_ms() + 501) == (-1, -1, -1)


def test_the_largest_timestamp(filled: Hosting) -> None:
    assert found(filled, -3) == (3, filled.now_ms() + 500, 0)


def test_nothing_is_tiered(filled: Hosting) -> None:
    assert found(filled, -4) == (0, -1, 0)
    assert found(filled, -5) == (-1, -1, -1)
    assert found(filled, -6, version=11) == (-1, -1, -1)


def test_an_empty_partition(filled: Hosting) -> None:
    assert found(filled, -1, index=1) == (0, -1, 0)
    assert found(filled, -2, index=1) == (0, -1, 0)
    assert found(filled, -3, index=1) == (-1, -1, -1)
    assert found(filled, 0, index=1) == (-1, -1, -1)


def test_the_log_start_counts(filled: Hosting) -> None:
    filled.replicas.partition("t", 0).log.delete_records_before(2)
    start = filled.now_ms()
    assert found(filled, -2) == (2, -1, 0)
    assert found(filled, start) == (2, start + 200, 0)


def test_isolation_level_1_ends_at_the_last_stable_offset(filled: Hosting) -> None:
    records = batch(
        b"open", timestamp=filled.now_ms(), producer_id=1, producer_epoch=0, base_sequence=0, transactional=True
    )
    filled.replicas.append("t", 0, records, 1, AppendOrigin.COORDINATOR)
    assert found(filled, -1)[0] == 7
    assert found(filled, -1, isolation_level=1)[0] == 6
    assert found(filled, -1, version=1)[0] == 7, "version 1 has no isolation level"


def test_uncommitted_records_are_not_found(hosting: Hosting) -> None:
    hosting.create_topic("t", replicas=(NODE, 2))
    hosting.append("t", b"a")
    hosting.advance(10)
    hosting.append("t", b"b")
    hosting.replicas.partition("t", 0).update_follower(2, 1)
    assert found(hosting, -1)[0] == 1
    assert found(hosting, hosting.now_ms())[0] == -1, "found, but above the high watermark"
    assert found(hosting, -1, replica_id=-2)[0] == 2, "a debugging reader sees all"


@pytest.mark.parametrize("version", range(1, LATEST + 1))
def test_a_new_leader_that_may_not_know_the_end_yet(hosting: Hosting, version: int) -> None:
    """KIP-207."""
    id_ = hosting.create_topic("t", replicas=(NODE, 2))
    hosting.append("t", b"a")
    hosting.change(id_, leader=NODE)
    code = "OFFSET_NOT_AVAILABLE" if version >= 5 else "LEADER_NOT_AVAILABLE"
    assert ask(hosting, -1, version=version) == [(code, -1, -1, -1)]
    assert ask(hosting, 0, version=version) == [(code, -1, -1, -1)]
    assert found(hosting, -2, version=version)[0] == 0
    assert found(hosting, -1, version=version, replica_id=-2)[0] == 1, "a debugging reader sees all"
    hosting.replicas.partition("t", 0).update_follower(2, 1)
    assert found(hosting, -1, version=version)[0] == 1
    assert found(hosting, 0, version=version)[0] == 0


@pytest.mark.parametrize("version", [1, LATEST])
def test_a_sole_replica_knows_the_end_at_once(hosting: Hosting, version: int) -> None:
    id_ = hosting.create_topic("t")
    hosting.append("t", b"a")
    hosting.change(id_, leader=NODE)
    assert found(hosting, -1, version=version)[0] == 1


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"topic": "nowhere"}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"index": 9}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"epoch": 5}, "UNKNOWN_LEADER_EPOCH"),
        ({"times": 2}, "INVALID_REQUEST"),
    ],
)
def test_invalid_requests_are_rejected(filled: Hosting, options: dict[str, Any], code: str) -> None:
    assert ask(filled, -1, **options) == [(code, -1, -1, -1)]


def test_an_older_epoch_is_fenced(hosting: Hosting) -> None:
    id_ = hosting.create_topic("t", replicas=(NODE, 2))
    hosting.change(id_, leader=NODE)
    assert ask(hosting, -1, epoch=0) == [("FENCED_LEADER_EPOCH", -1, -1, -1)]
    assert ask(hosting, -1, epoch=-2) == [("FENCED_LEADER_EPOCH", -1, -1, -1)]
    hosting.change(id_, leader=2)
    assert ask(hosting, -1) == [("NOT_LEADER_OR_FOLLOWER", -1, -1, -1)]
