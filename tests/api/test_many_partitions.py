"""No request holds the loop for long because the cluster has many partitions, however short the request is.

As in `test_longest_turns`, a turn's calls are counted, and what a turn may cost is little. A cluster with twice the partitions must not
make a turn longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.api import APIS
from barnabas.metadata import metadata_loader
from barnabas.metadata.batches import CHANGE
from barnabas.protocol.messages import (
    DeleteTopicsRequest,
    DescribeTopicPartitionsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
    ListOffsetsRequest,
    MetadataRequest,
)
from barnabas.turns import ELEMENT
from tests.api.served_node import Serving
from tests.api.turn_meter import TurnMeter, counted_calls
from tests.short_turns import set_turn

PARTITIONS = 400
"""Of one topic; and as many topics have one each."""

COST = 10 * ELEMENT
"""Of a turn."""

GROWTH_MAX = PARTITIONS
"""How many calls the longest turn may have more with twice the partitions: not one for each that there are more."""

BROKER = 4


class Many:
    """A node with many partitions: a topic that has many, and many topics."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self.partitions = partitions
        self.loop = TurnMeter()
        self.serving = Serving(folder, loop=self.loop, max_request_partition_size_limit="1000000")
        self.serving.create_topic("wide", partitions)
        self.serving.create_topic("doomed", partitions)
        for number in range(partitions):
            self.serving.create_topic(f"narrow-{number}")

    def calls(self, request: Any, times: int = 2) -> int:
        """Return the calls of the longest turn of a request. It is sent twice, because the first one of an API compiles its codec."""
        key = request.API_KEY
        version = APIS[key].max_version
        body = request.encode(version)
        for _ in range(times):
            with counted_calls() as meter:
                self.loop.reset(meter)
                self.serving.send(key, version, body)
                self.loop.run_until_complete(self._followed())
        return self.loop.longest // 2

    async def _followed(self) -> None:
        """Let the brokers apply what the request has changed."""
        for _ in range(self.partitions):
            await asyncio.sleep(0)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Many, Many]]:
    with pytest.MonkeyPatch.context() as patch:
        few = Many(tmp_path_factory.mktemp("few"), PARTITIONS)
        many = Many(tmp_path_factory.mktemp("many"), 2 * PARTITIONS)
        set_turn(patch, COST)
        patch.setattr(metadata_loader, "RECORDS_PER_PUBLICATION", COST // CHANGE)
        yield few, many
        few.serving.close()
        many.serving.close()


def topics(node: Many) -> list[Any]:
    return list(node.serving.server.services.image().topics.by_name.values())


def named(node: Many) -> Any:
    return MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic.name) for topic in topics(node)])


def identified(node: Many) -> Any:
    wanted = [MetadataRequest.MetadataRequestTopic(name=None, topic_id=topic.topic_id) for topic in topics(node)]
    return MetadataRequest(topics=wanted)


def page(node: Many) -> Any:
    return DescribeTopicPartitionsRequest(topics=[], response_partition_limit=1_000_000)


def offsets(node: Many) -> Any:
    Topic, Partition = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsPartition
    asked = [Partition(partition_index=index, timestamp=-1) for index in range(node.partitions)]
    return ListOffsetsRequest(replica_id=-1, topics=[Topic(name="wide", partitions=asked)])


def elections(node: Many) -> Any:
    return ElectLeadersRequest(election_type=1, topic_partitions=None, timeout_ms=1000)


def broker_setting(name: str) -> Callable[[Many], Any]:
    def request(node: Many) -> Any:
        change = IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value="2")
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=BROKER, resource_name="", configs=[change]
        )
        return IncrementalAlterConfigsRequest(resources=[resource])

    return request


@pytest.mark.slow
@pytest.mark.parametrize(
    "request_for",
    [
        pytest.param(lambda node: MetadataRequest(topics=None), id="Metadata, all"),
        pytest.param(named, id="Metadata, by name"),
        pytest.param(identified, id="Metadata, by id"),
        pytest.param(page, id="DescribeTopicPartitions"),
        pytest.param(lambda node: ListConfigResourcesRequest(), id="ListConfigResources"),
        pytest.param(offsets, id="ListOffsets"),
        pytest.param(elections, id="ElectLeaders"),
        pytest.param(broker_setting("log.retention.ms"), id="IncrementalAlterConfigs"),
        pytest.param(broker_setting("min.insync.replicas"), id="IncrementalAlterConfigs, min.insync.replicas"),
    ],
)
def test_more_partitions_do_not_make_a_turn_longer(
    nodes: tuple[Many, Many], request_for: Callable[[Many], Any]
) -> None:
    few, many = (node.calls(request_for(node)) for node in nodes)
    assert many - few < GROWTH_MAX, f"{many} calls in one turn, {few} with half the partitions"


@pytest.mark.slow
def test_the_deletion_of_a_large_topic(nodes: tuple[Many, Many]) -> None:
    def deletion(name: str) -> Any:
        return DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=name)], timeout_ms=1000)

    for node in nodes:
        node.serving.ask(deletion("unknown"))
    few, many = (node.calls(deletion("doomed"), times=1) for node in nodes)
    assert many - few < GROWTH_MAX, f"{many} calls in one turn, {few} with half the partitions"
