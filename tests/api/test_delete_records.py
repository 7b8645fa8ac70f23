from __future__ import annotations

import asyncio

import pytest

from barnabas.api import delete_records
from barnabas.log.log_config import LogConfig
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import DeleteRecordsRequest, DeleteRecordsResponse
from barnabas.steps import step
from tests.replication.hosting import Hosting


def delete(hosting: Hosting, offset: int, topic: str = "t", index: int = 0, version: int = 2) -> tuple[str, int]:
    asked = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=index, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[asked])], timeout_ms=1000
    )
    decoded = DeleteRecordsRequest.decode(request.encode(version), version)
    response = step(delete_records.handle(hosting.context(21, version), decoded), hosting.loop)
    assert not isinstance(response, asyncio.Future)
    (answered,) = DeleteRecordsResponse.decode(response.encode(version), version).topics[0].partitions
    return ErrorCode(answered.error_code).name, answered.low_watermark


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_log_start_only_moves_forward(hosting: Hosting, version: int) -> None:
    hosting.create_topic("t")
    hosting.append("t", *[b"v"] * 10)
    assert delete(hosting, 3, version=version) == ("NONE", 3)
    assert delete(hosting, 1, version=version) == ("NONE", 3)
    assert delete(hosting, -1, version=version) == ("NONE", 10)
    assert hosting.replicas.partition("t", 0).log.log_start_offset == 10


def test_an_offset_above_the_high_watermark_is_out_of_range(hosting: Hosting) -> None:
    hosting.create_topic("t")
    hosting.append("t", b"v")
    assert delete(hosting, 2) == ("OFFSET_OUT_OF_RANGE", -1)
    assert delete(hosting, -2) == ("OFFSET_OUT_OF_RANGE", -1)
    assert delete(hosting, 1) == ("NONE", 1)


def test_a_topic_that_is_only_compacted_is_rejected(hosting: Hosting) -> None:
    hosting.create_topic("compacted", config=LogConfig(cleanup_policy=frozenset({"compact"})))
    hosting.create_topic("both", config=LogConfig(cleanup_policy=frozenset({"compact", "delete"})))
    hosting.create_topic("__consumer_offsets")
    assert delete(hosting, 0, "compacted") == ("POLICY_VIOLATION", -1)
    assert delete(hosting, 0, "both") == ("NONE", 0)
    assert delete(hosting, 0, "__consumer_offsets") == ("INVALID_TOPIC_EXCEPTION", -1)


def test_unknown(hosting: Hosting) -> None:
    hosting.create_topic("t")
    assert delete(hosting, 0, "nowhere") == ("UNKNOWN_TOPIC_OR_PARTITION", -1)
    assert delete(hosting, 0, index=4) == ("UNKNOWN_TOPIC_OR_PARTITION", -1)
