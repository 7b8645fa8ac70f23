"""Transactions over partitions of three leaders, while their coordinator dies and while a leader dies.

A reader of committed records sees a transaction in each partition that it wrote to, or in none; one whose commit was acknowledged, in
each; one whose abort was acknowledged, in none. At the end nothing hangs: the last stable offset reaches the end of each partition.
"""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.cluster.cluster import Cluster
from tests.cluster.load import QUICK
from tests.cluster.node_process import NodeProcess
from tests.cluster.records import read_partition
from tests.cluster.topics import create_safe_topic
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess

TOPIC = "transacted"
NAME = "transactions"
PARTITIONS = range(3)
EACH = 8
CALL_SECONDS = 30.0


@dataclass
class Transaction:
    """A transaction that was tried, how it was to end, and whether the end was acknowledged."""

    number: int
    is_commit: bool
    is_acknowledged: bool = False

    @property
    def value(self) -> bytes:
        return f"transaction {self.number}".encode()


class Transactions:
    """One producer after the other under one transactional id.

    Attributes:
        tried: in order.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap = bootstrap_servers
        self.tried: list[Transaction] = []
        self._producer: Producer | None = None

    def _begun(self) -> Producer:
        if self._producer is None:
            self._producer = Producer({
                "bootstrap.servers": self._bootstrap, "transactional.id": NAME, "acks": "all",
                "transaction.timeout.ms": 60_000, "request.timeout.ms": 5000, "linger.ms": 0, **QUICK,
            })  # fmt: skip
            self._producer.init_transactions(CALL_SECONDS)
        return self._producer

    def one(self, fault: object = None) -> Transaction:
        """Run one transaction; every fifth is aborted.

        Args:
            fault: called when the records are written and the transaction has not ended.
        """
        transaction = Transaction(len(self.tried), is_commit=len(self.tried) % 5 != 4)
        self.tried.append(transaction)
        try:
            producer = self._begun()
            producer.begin_transaction()
            for index in PARTITIONS:
                producer.produce(TOPIC, transaction.value, partition=index)
            if callable(fault):
                producer.flush(CALL_SECONDS)
                fault()
            self._end(producer, transaction)
        except KafkaException:
            # Whatever became of the transaction, the next producer ends it.
            self._producer = None
        return transaction

    def _end(self, producer: Producer, transaction: Transaction) -> None:
        end = producer.commit_transaction if transaction.is_commit else producer.abort_transaction
        while not transaction.is_acknowledged:
            try:
                end(CALL_SECONDS)
            except KafkaException as error:
                reason = error.args[0]
                if reason.txn_requires_abort():
                    transaction.is_commit = False
                    end = producer.abort_transaction
                elif not reason.retriable():
                    raise
            else:
                transaction.is_acknowledged = True

    def several(self) -> None:
        """Run transactions until so many more are acknowledged, which ends what is open from before."""
        goal = sum(each.is_acknowledged for each in self.tried) + EACH
        wait_for(
            f"{EACH} more transactions are acknowledged",
            lambda: bool(self.one()) and sum(each.is_acknowledged for each in self.tried) >= goal,
        )


def play(cluster: Cluster, _: ToolProcess) -> None:
    create_safe_topic(cluster, TOPIC)
    transactions = Transactions(cluster.bootstrap_servers)
    transactions.several()
    coordinator = coordinator_of(cluster)
    transactions.one(coordinator.kill)
    transactions.several()
    assert coordinator_of(cluster) is not coordinator
    cluster.start_again(coordinator)
    cluster.await_in_sync([TOPIC, "__transaction_state"])
    # A leader that is not the coordinator too, if there is one.
    now = coordinator_of(cluster)
    leader = next(node for index in PARTITIONS if (node := cluster.leader_of(TOPIC, index)) is not now)
    transactions.one(leader.kill)
    transactions.several()
    cluster.start_again(leader)
    transactions.several()
    cluster.await_in_sync([TOPIC, "__transaction_state"])
    check_nothing_hangs(cluster)
    check_atomic(cluster, transactions.tried)


def coordinator_of(cluster: Cluster) -> NodeProcess:
    """Return the transaction coordinator, from the state of the transactional id's partition."""
    partition = wait_for("there are partitions of transactions", lambda: cluster.partitions("__transaction_state"))
    return cluster.leader_of("__transaction_state", partition_for(NAME, len(partition)))


def partition_for(name: str, partitions: int) -> int:
    """Return the partition that holds the state of a transactional id: Java's `hashCode`, without its sign."""
    code = 0
    for unit in name:
        code = (31 * code + ord(unit)) & 0xFFFFFFFF
    return (code & 0x7FFFFFFF) % partitions


def check_nothing_hangs(cluster: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})

    def ends(isolation: IsolationLevel) -> dict[TopicPartition, int]:
        asked = {TopicPartition(TOPIC, index): OffsetSpec.latest() for index in PARTITIONS}
        answers = admin.list_offsets(asked, isolation_level=isolation, request_timeout=CALL_SECONDS)
        return {where: future.result(CALL_SECONDS).offset for where, future in answers.items()}

    wait_for(
        "the last stable offset is the end of each partition",
        lambda: ends(IsolationLevel.READ_COMMITTED) == ends(IsolationLevel.READ_UNCOMMITTED),
    )


def check_atomic(cluster: Cluster, tried: list[Transaction]) -> None:
    there = [
        [value for _, value in read_partition(cluster.bootstrap_servers, TOPIC, index, committed_only=True)]
        for index in PARTITIONS
    ]
    for each in tried:
        counts = [values.count(each.value) for values in there]
        what = f"transaction {each.number}, {'commit' if each.is_commit else 'abort'}"
        assert counts in ([0, 0, 0], [1, 1, 1]), f"{what}, is torn: {counts}"
        if each.is_acknowledged:
            assert counts == [int(each.is_commit)] * 3, f"{what} acknowledged: {counts}"
    order = [each.value for each in tried]
    assert all(values == sorted(values, key=order.index) for values in there), "transactions are out of order"
