"""A client that asks for the end of each partition over and over, and writes down what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages import ListOffsetsRequest, ListOffsetsResponse
from tests.simulation.client import Connect
from tests.simulation.history import History, Partition
from tests.simulation.workload import LOST

CONSUMER = -1
"""The replica id of a consumer: a follower would also be told what is not committed."""
LATEST = -1
WATCHER = "watcher"
"""Its name in the history."""


class EndWatcher:
    """Asks for the ends of some partitions in turn.

    Args:
        pause_seconds: between two rounds.
    """

    def __init__(self, partitions: Sequence[Partition], history: History, pause_seconds: float) -> None:
        self._partitions, self._history, self._pause_seconds = partitions, history, pause_seconds

    async def run(self, connect: Connect, loop: Any) -> None:
        client = connect(WATCHER)
        while True:
            for partition in self._partitions:
                wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=partition.index, timestamp=LATEST)
                topic = ListOffsetsRequest.ListOffsetsTopic(name=partition.topic, partitions=[wanted])
                request = ListOffsetsRequest(replica_id=CONSUMER, topics=[topic])
                try:
                    answer = await client.request(ApiKey.LIST_OFFSETS, 5, request, ListOffsetsResponse)
                except LOST:
                    continue
                found = answer.topics[0].partitions[0]
                if not found.error_code:
                    self._history.ends_seen.setdefault((WATCHER, partition), []).append(int(found.offset))
            await asyncio.sleep(self._pause_seconds)
