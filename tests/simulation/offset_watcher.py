"""A client that reads the committed offsets of groups over and over, and writes down what their coordinators answer.

A coordinator that does not know yet that it was replaced answers with what was committed in its time, here as in Apache Kafka. So an
answer is written down only if the broker led the group's partition in its newest epoch, and knew it, both before and after the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.messages import OffsetFetchRequest, OffsetFetchResponse
from tests.simulation.cluster_client import Address, ClusterClient
from tests.simulation.history import History
from tests.simulation.workload import LOST, Committer

CoordinatorOf = Callable[[str], tuple[Address, int] | None]
"""Returns the address and the epoch of a group's coordinator; None while no node acts as its coordinator."""


WATCHER = "offset-watcher"
"""Its client id."""


class OffsetWatcher:
    """Asks for the offsets of some groups in turn.

    Args:
        pause_seconds: between two rounds.
    """

    def __init__(
        self,
        committers: Sequence[Committer],
        history: History,
        coordinator_of: CoordinatorOf,
        pause_seconds: float,
    ) -> None:
        self._committers, self._history, self._coordinator_of = committers, history, coordinator_of
        self._pause_seconds = pause_seconds

    async def run(self, connect: Callable[[str], ClusterClient], loop: Any) -> None:
        client = connect(WATCHER)
        while True:
            for committer in self._committers:
                try:
                    await self._ask(client, committer)
                except LOST:
                    continue
            await asyncio.sleep(self._pause_seconds)

    async def _ask(self, client: ClusterClient, committer: Committer) -> None:
        group, partition = committer.group, committer.partition
        topic = OffsetFetchRequest.OffsetFetchRequestTopics(name=partition.topic, partition_indexes=[partition.index])
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[topic])
        request = OffsetFetchRequest(groups=[wanted])
        before = self._coordinator_of(group)
        answer = await client.request(ApiKey.OFFSET_FETCH, 8, request, OffsetFetchResponse)
        found = answer.groups[0]
        is_current = before is not None and before == self._coordinator_of(group) and client.last_asked == before[0]
        if is_current and not found.error_code and not found.topics[0].partitions[0].error_code:
            offset = int(found.topics[0].partitions[0].committed_offset)
            self._history.commits_read.setdefault((group, partition), []).append(offset)
