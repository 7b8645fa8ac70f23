"""Ask all transaction coordinators of the cluster what they know of producers.

A partition knows a producer's id, and its coordinator is found by its transactional id. So every broker that leads a partition of
`__transaction_state` is asked. A transaction that none of them knows is ended, so the answer must be complete:

    DescribeTransactions   of an id in each of its partitions: has the broker loaded them all?
    ListTransactions       of the producers
    DescribeTransactions   of the ids found, and of the same ids again: has it had them all meanwhile?

- TRANSACTIONAL_ID_NOT_FOUND for the made-up id of a partition proves that its coordinator is loaded. A broker that does not lead the
  partition yet, or any more, or that is loading it, returns another error; ListTransactions would only leave it out.
- A partition without a leader, or one that moved during the survey, makes it fail. So does a broker that does not answer, or that
  does not let this one see all transactional ids: the broker's principal needs Describe on them.
- What a coordinator has acknowledged before the survey is in its answer: the leader epoch of a partition of `__transaction_state` in
  this broker's metadata is at least the one in which a transaction was verified whose batch is in a log of this broker.

Sources: Kafka's `TransactionsCommand`; KIP-664.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from barnabas.coordinator.request_queues import Send
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DescribeTransactionsRequest, ListTransactionsRequest
from barnabas.protocol.partition_for import partition_for
from barnabas.steps import Loop, gather
from barnabas.transaction.transaction_coordinator import TransactionCoordinator
from barnabas.transaction.transaction_state import BY_TITLE, TransactionState

__all__ = ["CoordinatorSurvey", "KnownTransaction", "Survey"]

TopicPartition = tuple[str, int]
Leaders = Mapping[int, tuple[int, int]]
"""Leader and leader epoch of each partition of `__transaction_state`."""


class KnownTransaction(NamedTuple):
    """A transactional id, as its coordinator describes it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: TransactionState
    timeout_ms: int
    partitions: frozenset[TopicPartition]


class Survey(Protocol):
    """The transaction coordinators of a cluster."""

    async def known(self, producer_ids: Collection[int]) -> dict[int, KnownTransaction]:
        """Return what is known of these producers; no coordinator knows those that are not in the answer.

        Raises:
            KafkaError: the answers are not complete now.
        """
        ...


class _Local:
    """The coordinator of this broker."""

    def __init__(self, coordinator: TransactionCoordinator) -> None:
        self._coordinator = coordinator

    async def describe(self, transactional_ids: list[str]) -> list[KnownTransaction | ErrorCode]:
        return [await self._describe(each) for each in transactional_ids]

    async def _describe(self, transactional_id: str) -> KnownTransaction | ErrorCode:
        try:
            found = await self._coordinator.describe(transactional_id)
        except KafkaError as error:
            return error.code
        return KnownTransaction(
            transactional_id, found.producer_id, found.producer_epoch, found.state, found.timeout_ms, found.partitions
        )

    async def list_ids(self, producer_ids: Collection[int]) -> list[str]:
        return [
            each.transactional_id for each in await self._coordinator.list_all() if each.producer_id in producer_ids
        ]


class _Remote:
    """The coordinator of another broker."""

    def __init__(self, broker_id: int, send: Send) -> None:
        self._broker_id = broker_id
        self._send = send

    async def describe(self, transactional_ids: list[str]) -> list[KnownTransaction | ErrorCode]:
        request = DescribeTransactionsRequest(transactional_ids=transactional_ids)
        response = await self._send(self._broker_id, request)
        found = {each.transactional_id: _known(each) for each in response.transaction_states}
        return [found.get(each, ErrorCode.UNKNOWN_SERVER_ERROR) for each in transactional_ids]

    async def list_ids(self, producer_ids: Collection[int]) -> list[str]:
        request = ListTransactionsRequest(producer_id_filters=sorted(producer_ids))
        response = await self._send(self._broker_id, request)
        if response.error_code:
            raise KafkaError(response.error_code)
        return [each.transactional_id for each in response.transaction_states]


def _known(state: Any) -> KnownTransaction | ErrorCode:
    if state.error_code:
        return ErrorCode(state.error_code)
    partitions = frozenset((topic.topic, index) for topic in state.topics for index in topic.partitions)
    return KnownTransaction(
        state.transactional_id,
        state.producer_id,
        state.producer_epoch,
        BY_TITLE[state.transaction_state],
        state.transaction_timeout_ms,
        partitions,
    )


class CoordinatorSurvey:
    """`Survey` over the metadata of one broker.

    Args:
        node_id: this broker.
        local: its own coordinator.
        leaders: returns who leads each partition of `__transaction_state` by the metadata as of now.
        send: sends a request to another broker; None for a node alone.
    """

    def __init__(
        self, node_id: int, local: TransactionCoordinator, leaders: Callable[[], Leaders], send: Send | None, loop: Loop
    ) -> None:
        self._node_id = node_id
        self._local = local
        self._leaders = leaders
        self._send = send
        self._loop = loop
        self._probes: list[str] = []

    def __repr__(self) -> str:
        return f"<CoordinatorSurvey of={self._node_id} partitions={len(self._leaders())}>"

    async def known(self, producer_ids: Collection[int]) -> dict[int, KnownTransaction]:
        leaders = dict(self._leaders())
        if any(leader < 0 for leader, _ in leaders.values()):
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "a partition of __transaction_state has no leader")
        probes = self._probes_of(len(leaders))
        led: dict[int, list[str]] = {}
        for partition, (leader, _) in leaders.items():
            led.setdefault(leader, []).append(probes[partition])
        answers = await gather(self._of_each(led, producer_ids), self._loop)
        if dict(self._leaders()) != leaders:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, "a partition of __transaction_state has moved meanwhile")
        return {each.producer_id: each for answer in answers for each in answer}

    def _of_each(
        self, led: dict[int, list[str]], producer_ids: Collection[int]
    ) -> Iterable[Coroutine[Any, Any, list[KnownTransaction]]]:
        return (_ask(self._coordinator(broker_id), probes, producer_ids) for broker_id, probes in led.items())

    def _coordinator(self, broker_id: int) -> _Local | _Remote:
        if broker_id == self._node_id:
            return _Local(self._local)
        assert self._send is not None, "a node alone leads every partition"
        return _Remote(broker_id, self._send)

    def _probes_of(self, count: int) -> list[str]:
        """Return for each partition a transactional id that belongs to it, and that no client uses."""
        if len(self._probes) != count:
            found: dict[int, str] = {}
            number = 0
            while len(found) < count:
                name = f"barnabas.is-loaded-{number}"
                found.setdefault(partition_for(name, count), name)
                number += 1
            self._probes = [found[partition] for partition in range(count)]
        return self._probes


async def _ask(
    coordinator: _Local | _Remote, probes: list[str], producer_ids: Collection[int]
) -> list[KnownTransaction]:
    """Return what one broker knows of these producers. Raises KafkaError if it may not know all."""
    _check_loaded(await coordinator.describe(probes))
    ids = await coordinator.list_ids(producer_ids)
    described = await coordinator.describe(ids + probes)
    _check_loaded(described[len(ids) :])
    found: list[KnownTransaction] = []
    for each in described[: len(ids)]:
        if isinstance(each, ErrorCode):
            raise KafkaError(each)
        found.append(each)
    return found


def _check_loaded(probes: Iterable[KnownTransaction | ErrorCode]) -> None:
    for each in probes:
        if isinstance(each, ErrorCode) and each is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise KafkaError(each)
