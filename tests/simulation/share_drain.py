"""The last member of a share group: it accepts all that the others have left, and then the group has finished every record."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.share.acknowledgement import AcknowledgeType
from tests.simulation.checkers.shared_records import unfinished
from tests.simulation.client import Asks
from tests.simulation.cluster_client import ClusterClient
from tests.simulation.history import History, Partition
from tests.simulation.share_member import SHARE_GROUP, LeaderOf, ShareReader
from tests.simulation.workload import LOST

DRAIN_SECONDS = 45.0
"""More than all locks, retries of the persister, and new leaders take together."""
GROUP_RESOURCE = 32


async def read_from_the_start(client: Asks) -> bool:
    """Let the group begin at the start of each log; return whether that is done."""
    setting = IncrementalAlterConfigsRequest.AlterableConfig(name="share.auto.offset.reset", value="earliest")
    group = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name=SHARE_GROUP, configs=[setting]
    )
    request = IncrementalAlterConfigsRequest(resources=[group])
    answer = await client.request(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request, IncrementalAlterConfigsResponse)
    return not answer.responses[0].error_code


class ShareDrain:
    """Reads through one client, and writes into the history."""

    def __init__(self, client: ClusterClient, history: History, rng: random.Random, leader_of: LeaderOf) -> None:
        self._client, self._history = client, history
        self._reader = ShareReader(history, rng, leader_of)
        self._reader.member_id = "drain"

    async def read(self, partitions: Iterable[Partition]) -> None:
        """Accept everything in these partitions, and write down where that does not come to an end."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + DRAIN_SECONDS
        for partition in partitions:
            if not self._history.final_logs.get(partition):
                continue  # The start of a log that never had a record is not written: nobody knows the lag.
            lag = -1
            while loop.time() < deadline:
                try:
                    await self._accept(partition)
                    lag = await self._lag(partition)
                except LOST:
                    await asyncio.sleep(0.1)
                    continue
                if lag == 0:
                    break
            if lag:
                self._history.shared.left.append(f"{partition} keeps a lag of {lag}")
            else:
                self._history.shared.drained[partition] = None

    async def _accept(self, partition: Partition) -> None:
        while True:
            address, holds = await self._reader.fetch(self._client, partition, wait_ms=500)
            if not holds:
                return
            for each in dict.fromkeys(hold.partition for hold in holds):
                accepted = [(hold, AcknowledgeType.ACCEPT) for hold in holds if hold.partition == each]
                await self._reader.finish(self._client, address, accepted)

    async def _lag(self, partition: Partition) -> int:
        """Return how many records are not finished; -1 if nobody knows.

        A log start that has moved is written with the next acknowledgement, as in Apache Kafka. What is below it may count until then,
        and none comes once each record above it is finished.
        """
        of = DescribeShareGroupOffsetsRequest
        topic = of.DescribeShareGroupOffsetsRequestTopic(topic_name=partition.topic, partitions=[partition.index])
        request = of(groups=[of.DescribeShareGroupOffsetsRequestGroup(group_id=SHARE_GROUP, topics=[topic])])
        answer = await self._client.request(
            ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, request, DescribeShareGroupOffsetsResponse
        )
        group = answer.groups[0]
        if group.error_code or not group.topics or group.topics[0].partitions[0].error_code != ErrorCode.NONE:
            return -1
        found = group.topics[0].partitions[0]
        log_start, _ = self._history.final_bounds[partition]
        if 0 < found.lag <= log_start - found.start_offset and not unfinished(self._history, partition):
            return 0
        return int(found.lag)
