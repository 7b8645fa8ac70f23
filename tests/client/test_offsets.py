"""Offsets of partitions in every version of ListOffsets, and DeleteRecords."""

from typing import Any

import pytest

from barnabas.client.admin import EARLIEST, LATEST, MAX_TIMESTAMP, Admin, result
from barnabas.protocol import messages
from barnabas.protocol.errors import KafkaError
from tests.client.scripted_broker import MemoryCluster
from tests.client.versions import T0, T1, every_version, only


@pytest.mark.parametrize("version", every_version(messages.ListOffsetsRequest))
def test_list_offsets(memory: MemoryCluster, admin: Admin, version: int) -> None:
    only(memory, messages.ListOffsetsRequest, version)
    response = messages.ListOffsetsResponse

    def list_offsets(broker_id: int, request: Any, version: int) -> Any:
        return response(
            topics=[
                response.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        response.ListOffsetsPartitionResponse(
                            partition_index=each.partition_index, offset=each.timestamp * 10 + broker_id, timestamp=5
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    memory.handlers["ListOffsetsRequest"] = list_offsets
    found = admin.list_offsets({T0: LATEST, T1: 123})
    assert [result(found[each]).offset for each in (T0, T1)] == [-9, 1232]
    assert result(admin.list_offsets({T1: EARLIEST})[T1]).offset == -18
    newest = admin.list_offsets({T0: MAX_TIMESTAMP})[T0]
    assert isinstance(newest, KafkaError) == (version < 7)


def test_delete_records(memory: MemoryCluster, admin: Admin) -> None:
    response = messages.DeleteRecordsResponse

    def delete(broker_id: int, request: Any, version: int) -> Any:
        (topic,) = request.topics
        return response(
            topics=[
                response.DeleteRecordsTopicResult(
                    name="t",
                    partitions=[
                        response.DeleteRecordsPartitionResult(
                            partition_index=each.partition_index, low_watermark=each.offset
                        )
                        for each in topic.partitions
                    ],
                )
            ]
        )

    memory.handlers["DeleteRecordsRequest"] = delete
    assert admin.delete_records({T0: 7, T1: 9}) == {T0: 7, T1: 9}
