"""A client that moves partitions: it reassigns replicas and elects preferred leaders, and only counts the moves that were accepted."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from tests.simulation.client import Asks, Connect
from tests.simulation.history import History, Partition
from tests.simulation.workload import LOST, NOT_YET

PREFERRED = 0
EXPECTED = NOT_YET | {
    ErrorCode.NONE,
    ErrorCode.ELECTION_NOT_NEEDED,
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    # No reassignment is in progress, or the replicas cannot be assigned now.
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
}


class Mover:
    """Moves these partitions between these brokers.

    Args:
        replicas: the least and the most that a partition gets.
        pause_seconds: the longest pause between two moves.
    """

    name = "the mover of partitions"

    def __init__(
        self,
        partitions: Sequence[Partition],
        brokers: Sequence[int],
        replicas: tuple[int, int],
        history: History,
        rng: random.Random,
        pause_seconds: float = 5.0,
    ) -> None:
        self._partitions, self._brokers, self._replicas = partitions, brokers, replicas
        self._history, self._rng, self._pause_seconds = history, rng, pause_seconds

    async def run(self, connect: Connect, loop: Any) -> None:
        client = connect("mover")
        while True:
            await asyncio.sleep(self._rng.random() * self._pause_seconds)
            partition = self._rng.choice(list(self._partitions))
            try:
                error = await (self._elect if self._rng.random() < 0.4 else self._move)(client, partition)
            except LOST:
                continue
            if error not in EXPECTED:
                raise AssertionError(f"a move of {partition} was answered {ErrorCode(error).name}")
            self._history.moves += error == ErrorCode.NONE

    async def _move(self, client: Asks, partition: Partition) -> int:
        count = self._rng.randint(*self._replicas)
        replicas = self._rng.sample(list(self._brokers), count)
        asyncio.get_running_loop().note(f"asks for {partition.topic}-{partition.index} on {replicas}", is_detail=True)  # type: ignore[attr-defined]
        wanted = AlterPartitionReassignmentsRequest.ReassignablePartition(
            partition_index=partition.index, replicas=replicas
        )
        topic = AlterPartitionReassignmentsRequest.ReassignableTopic(name=partition.topic, partitions=[wanted])
        request = AlterPartitionReassignmentsRequest(timeout_ms=5000, topics=[topic])
        answer = await client.request(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request, AlterPartitionReassignmentsResponse
        )
        return int(answer.error_code or answer.responses[0].partitions[0].error_code)

    async def _elect(self, client: Asks, partition: Partition) -> int:
        wanted = ElectLeadersRequest.TopicPartitions(topic=partition.topic, partitions=[partition.index])
        request = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=[wanted], timeout_ms=5000)
        answer = await client.request(ApiKey.ELECT_LEADERS, 2, request, ElectLeadersResponse)
        results = answer.replica_election_results
        return int(answer.error_code or (results[0].partition_result[0].error_code if results else 0))
