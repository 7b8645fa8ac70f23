"""A client that removes voters from the quorum; each controller adds itself again (KIP-853, `controller.quorum.auto.join.enable`).

It removes a voter only if there are more than two, so that a majority is left if one node is down. It may remove the leader.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from tests.simulation.client import Asks, Connect
from tests.simulation.history import History
from tests.simulation.workload import LOST, NOT_YET

LEAST_VOTERS = 3
EXPECTED = NOT_YET | {
    ErrorCode.NONE,
    # An earlier request, whose answer was lost, has removed the voter; or the leader made another change first.
    ErrorCode.VOTER_NOT_FOUND,
}


class VoterMover:
    """Removes one voter after the other until stopped.

    Args:
        pause_seconds: the longest pause between two.
    """

    name = "the mover of voters"

    def __init__(self, cluster_id: str, history: History, rng: random.Random, pause_seconds: float = 3.0) -> None:
        self._cluster_id, self._history, self._rng, self._pause_seconds = cluster_id, history, rng, pause_seconds

    async def run(self, connect: Connect, loop: Any) -> None:
        client = connect("voter-mover")
        while True:
            await asyncio.sleep(self._rng.random() * self._pause_seconds)
            try:
                voters = await self._voters(client)
                if len(voters) < LEAST_VOTERS:
                    continue
                error = await self._remove(client, *self._rng.choice(voters))
            except LOST:
                continue
            if error not in EXPECTED:
                raise AssertionError(f"the removal of a voter was answered {ErrorCode(error).name}")
            self._history.removed_voters += error == ErrorCode.NONE

    async def _voters(self, client: Asks) -> list[tuple[int, bytes]]:
        """Return the voters' ids and directory ids; none if nobody leads the quorum now."""
        partition = DescribeQuorumRequest.PartitionData(partition_index=0)
        topic = DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])
        request = DescribeQuorumRequest(topics=[topic])
        answer = await client.request(ApiKey.DESCRIBE_QUORUM, 2, request, DescribeQuorumResponse)
        if answer.error_code or answer.topics[0].partitions[0].error_code:
            return []
        voters = answer.topics[0].partitions[0].current_voters
        return [(voter.replica_id, bytes(voter.replica_directory_id)) for voter in voters]

    async def _remove(self, client: Asks, voter_id: int, directory_id: bytes) -> int:
        asyncio.get_running_loop().note(f"asks to remove the voter {voter_id}")  # type: ignore[attr-defined]
        request = RemoveRaftVoterRequest(
            cluster_id=self._cluster_id, voter_id=voter_id, voter_directory_id=directory_id
        )
        answer = await client.request(ApiKey.REMOVE_RAFT_VOTER, 0, request, RemoveRaftVoterResponse)
        return int(answer.error_code)
