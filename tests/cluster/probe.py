"""One record after the other to each partition of a topic, and when each was acknowledged: what a fault costs, partition by partition.

The workload beside it shows whether a promise is broken. It does not show a partition that stands still while others go on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from confluent_kafka import Producer

from tests.cluster.load import QUICK, Acknowledged
from tests.cluster.way_in import way_in
from tests.cluster.worker import Worker

EVERY_SECONDS = 0.02
MOST_WAITING = 400
"""How many records of a partition may wait; in a long standstill more would only fill the memory."""
FLUSH_SECONDS = 180.0


class Probe(Worker):
    """An idempotent producer that never gives up, in a thread.

    Attributes:
        acknowledged: in the order in which it was told, so that `records.check_exactly_once` can check it.
        failures: errors of records that were given up.
    """

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int) -> None:
        super().__init__()
        self.topic, self.partitions = topic, partitions
        self.acknowledged: list[Acknowledged] = []
        self.failures: list[str] = []
        self._told_at: list[list[float]] = [[] for _ in range(partitions)]
        self._waiting = [0] * partitions
        self._producer = Producer({
            "bootstrap.servers": bootstrap_servers, "acks": "all", "enable.idempotence": True, "linger.ms": 0,
            "message.timeout.ms": 900_000, "request.timeout.ms": 5000, "socket.timeout.ms": 6000, **QUICK, **way_in.library,
        })  # fmt: skip

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            for index in range(self.partitions):
                if self._waiting[index] < MOST_WAITING:
                    self._waiting[index] += 1
                    self._producer.produce(self.topic, str(number), partition=index, on_delivery=self._told)
                    number += 1
            until = time.monotonic() + EVERY_SECONDS
            while (left := until - time.monotonic()) > 0:
                self._producer.poll(left)

    def _told(self, error: Any, message: Any) -> None:
        self._waiting[message.partition()] -= 1
        if error is not None:
            self.failures.append(str(error))
        else:
            self._told_at[message.partition()].append(time.monotonic())
            self.acknowledged.append(Acknowledged(message.partition(), int(message.value()), message.offset()))

    def flush(self) -> None:
        """Wait until all that was sent is acknowledged."""
        left = self._producer.flush(FLUSH_SECONDS)
        assert not left, (
            f"{left} records of {self.topic} are not acknowledged {FLUSH_SECONDS:.0f} s after the last fault"
        )

    def standstill(self, began: float, ended: float) -> float:
        """Return the longest time in seconds without an acknowledged write to one of the partitions, on the monotonic clock."""
        return max(longest_gap(list(each), began, ended) for each in self._told_at)


def longest_gap(moments: Sequence[float], began: float, ended: float) -> float:
    """Return the longest time between two successive moments; `began` and `ended` count as moments.

    Args:
        moments: in order.
    """
    within = [began, *(each for each in moments if began < each < ended), ended]
    return max(second - first for first, second in pairwise(within))
