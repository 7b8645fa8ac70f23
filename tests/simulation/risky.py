"""A topic whose leaders may lack records, beside one that is the same but for that setting: `unclean.leader.election.enable`.

Both acknowledge with one replica in sync. So the aimed fault `elect_uncleanly` can leave the leader of the risky topic alone in the ISR,
and kill it: the risky topic goes on without what only that one had, and the careful topic waits for it, where it had the same leader.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from barnabas.metadata.partition_registration import LEADER_RECOVERING, NO_LEADER, PartitionRegistration
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ProduceRequest, ProduceResponse
from barnabas.records.builder import build_batch
from tests.simulation.client import Asks, Connect
from tests.simulation.cluster_client import ClusterClient
from tests.simulation.final_reading import FinalReading
from tests.simulation.history import History, Partition
from tests.simulation.judged_node import JudgedNode
from tests.simulation.side_topic import View
from tests.simulation.transactions import Refused, end_offset, start_offset
from tests.simulation.workload import LOST, NOT_YET, Producer, fetch

RISKY = Partition("risky", 0)
CAREFUL_PARTITIONS = 3
"""So that most brokers lead one."""
ALONE = {"min.insync.replicas": "1"}


class RiskyTopic:
    """The topic that may lose records, its producer and its reader."""

    name = RISKY.topic
    settings = ALONE | {"unclean.leader.election.enable": "true"}

    def __init__(self, history: History, view: View, rng: Any, pause_seconds: float) -> None:
        self.partitions = [RISKY]
        self.watched: list[Partition] = []
        self._history, self._found, self._view = history, history.unclean, view
        self._found.partitions = self.partitions
        self._workers = [
            RiskyProducer(history, rng("risky producer"), pause_seconds),
            RiskyReader(history, rng("risky reader")),
        ]
        self._offsets: dict[JudgedNode, int] = {}
        self._last: PartitionRegistration | None = None

    def workers(self) -> list[Any]:
        return self._workers

    def counts(self) -> dict[str, int]:
        return {"the risky producer": sum(self._found.sent.values()), "the risky reader": self._found.reads}

    def observe(self) -> None:
        for node in self._view.brokers:
            image = node.image if node.serves else None
            if image is None or self._offsets.get(node) == image.provenance.offset:
                continue
            self._offsets[node] = image.provenance.offset
            for topic in image.topics.by_name.values():
                for index, each in topic.partitions.items():
                    if topic.name == self.name:
                        self._observe_risky(each)
                    elif each.leader_recovery_state == LEADER_RECOVERING:
                        what = f"{topic.name}-{index} had a leader that may lack records, {each.leader} in epoch {each.leader_epoch}"
                        self._found.elsewhere[what] = None

    def _observe_risky(self, seen: PartitionRegistration) -> None:
        """Note an unclean election. A node may take the election and its end in one step: then its leader comes from outside of the ISR."""
        last = self._last
        if last is not None and last.partition_epoch >= seen.partition_epoch:
            return
        self._last = seen
        was_outside = (
            last is not None
            and seen.leader_epoch > last.leader_epoch
            and seen.leader not in (*last.isr, *last.elr, NO_LEADER)
        )
        if seen.leader_recovery_state == LEADER_RECOVERING or was_outside:
            self._found.elections[seen.leader_epoch] = None

    async def read_at_the_end(self, client: ClusterClient) -> None:
        start, end = await start_offset(client, *RISKY), await end_offset(client, *RISKY)
        offset = start
        while offset < end:
            error, records = await fetch(client, RISKY, offset)
            if error and error not in NOT_YET:
                raise AssertionError(f"the last reader of {RISKY} was answered {ErrorCode(error).name}")
            if error or not records:
                await asyncio.sleep(0.1)
                continue
            self._found.log += [each for each in records if each[0] < end]
            offset = records[-1][0] + 1
        self._found.bounds = self._history.final_bounds[RISKY] = start, end


class RiskyProducer:
    """Sends each value once, and notes whether it was acknowledged: an idempotent producer could not go on after a loss."""

    def __init__(self, history: History, rng: random.Random, pause_seconds: float) -> None:
        self._sent, self._rng, self._pause_seconds = history.unclean.sent, rng, pause_seconds

    async def run(self, connect: Connect, loop: Any) -> None:
        client = connect("risky producer")
        while True:
            value = b"r:%d" % len(self._sent)
            self._sent[value] = False
            topic = ProduceRequest.TopicProduceData(name=RISKY.topic)
            records = bytes(build_batch([(loop.now_ms(), None, value, [])]))
            topic.partition_data = [ProduceRequest.PartitionProduceData(index=RISKY.index, records=records)]
            request = ProduceRequest(acks=-1, timeout_ms=2000, topic_data=[topic])
            try:
                answer = await client.request(ApiKey.PRODUCE, 9, request, ProduceResponse)
                error = answer.responses[0].partition_responses[0].error_code
                if error and error not in NOT_YET:
                    raise AssertionError(f"the risky producer was answered {ErrorCode(error).name}")
                self._sent[value] = not error
            except LOST:
                pass
            await asyncio.sleep(self._rng.random() * self._pause_seconds)


class RiskyReader:
    """Reads on at its offset; when that is lost, at the end, as a consumer with auto.offset.reset=latest does."""

    def __init__(self, history: History, rng: random.Random) -> None:
        self._found, self._rng = history.unclean, rng
        self._offset = 0

    async def run(self, connect: Connect, loop: Any) -> None:
        client = connect("risky reader")
        while True:
            try:
                await self._step(client)
            except (*LOST, Refused):
                await asyncio.sleep(0.1)
            await asyncio.sleep(self._rng.random() * 0.3)

    async def _step(self, client: Asks) -> None:
        error, records = await fetch(client, RISKY, self._offset, wait_ms=200)
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._offset = await end_offset(client, *RISKY)
            self._found.sent_back += 1
        elif error in NOT_YET:
            await asyncio.sleep(0.1)
        elif error:
            raise AssertionError(f"the risky reader was answered {ErrorCode(error).name}")
        elif records:
            self._found.reads += 1
            self._offset = records[-1][0] + 1


class CarefulTopic:
    """The topic that loses nothing, and its producers, whom `checkers.durability` and the others judge."""

    name = "careful"
    settings = ALONE

    def __init__(self, history: History, rng: Any, pause_seconds: float) -> None:
        self.partitions = [Partition(self.name, index) for index in range(CAREFUL_PARTITIONS)]
        self.watched = self.partitions
        self._history = history
        self.producers = [
            Producer(f"careful {each.index}", each, history, rng(f"careful {each.index}"), 4 * pause_seconds)
            for each in self.partitions
        ]

    def workers(self) -> list[Any]:
        return []

    def counts(self) -> dict[str, int]:
        return {}

    def observe(self) -> None:
        """Its nodes are looked at with the risky topic."""

    async def read_at_the_end(self, client: ClusterClient) -> None:
        for partition in self.partitions:
            await FinalReading(client, self._history).read_log(partition)
