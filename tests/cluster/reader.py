"""A consumer in a thread that reads a topic while nodes die and change, and all that it got."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from tests.cluster.load import QUICK, Load
from tests.cluster.probe import longest_gap
from tests.cluster.records import NOT_YET
from tests.cluster.waiting import wait_for
from tests.cluster.worker import Worker


class Reader(Worker):
    """Reads every partition of a topic from the beginning, without a group: nothing but the consumer's own position says what is next.

    Args:
        library: settings of librdkafka.

    Attributes:
        records: of each partition, the (offset, value) in the order in which they came.
        failures: errors that are not of the kind that passes.
    """

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int, library: Mapping[str, Any]) -> None:
        super().__init__()
        self.topic, self.partitions = topic, partitions
        self.records: list[list[tuple[int, int]]] = [[] for _ in range(partitions)]
        self.failures: list[str] = []
        self._came_at: list[list[float]] = [[] for _ in range(partitions)]
        self._began = time.monotonic()
        self._consumer = Consumer({
            "bootstrap.servers": bootstrap_servers, "group.id": f"reads-{topic}", "enable.auto.commit": False, **QUICK, **library,
        })  # fmt: skip

    def _run(self) -> None:
        self._consumer.assign([TopicPartition(self.topic, index, OFFSET_BEGINNING) for index in range(self.partitions)])
        while not self._stopping.is_set():
            message = self._consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is None:
                offset, value, index = message.offset(), message.value(), message.partition()
                assert offset is not None
                assert value is not None
                assert index is not None
                self.records[index].append((offset, int(value)))
                self._came_at[index].append(time.monotonic())
            elif not self._passes(error):
                self.failures.append(str(error))
        self._consumer.close()

    @staticmethod
    def _passes(error: KafkaError) -> bool:
        return error.retriable() or error.code() in NOT_YET

    def check(self, load: Load) -> str:
        """It has read what the load was told, each record once and in order; return the figures in words.

        Call it inside the block, when the load has ended.
        """
        told: list[list[int]] = [[] for _ in range(self.partitions)]
        for each in load.acknowledged:
            told[each.partition].append(each.number)

        def has_all() -> bool:
            assert not self.failures, f"the reader failed: {self.failures[:3]}"
            return all(len(read) >= len(wanted) for read, wanted in zip(self.records, told, strict=True))

        wait_for(f"the reader has all of {self.topic}", has_all, 60)
        gap = max(longest_gap(list(each), self._began, time.monotonic()) for each in self._came_at)
        for index, (read, wanted) in enumerate(zip(self.records, told, strict=True)):
            where = f"{self.topic}-{index}"
            assert [number for _, number in read] == sorted(wanted), f"{where}: the reader has lost or doubled records"
            assert [offset for offset, _ in read] == list(range(len(read))), (
                f"{where}: the reader has gaps in its offsets"
            )
        return f"{self.topic}: {sum(map(len, told))} records, none lost or doubled; longest pause of a partition {gap:.1f} s"
