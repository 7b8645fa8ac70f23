"""A client that deletes the records below an offset, now and then, and looks whether they stay deleted and nothing else is.

An acknowledged DeleteRecords is a promise while one replica that was in sync at that time has stayed so, and its process lives: a killed
process forgets log starts of the last minute, here as in Apache Kafka, and learns them again from its leader. So a promise is forgotten
when the last such replica is gone. When all are in sync, all know it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import DeleteRecordsRequest, DeleteRecordsResponse
from tests.simulation.cluster_client import Address, ClusterClient
from tests.simulation.history import History, Partition, StartSeen
from tests.simulation.judged_node import JudgedNode
from tests.simulation.transactions import end_offset, start_offset
from tests.simulation.workload import LOST, NOT_YET, fetch

LONGEST_PAUSE_SECONDS = 1.0
TRIM_RATE = 0.5
TIMEOUT_MS = 3000
Leader = tuple[Address, int]


class Trimmer:
    """Deletes, and asks for log starts and for what is deleted, until stopped.

    Args:
        newest: what the brokers know newest of a partition.
        leader_of: the address and the epoch of its leader; None while nobody leads, or the leader does not know it.
        are_in_sync: see `SimulatedCluster`.
    """

    name = "trimmer"

    def __init__(
        self,
        partitions: Sequence[Partition],
        brokers: Sequence[JudgedNode],
        history: History,
        rng: random.Random,
        *,
        newest: Callable[[Partition], PartitionRegistration | None],
        leader_of: Callable[[Partition], Leader | None],
        are_in_sync: Callable[[], bool],
    ) -> None:
        self._partitions, self._brokers, self._history, self._rng = partitions, brokers, history, rng
        self._newest, self._leader_of, self._are_in_sync = newest, leader_of, are_in_sync
        self._holders: dict[Partition, dict[JudgedNode, Any]] = {}

    def observe(self) -> None:
        """Find out who still knows what was promised; often."""
        for partition, holders in list(self._holders.items()):
            kept = self._in_sync(partition, holders)
            if len(kept) < len(self._brokers) and self._are_in_sync():
                kept = self._in_sync(partition, {node: node.loop for node in self._brokers}) if kept else {}
            self._holders[partition] = kept
            if not kept:
                self._history.trims_promised.pop(partition, None)
                del self._holders[partition]

    def _in_sync(self, partition: Partition, holders: dict[JudgedNode, Any]) -> dict[JudgedNode, Any]:
        newest = self._newest(partition)
        return {
            node: process
            for node, process in holders.items()
            if node.is_up and node.loop is process and (newest is None or node.node_id in newest.isr)
        }

    async def run(self, connect: Callable[[str], ClusterClient], loop: Any) -> None:
        client = connect(self.name)
        while True:
            await asyncio.sleep(self._rng.random() * LONGEST_PAUSE_SECONDS)
            partition = self._rng.choice(self._partitions)
            try:
                if self._rng.random() < TRIM_RATE:
                    await self._trim(client, partition)
                else:
                    await self._look(client, partition)
            except LOST:
                continue

    async def _trim(self, client: ClusterClient, partition: Partition) -> None:
        end = await end_offset(client, *partition)
        offset = self._rng.randint(max(0, end - 20), end)
        asked = self._history.trims_asked
        asked[partition] = max(asked.get(partition, 0), offset)
        wanted = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=partition.index, offset=offset)
        topic = DeleteRecordsRequest.DeleteRecordsTopic(name=partition.topic, partitions=[wanted])
        request = DeleteRecordsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
        before = self._leader_of(partition)
        answer = await client.request(ApiKey.DELETE_RECORDS, 2, request, DeleteRecordsResponse)
        found = answer.topics[0].partitions[0]
        if found.error_code in NOT_YET or found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return  # A new leader may not know yet that all of this is committed.
        if found.error_code:
            raise AssertionError(f"{self.name} was answered {ErrorCode(found.error_code).name}")
        if before is None or before != self._leader_of(partition) or client.last_asked != before[0]:
            return
        holders = self._in_sync(partition, {node: node.loop for node in self._brokers})
        promised = self._history.trims_promised
        if holders and offset >= promised.get(partition, 0):
            promised[partition], self._holders[partition] = offset, holders
            self._history.trims += 1

    async def _look(self, client: ClusterClient, partition: Partition) -> None:
        at_least, before = self._history.trims_promised.get(partition, 0), self._leader_of(partition)
        start = await start_offset(client, *partition)
        shown = -1
        if at_least and self._is_led(client, partition, before):
            error, records = await fetch(client, partition, self._rng.randrange(at_least))
            shown = min((offset for offset, _ in records), default=-1) if not error else -1
        # What was promised may not be known to anybody any more.
        if self._is_led(client, partition, before) and self._history.trims_promised.get(partition, 0) >= at_least:
            asked = self._history.trims_asked.get(partition, 0)
            self._history.starts_seen.append(StartSeen(partition, at_least, start, asked, shown))

    def _is_led(self, client: ClusterClient, partition: Partition, before: Leader | None) -> bool:
        """Return whether the leader of a moment before was asked, and still leads."""
        return before is not None and before == self._leader_of(partition) and client.last_asked == before[0]
