"""The clients of a world in which administrators change things, and the producer with a quota."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.protocol.errors import ErrorCode
from tests.simulation.cluster_client import Address, ClusterClient
from tests.simulation.history import History, Partition
from tests.simulation.judged_node import JudgedNode
from tests.simulation.knobs import ClientQuota, FeatureLevel, Knob, PartitionCount, TopicSetting
from tests.simulation.limited_producer import LEAST_RATE, MOST_RATE, NAME, RATE, LimitedProducer, overdraw
from tests.simulation.tuner import Tuner

TUNED = Partition("tuned", 0)
"""Of the topic whose settings are changed; nobody reads it."""


class Tuning:
    """Tuners of a topic, of a quota and of a feature, which work at the same time.

    Args:
        written: what the producer with the quota writes to.

    Attributes:
        producer: the one with the quota.
    """

    def __init__(
        self,
        brokers: Sequence[JudgedNode],
        written: Partition,
        history: History,
        rng: Callable[[str], random.Random],
        pause_seconds: float,
    ) -> None:
        self._history, self._brokers = history, {node.address: node for node in brokers}
        history.tuning.is_limited = True
        self.producer = LimitedProducer(NAME, written, history, rng(NAME), pause_seconds)
        topic = TUNED.topic
        self._quota = ClientQuota(NAME, RATE, LEAST_RATE, MOST_RATE)
        knobs: dict[str, list[Knob]] = {
            "the tuner of a topic": [
                # Room for all that is written at the end.
                TopicSetting(topic, "max.message.bytes", 100_000, 200_000),
                TopicSetting(topic, "retention.ms", 3_600_000, 7_200_000),
                PartitionCount(topic),
            ],
            "the tuner of a quota": [self._quota],
            "the tuner of a feature": [FeatureLevel("streams.version")],
        }
        addresses = list(self._brokers)
        self._tuners = [
            Tuner(name, found, addresses, history, rng(name), self._name_of) for name, found in knobs.items()
        ]

    def _name_of(self, address: Address) -> str | None:
        node = self._brokers[address]
        return node.name if node.serves else None

    def workers(self) -> list[Any]:
        return list(self._tuners)

    def counts(self) -> dict[str, int]:
        return {what: count for tuner in self._tuners for what, count in tuner.counts().items()}

    async def read_at_the_end(self, client: ClusterClient) -> None:
        """Read what is so, as the client with the quota, and exceed the quota."""
        for tuner in self._tuners:
            await tuner.read_at_the_end(client)
        quota = self._history.tuning.registers[self._quota.name].final[-1].value
        if quota is None:
            quota = MOST_RATE
            error = await self._quota.change(client, quota)
            assert not error, f"the last change of a quota was answered {ErrorCode(error).name}"
        self._history.tuning.unlimited += await overdraw(client, TUNED, quota)
