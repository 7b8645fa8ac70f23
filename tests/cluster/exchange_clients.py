"""Clients that work while nodes change their program: a producer of transactions, and the only member of a group."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.cluster.exchange_judge import Committed, Read
from tests.cluster.load import QUICK
from tests.cluster.records import NOT_YET
from tests.cluster.way_in import way_in
from tests.cluster.worker import Worker

ABORT_EVERY = 5
PAUSE_SECONDS = 0.05
COMMIT_EVERY_SECONDS = 0.5


class Transactor(Worker):
    """Writes the number of each transaction once to each of two partitions, and aborts every fifth transaction.

    Attributes:
        committed, aborted: the numbers whose end was acknowledged.
        begun: how many were begun.
        fatal: errors after which the client opened another producer; the transaction's outcome is open.
    """

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        super().__init__()
        self.topic = topic
        self.committed: list[int] = []
        self.aborted: list[int] = []
        self.fatal: list[str] = []
        self.begun = 0
        self._settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap_servers, "transactional.id": f"exchange-{topic}", "transaction.timeout.ms": 60_000,
            "message.timeout.ms": 60_000, "request.timeout.ms": 5000, "linger.ms": 0, **QUICK, **way_in.library,
        }  # fmt: skip

    def _run(self) -> None:
        while not self._stopping.is_set():
            producer = Producer(self._settings)
            try:
                self._again(partial(producer.init_transactions, 30), forever=True)
                while not self._stopping.is_set():
                    self._one(producer)
                    self._stopping.wait(PAUSE_SECONDS)
            except KafkaException as error:
                self.fatal.append(str(error.args[0]))

    def _one(self, producer: Producer) -> None:
        number = self.begun
        producer.begin_transaction()
        self.begun += 1
        try:
            for partition in (0, 1):
                producer.produce(self.topic, str(number), partition=partition)
            if number % ABORT_EVERY != ABORT_EVERY - 1:
                self._again(partial(producer.commit_transaction, 30))
                self.committed.append(number)
                return
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
        self._again(partial(producer.abort_transaction, 30), forever=True)
        self.aborted.append(number)

    @staticmethod
    def _again(call: Any, *, forever: bool = False) -> None:
        """Call until there is an answer that is none of those after which one asks again."""
        deadline = time.monotonic() + 240
        while True:
            try:
                call()
                return
            except KafkaException as error:
                told = error.args[0]
                passes = told.retriable() or (forever and told.code() in NOT_YET)
                if not passes or time.monotonic() > deadline:
                    raise


class Member(Worker):
    """The only member of a group. It notes what it reads, and each commit that is acknowledged.

    Args:
        subscription: a topic, or a regular expression that begins with ^.
        protocol: `classic`, or `consumer` (KIP-848).

    Attributes:
        events: in the order in which they happened.
        failures: errors that are not of the kind that passes.
        kept: by partition, the offsets that the group had when the block ended.
    """

    def __init__(self, bootstrap_servers: str, topic: str, group: str, *, protocol: str, subscription: str) -> None:
        super().__init__()
        self.topic, self.group = topic, group
        self.events: list[Read | Committed] = []
        self.failures: list[str] = []
        self.reached: dict[int, int] = {}
        self._subscription = subscription
        timeout = {"session.timeout.ms": 10_000} if protocol == "classic" else {}
        self._consumer = Consumer({
            "bootstrap.servers": bootstrap_servers, "group.id": group, "group.protocol": protocol, "enable.auto.commit": False,
            "auto.offset.reset": "earliest", **timeout, **QUICK, **way_in.library,
        })  # fmt: skip

    def _run(self) -> None:
        self._consumer.subscribe([self._subscription])
        commit_at = time.monotonic() + COMMIT_EVERY_SECONDS
        while not self._stopping.is_set():
            message = self._consumer.poll(0.1)
            if message is not None:
                self._take(message)
            if time.monotonic() > commit_at:
                self._commit()
                commit_at = time.monotonic() + COMMIT_EVERY_SECONDS
        self._commit()
        self._consumer.close()

    def _take(self, message: Any) -> None:
        error = message.error()
        if error is None:
            self.events.append(Read(message.partition(), message.offset()))
            self.reached[message.partition()] = message.offset() + 1
        elif not (error.retriable() or error.code() in NOT_YET):
            self.failures.append(str(error))

    def _commit(self) -> None:
        try:
            answered = self._consumer.commit(asynchronous=False)
        except KafkaException:
            # Nothing to commit, a rebalance, or a coordinator that moves; the next one may do.
            return
        self.events += [
            Committed(each.partition, each.offset) for each in answered or () if each.error is None and each.offset >= 0
        ]


def kept_offsets(bootstrap_servers: str, topic: str, group: str, partitions: int) -> dict[int, int]:
    """Return the committed offsets of a group, by partition; a partition without one is left out."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group, **QUICK, **way_in.library})
    try:
        asked = [TopicPartition(topic, index) for index in range(partitions)]
        for _ in range(20):
            try:
                found = consumer.committed(asked, timeout=15)
            except KafkaException as error:
                told: KafkaError = error.args[0]
                if not (told.retriable() or told.code() in NOT_YET):
                    raise
                continue
            return {each.partition: each.offset for each in found if each.offset != OFFSET_INVALID}
        raise AssertionError(f"nobody says what group {group} has committed")
    finally:
        consumer.close()
