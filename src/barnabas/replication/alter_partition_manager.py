"""The proposals of this broker's leaders for their ISRs, on their way to the controller.

    submit ──► waiting ──► AlterPartition, up to 1,000 of them ──► isr_change_completed, isr_change_failed
                  ▲                                                      │
                  └───────── after 50 ms: no answer, or an error that may pass ┘

- One request is under way at a time. Each takes all changes that wait, so many simultaneous changes need few requests.
- A new change ends the pause before the next try: it is sent immediately, with all waiting ones.
- A change that newer metadata has ended is not sent any more. If its answer is still under way, it changes nothing.
- A partition has one change at a time (see `partition_state`). A newer change replaces an older one.

Source: Kafka's `DefaultAlterPartitionManager`; KIP-497, KIP-841, KIP-903.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from barnabas.pause import Pause
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for, known_code
from barnabas.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from barnabas.replication.partition import Partition
from barnabas.replication.partition_state import PendingIsrChange, PendingShrinkIsr
from barnabas.steps import in_background
from barnabas.turns import next_turn

__all__ = ["AlterPartitionManager", "Controller"]

logger = logging.getLogger(__name__)

VERSION = 3
RETRY_MS = 50
NAMED_MAX = 5
"""How many partitions a line names."""
CHANGES_PER_REQUEST = 1_000
"""More would hold the loop for too long."""

Key = tuple[bytes, int]


class Controller(Protocol):
    """The active controller, wherever it is."""

    def handle(self, api_key: int, version: int, request: Any) -> asyncio.Future[Any]:
        """Return a future of the response; it fails with a KafkaError if the controller sends no response."""
        ...


class _Submitted(NamedTuple):
    partition: Partition
    change: PendingIsrChange


class AlterPartitionManager:
    """The changes that wait to be sent to the controller.

    Args:
        broker_epoch: returns the epoch of this broker's registration.

    Attributes:
        shrinks: how often the controller removed followers from an ISR as proposed here.
        expands: how often it added a follower.
    """

    def __init__(
        self,
        node_id: int,
        broker_epoch: Callable[[], int],
        controller: Controller,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._controller = controller
        self._loop = loop
        self._waiting: dict[Key, _Submitted] = {}
        self._sending: asyncio.Future[None] | None = None
        self._pause = Pause(loop)
        self.shrinks = 0
        self.expands = 0

    def __repr__(self) -> str:
        return f"<AlterPartitionManager broker={self._node_id} waiting={len(self._waiting)}>"

    def submit(self, partition: Partition, change: PendingIsrChange) -> None:
        """Send a change that a partition has begun, with the others of this turn of the loop."""
        self._waiting[partition.topic.topic_id, partition.index] = _Submitted(partition, change)
        if self._sending is None or self._sending.done():
            self._sending = in_background(self._send_all(), self._loop)
        else:
            self._pause.wake()

    def close(self) -> None:
        """Send nothing more, and ignore an answer that is under way."""
        self._waiting.clear()
        if self._sending is not None:
            self._sending.cancel()

    async def _send_all(self) -> None:
        await next_turn()
        while changes := self._next():
            try:
                response = await self._controller.handle(ApiKey.ALTER_PARTITION, VERSION, self._request(changes))
                if response.error_code:
                    raise error_for(response.error_code)
            except KafkaError as error:
                logger.warning("the controller did not change %d ISRs, trying again: %s", len(changes), error.message)
                must_wait = True
            else:
                must_wait = self._take(changes, response)
            if must_wait:
                await self._pause.or_woken(RETRY_MS / 1000)
                await next_turn()

    def _next(self) -> dict[Key, _Submitted]:
        """Return the changes of the next request, without those that have ended."""
        ended = [key for key, (partition, change) in self._waiting.items() if not partition.is_open_change(change)]
        for key in ended:
            del self._waiting[key]
        return dict(list(self._waiting.items())[:CHANGES_PER_REQUEST])

    def _request(self, changes: dict[Key, _Submitted]) -> AlterPartitionRequest:
        topics: dict[bytes, AlterPartitionRequest.TopicData] = {}
        for (topic_id, index), (_, change) in changes.items():
            sent = change.sent
            topic = topics.setdefault(topic_id, AlterPartitionRequest.TopicData(topic_id=topic_id))
            topic.partitions.append(
                AlterPartitionRequest.PartitionData(
                    partition_index=index,
                    leader_epoch=sent.leader_epoch,
                    new_isr_with_epochs=[
                        AlterPartitionRequest.BrokerState(broker_id=broker_id, broker_epoch=epoch)
                        for broker_id, epoch in sent.isr
                    ],
                    partition_epoch=sent.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._node_id, broker_epoch=self._broker_epoch(), topics=list(topics.values())
        )

    def _take(self, changes: dict[Key, _Submitted], response: AlterPartitionResponse) -> bool:
        """Apply an answer; return whether a change must be sent again."""
        answers = {
            (topic.topic_id, answer.partition_index): answer for topic in response.topics for answer in topic.partitions
        }
        is_one_left = False
        rejected: dict[ErrorCode, list[str]] = {}
        for key, submitted in changes.items():
            answer = answers.get(key)
            if answer is not None and (code := known_code(answer.error_code)):
                rejected.setdefault(code, []).append(submitted.partition.name)
            if answer is None or self._apply(submitted, answer):
                is_one_left = True
            elif self._waiting.get(key) is submitted:
                del self._waiting[key]
        for code, names in rejected.items():
            more = f" and {len(names) - NAMED_MAX:,} more" if len(names) > NAMED_MAX else ""
            named = ", ".join(names[:NAMED_MAX]) + more
            logger.info("The controller did not change the ISR of %s: %s", named, code.default_message)
        return is_one_left

    def _apply(self, submitted: _Submitted, answer: AlterPartitionResponse.PartitionData) -> bool:
        """Apply one partition's part of an answer; return whether its change must be sent again."""
        partition, change = submitted
        code = known_code(answer.error_code)
        if code:
            return partition.isr_change_failed(change, code)
        if isinstance(change, PendingShrinkIsr):
            self.shrinks += 1
        else:
            self.expands += 1
        partition.isr_change_completed(change, answer.leader_epoch, answer.partition_epoch, tuple(answer.isr))
        return False
