"""Batches that must be opened and are large: the executor opens them, and the loop only appends."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    IncrementalAlterConfigsRequest,
    ListOffsetsRequest,
    ProduceRequest,
    ProduceResponse,
)
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from tests.api.held_executor import HeldExecutor
from tests.api.served_node import Serving

MANY = 600
NOW_MS = 1_700_000_000_000
VERSION = 9


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Serving]:
    made = Serving(tmp_path, loop=HeldExecutor(), barnabas_max_decompressed_factor="2")
    made.create_topic("c", 2, cleanup_policy="compact")
    made.create_topic("zstd", 1, compression_type="zstd")
    made.create_topic("plain", 1)
    loop_of(made).apart.clear()
    yield made
    made.close()


def loop_of(node: Serving) -> HeldExecutor:
    assert isinstance(node.loop, HeldExecutor)
    return node.loop


def batch(
    count: int, *, key: bytes | None = b"k", value: bytes = b"", codec: Compression = Compression.GZIP, **fields: int
) -> bytearray:
    return build_batch([(NOW_MS + index, key, value, []) for index in range(count)], compression=codec, **fields)


def request(topic: str, *batches: bytearray, acks: int = 1) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData
    partitions = [data(index=index, records=memoryview(records)) for index, records in enumerate(batches)]
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=partitions)]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)


def ask(node: Serving, topic: str, *batches: bytearray) -> list[Any]:
    response: ProduceResponse = node.ask(request(topic, *batches), VERSION)
    return list(response.responses[0].partition_responses)


def test_the_executor_opens_many_records_of_a_compacted_topic(node: Serving) -> None:
    first, second = ask(node, "c", batch(3), batch(MANY))
    assert (first.error_code, first.base_offset) == (0, 0)
    assert (second.error_code, second.base_offset) == (0, 0)
    assert loop_of(node).apart == ["RecordsToOpen.open"]
    assert ask(node, "c", batch(1), batch(1))[1].base_offset == MANY


def test_the_executor_compresses_a_large_batch_again(node: Serving) -> None:
    (small,) = ask(node, "zstd", batch(3, codec=Compression.NONE))
    assert (small.base_offset, loop_of(node).apart) == (0, [])
    (large,) = ask(node, "zstd", batch(3, value=bytes(10_000), codec=Compression.NONE))
    assert (large.error_code, large.base_offset, loop_of(node).apart) == (0, 3, ["RecordsToOpen.open"])


def test_batches_that_are_not_opened_stay_on_the_loop(node: Serving) -> None:
    ask(node, "plain", batch(MANY))
    assert loop_of(node).apart == []


def test_a_bad_record_in_a_large_batch_is_named(node: Serving) -> None:
    _, refused = ask(node, "c", batch(1), batch(MANY, key=None))
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in refused.record_errors] == list(range(MANY))


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD, Compression.SNAPPY])
def test_a_batch_that_opens_into_too_much_is_too_large(node: Serving, codec: Compression) -> None:
    # The setting allows twice max.message.bytes, 2 MB.
    value = bytes(3_000_000)
    if codec is Compression.SNAPPY:
        value = bytes(2_200_000)
    (refused,) = ask(node, "c", batch(1, value=value, codec=codec))
    assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE


def dispatch(node: Serving, body: ProduceRequest) -> Any:
    frame = struct.pack(">hhih", ApiKey.PRODUCE, VERSION, 1, 1) + b"t\0" + body.encode(VERSION)

    async def dispatched() -> Any:
        buffer = bytearray(frame)
        context, result = node.dispatcher.dispatch(node.connection, memoryview(buffer))
        buffer[:] = bytes(len(buffer))  # The connection reads the next bytes into it.
        return context, result

    return node.loop.run_until_complete(dispatched())


def test_the_connection_waits_and_the_records_survive_its_next_read(node: Serving) -> None:
    loop = loop_of(node)
    loop.held = []
    context, result = dispatch(node, request("c", batch(MANY)))
    assert isinstance(result, asyncio.Future)
    assert context.holds_order, "a later request may overtake this one"
    loop.let_go()
    loop.run_until_complete(asyncio.sleep(0.001))
    assert result.result()
    assert ask(node, "c", batch(1))[0].base_offset == MANY


def test_a_retry_over_another_connection_is_a_duplicate(node: Serving) -> None:
    producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    loop = loop_of(node)
    loop.held = []
    _, result = dispatch(node, request("c", batch(MANY, **producer)))
    _, retried = dispatch(node, request("c", batch(MANY, **producer)))
    loop.let_go()
    loop.run_until_complete(asyncio.sleep(0.001))
    result.result()
    retried.result()
    assert ask(node, "c", batch(1))[0].base_offset == MANY


def test_records_are_opened_again_when_the_settings_have_changed(node: Serving) -> None:
    loop = loop_of(node)
    loop.held = []
    _, result = dispatch(node, request("c", batch(MANY)))
    alter = IncrementalAlterConfigsRequest
    config = alter.AlterableConfig(name="max.message.bytes", value="2000000", config_operation=0)
    resource = alter.AlterConfigsResource(resource_type=2, resource_name="c", configs=[config])
    assert node.ask(alter(resources=[resource])).responses[0].error_code == 0
    loop.let_go()
    loop.run_until_complete(asyncio.sleep(0.001))
    result.result()
    assert loop.apart.count("RecordsToOpen.open") == 2
    assert ask(node, "c", batch(1))[0].base_offset == MANY


def test_acks_0_closes_the_connection_after_a_bad_large_batch(node: Serving) -> None:
    context, result = dispatch(node, request("c", batch(MANY, key=None), acks=0))
    assert result is None
    assert context.close_connection


def test_a_look_up_by_time_searches_a_large_batch_in_the_executor(node: Serving) -> None:
    ask(node, "plain", batch(MANY))
    partition = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=NOW_MS + 400)
    topic = ListOffsetsRequest.ListOffsetsTopic(name="plain", partitions=[partition])
    found = node.ask(ListOffsetsRequest(replica_id=-1, topics=[topic])).topics[0].partitions[0]
    assert (found.error_code, found.offset, found.timestamp) == (0, 400, NOW_MS + 400)
    assert loop_of(node).apart == ["RecordsToSearch.search"]


def test_a_request_of_many_partitions_keeps_its_place(node: Serving) -> None:
    loop = loop_of(node)
    loop.held = []
    context, result = dispatch(node, request("plain", *[batch(1, codec=Compression.NONE)] * 1_001))
    assert isinstance(result, asyncio.Future)
    assert context.holds_order, "a later request may overtake this one"
    loop.let_go()
    loop.run_until_complete(asyncio.sleep(0.001))
    output = result.result()
    assert output is not None
    response = ProduceResponse.decode(bytes(output[0])[9:], VERSION)
    (topic,) = response.responses
    codes = [partition.error_code for partition in topic.partition_responses]
    assert codes == [0] + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 1_000


def test_many_partitions_without_acks_close_the_connection_if_one_fails(node: Serving) -> None:
    context, result = dispatch(node, request("plain", *[batch(1, codec=Compression.NONE)] * 1_001, acks=0))
    if isinstance(result, asyncio.Future):
        node.loop.run_until_complete(asyncio.sleep(0.001))
        result = result.result()
    assert result is None
    assert context.close_connection
