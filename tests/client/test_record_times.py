"""The time of the record at an offset, in every version of Fetch that names topics."""

from typing import Any

import pytest

from barnabas.client.admin import Admin
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode
from barnabas.records.builder import build_batch
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import T0, T1, error_code, every_version, only


def answer(memory: MemoryCluster, records: dict[int, bytes | bytearray | None], error: int = 0) -> list[Any]:
    """Answer fetches with these records by partition; return the requests."""
    response = messages.FetchResponse
    seen: list[Any] = []

    def fetch(broker_id: int, request: Any, version: int) -> Any:
        seen.append(request)
        (topic,) = request.topics
        (asked,) = topic.partitions
        found = response.PartitionData(
            partition_index=asked.partition, error_code=error, high_watermark=9, records=records[asked.partition]
        )
        return response(responses=[response.FetchableTopicResponse(topic="t", partitions=[found])])

    memory.handlers["FetchRequest"] = fetch
    return seen


def batch(*timestamps: int, **more: Any) -> bytearray:
    return build_batch([(each, None, b"v", ()) for each in timestamps], **more)


@pytest.mark.parametrize("version", every_version(messages.FetchRequest))
def test_every_version(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.FetchRequest, version)
    seen = answer(memory, {0: batch(1_000, base_offset=5), 1: batch(7_000, 9_000, base_offset=5)})
    assert admin.record_times({T0: 5, T1: 6}) == {T0: 1_000, T1: 9_000}
    assert {(each.max_bytes, each.topics[0].partitions[0].fetch_offset) for each in seen} == {(1, 5), (1, 6)}


@pytest.mark.parametrize(
    ("records", "offset", "time"),
    [
        (batch(1_000, 5_000, 9_000, base_offset=10), 11, 5_000),
        (batch(1_000, 5_000, 9_000, base_offset=10), 3, 1_000),
        (batch(1_000, 9_000, base_offset=10, log_append_time=True), 10, 9_000),
        (batch(-1, base_offset=10), 10, None),
        (None, 10, None),
        (b"", 10, None),
        (batch(1_000)[:60], 0, None),
    ],
    ids=["in a batch", "before it", "append time", "without time", "null", "nothing", "cut"],
)
def test_the_time_in_a_batch(memory: MemoryCluster, admin: Admin, records: bytes, offset: int, time: int) -> None:
    only(memory, messages.FetchRequest, 18)
    answer(memory, {0: records})
    assert admin.record_times({T0: offset}) == {T0: time}


def test_an_error_is_the_partitions(memory: MemoryCluster, admin: Admin) -> None:
    only(memory, messages.FetchRequest, 18)
    answer(memory, {0: None}, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert error_code(admin.record_times({T0: 5})[T0]) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert admin.record_times({}) == {}
