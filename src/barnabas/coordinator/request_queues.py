"""RequestQueues: the requests of a broker to others, in one queue for each of them, and one request at a time.

    ask(item) ──► the broker that leads it ──► its queue ──► one request with all that waits ──► an outcome for each item

Transaction markers, verifications of partitions and states of share partitions go to the broker that leads some partition. While a
request is under way, items gather; the next request carries them all. So a slow broker gets few large requests, and never delays those
to another broker.

- Items that are asked in one turn of the loop travel together.
- When the metadata says that an item belongs to another broker now, the item fails immediately, even if its request is under way
  (`reroute`). The caller retries, and reaches the new broker without waiting for an answer of the old one. So a broker may get an
  item twice, and an item must be something that can be repeated.
- An item whose future is cancelled is not sent.

Invariants: at most one request is under way to each broker; two items with the same subject are never in one request.

Sources: Kafka classes `InterBrokerSendThread`, `TransactionMarkerChannelManager`, `AddPartitionsToTxnManager`, `PersisterStateManager`,
which all have such queues.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Hashable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.message import Message
from barnabas.steps import Loop, in_background
from barnabas.turns import next_turn

__all__ = ["RequestKind", "RequestQueues", "Send"]

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
AnyItem = TypeVar("AnyItem", contravariant=True)
Outcome = TypeVar("Outcome")

ITEMS_PER_REQUEST = 1_000

Send = Callable[[int, Message], Coroutine[Any, Any, Any]]
"""Sends a request to a broker and returns its response; raises KafkaError if the broker sends no response."""


class RequestKind(Protocol[AnyItem, Outcome]):
    """How items of one kind travel.

    Attributes:
        moved: the error of an item that belongs to another broker now, or to none.
        lost: the error of items whose request has no response.
    """

    moved: ErrorCode
    lost: ErrorCode

    def broker_of(self, item: AnyItem) -> int:
        """Return the broker that an item belongs to by the metadata as of now, -1 for none."""
        ...

    def subject(self, item: AnyItem) -> Hashable:
        """Return the key that a request may name only once."""
        ...

    def company(self, item: AnyItem) -> Hashable:
        """Return a key that is equal for items that may share a request."""
        ...

    def request(self, items: Sequence[AnyItem]) -> Message:
        """Return one request with all the items."""
        ...

    def outcomes(self, items: Sequence[AnyItem], response: Any) -> list[Outcome | KafkaError]:
        """Return the outcome of each item.

        Raises:
            KafkaError: the outcome of all items.
        """
        ...


class _Asked(Generic[Item, Outcome]):
    """An item, and the future of its outcome."""

    __slots__ = ("answer", "item")

    def __init__(self, item: Item, answer: asyncio.Future[Outcome]) -> None:
        self.item = item
        self.answer = answer

    def settle(self, outcome: Outcome | KafkaError) -> None:
        if self.answer.done():
            return
        if isinstance(outcome, KafkaError):
            self.answer.set_exception(outcome)
        else:
            self.answer.set_result(outcome)


class _Queue(Generic[Item, Outcome]):
    """The items that one broker has not answered yet."""

    __slots__ = ("under_way", "waiting")

    def __init__(self) -> None:
        self.waiting: deque[_Asked[Item, Outcome]] = deque()
        self.under_way: list[_Asked[Item, Outcome]] = []


class RequestQueues(Generic[Item, Outcome]):
    """The queues of one kind of request."""

    def __init__(self, kind: RequestKind[Item, Outcome], send: Send, loop: Loop) -> None:
        self._kind = kind
        self._send = send
        self._loop = loop
        # A broker has a queue while it has something to answer.
        self._queues: dict[int, _Queue[Item, Outcome]] = {}

    def __repr__(self) -> str:
        unanswered = sum(len(queue.waiting) + len(queue.under_way) for queue in self._queues.values())
        return f"<RequestQueues {type(self._kind).__name__} brokers={sorted(self._queues)} unanswered={unanswered}>"

    async def ask(self, item: Item) -> Outcome:
        """Send an item to its broker and return its outcome.

        Raises:
            KafkaError: the item's error; `moved` or `lost` of the kind if its broker did not answer.
        """
        broker_id = self._kind.broker_of(item)
        if broker_id < 0:
            raise KafkaError(self._kind.moved)
        asked: _Asked[Item, Outcome] = _Asked(item, self._loop.create_future())
        queue = self._queues.get(broker_id)
        if queue is not None:
            queue.waiting.append(asked)
        else:
            queue = self._queues[broker_id] = _Queue()
            queue.waiting.append(asked)
            in_background(self._serve(broker_id, queue), self._loop)
        return await asked.answer

    def reroute(self) -> None:
        """Fail the items that belong to another broker by the metadata as of now."""
        for broker_id, queue in list(self._queues.items()):
            for asked in (*queue.under_way, *queue.waiting):
                if self._kind.broker_of(asked.item) != broker_id:
                    asked.settle(KafkaError(self._kind.moved))

    def drop(self, is_dropped: Callable[[Item], bool]) -> None:
        """Fail the items that are not wanted any more."""
        for queue in list(self._queues.values()):
            for asked in (*queue.under_way, *queue.waiting):
                if is_dropped(asked.item):
                    asked.settle(KafkaError(self._kind.moved))

    def close(self) -> None:
        """Fail all items."""
        self.drop(lambda item: True)

    async def _serve(self, broker_id: int, queue: _Queue[Item, Outcome]) -> None:
        await next_turn()  # All items of this turn of the loop travel together.
        while batch := self._take(queue):
            queue.under_way = batch
            outcomes = await self._exchange(broker_id, [asked.item for asked in batch])
            queue.under_way = []
            for asked, outcome in zip(batch, outcomes, strict=True):
                asked.settle(outcome)
        del self._queues[broker_id]

    def _take(self, queue: _Queue[Item, Outcome]) -> list[_Asked[Item, Outcome]]:
        """Remove and return the items of the next request: all that may share it with the oldest item."""
        batch: list[_Asked[Item, Outcome]] = []
        later: list[_Asked[Item, Outcome]] = []
        subjects: set[Hashable] = set()
        while queue.waiting and len(batch) < ITEMS_PER_REQUEST:
            asked = queue.waiting.popleft()
            if asked.answer.done():
                continue
            subject = self._kind.subject(asked.item)
            is_company = not batch or self._kind.company(asked.item) == self._kind.company(batch[0].item)
            if is_company and subject not in subjects:
                subjects.add(subject)
                batch.append(asked)
            else:
                later.append(asked)
        queue.waiting.extendleft(reversed(later))
        return batch

    async def _exchange(self, broker_id: int, items: list[Item]) -> Sequence[Outcome | KafkaError]:
        """Send one request; return the outcome of each item."""
        try:
            request = self._kind.request(items)
            try:
                response = await self._send(broker_id, request)
            except KafkaError as error:
                # Not its own code: that one is about the connection, and would be taken for the answer about the item.
                return [KafkaError(self._kind.lost, error.message) for _ in items]
            return self._kind.outcomes(items, response)
        except KafkaError as error:
            return [KafkaError(error.code, error.message) for _ in items]
        except Exception:
            logger.exception("%r: a request to broker %d failed", self, broker_id)
            return [KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) for _ in items]
