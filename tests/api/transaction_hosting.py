"""A broker's transactions over real logs: groups, `__transaction_state`, and a producer that speaks the protocol by hand."""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.coordinator.coordinator_log import ReplicaCoordinatorLog
from barnabas.log.log_config import LogConfig
from barnabas.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from barnabas.protocol.topic_names import GROUP_METADATA, TRANSACTION_STATE
from barnabas.records.control import control_type
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from barnabas.steps import step
from barnabas.transaction.config import TransactionCoordinatorConfig
from barnabas.transaction.marker_writer import LocalMarkerWriter
from barnabas.transaction.transaction_coordinator import TransactionCoordinator
from tests.api.group_hosting import GroupHosting
from tests.replication.hosting import Hosting, batch

TRANSACTION_PARTITIONS = 2
VERIFYING = LogConfig(transaction_partition_verification_enable=True)


class TransactionHosting(GroupHosting):
    """The services that the APIs of transactions use; topic "t" has two partitions."""

    def __init__(self, hosting: Hosting, *, create: bool = True, **config: Any) -> None:
        hosting.configs[GROUP_METADATA] = VERIFYING
        super().__init__(hosting, create=create)
        self.level = 2
        self.transactions = TransactionCoordinator(
            TransactionCoordinatorConfig(transaction_state_log_num_partitions=TRANSACTION_PARTITIONS, **config),
            ReplicaCoordinatorLog(hosting.replicas, TRANSACTION_STATE),
            LocalMarkerWriter(
                hosting.replicas,
                self.coordinator,
                now_ms=hosting.now_ms,
                exists=lambda partition: hosting.image.topics.partition(*partition) is not None,
                commit_timeout_ms=30_000,
            ),
            hosting.services.producer_ids,
            loop=self.loop,
            now_ms=hosting.now_ms,
            partition_count=lambda: TRANSACTION_PARTITIONS,
            transaction_version=lambda: self.level,
        )
        hosting.services.transaction_coordinator = self.transactions
        if create:
            self.create_transaction_topic()
            self.topic_id = hosting.create_topic("t", 2, config=VERIFYING)

    def create_transaction_topic(self) -> None:
        self.hosting.create_topic(TRANSACTION_STATE, TRANSACTION_PARTITIONS)
        for partition in range(TRANSACTION_PARTITIONS):
            self.transactions.on_elected(partition, 0)
        self.hosting.spin()

    def elect_again(self, epoch: int = 1) -> None:
        """Forget everything in memory, and read it from the logs."""
        for partition in range(TRANSACTION_PARTITIONS):
            self.transactions.on_resigned(partition)
            self.transactions.on_elected(partition, epoch)
        self.hosting.spin()

    def init(self, transactional_id: str = "tx", version: int = 4, **fields: Any) -> Any:
        fields.setdefault("transaction_timeout_ms", 60_000)
        return self.ask(22, InitProducerIdRequest(transactional_id=transactional_id, **fields), version)

    def producer(self, transactional_id: str = "tx", version: int = 4, **fields: Any) -> tuple[int, int]:
        """The producer id and epoch that InitProducerId gives."""
        answer = self.init(transactional_id, version, **fields)
        assert answer.error_code == 0, answer
        return answer.producer_id, answer.producer_epoch

    def add(self, producer: tuple[int, int], *partitions: int, version: int = 3, **fields: Any) -> list[int]:
        """AddPartitionsToTxn of a client, for topic "t"; the error of each partition."""
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
            name=fields.pop("topic", "t"), partitions=list(partitions)
        )
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=fields.pop("transactional_id", "tx"),
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[topic],
        )
        (answered,) = self.ask(24, request, version).results_by_topic_v3_and_below
        return [partition.partition_error_code for partition in answered.results_by_partition]

    def add_batched(
        self, producer: tuple[int, int], *partitions: int, verify_only: bool, transactional_id: str = "tx"
    ) -> list[int]:
        """AddPartitionsToTxn of a broker."""
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=list(partitions))
        transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            verify_only=verify_only,
            topics=[topic],
        )
        (answered,) = self.ask(24, AddPartitionsToTxnRequest(transactions=[transaction]), 5).results_by_transaction
        assert answered.transactional_id == transactional_id
        return [
            partition.partition_error_code
            for topic in answered.topic_results
            for partition in topic.results_by_partition
        ]

    def produce(
        self,
        producer: tuple[int, int],
        sequence: int,
        *values: bytes,
        version: int = 12,
        index: int = 0,
        transactional: bool = True,
        transactional_id: str | None = "tx",
        acks: int = -1,
    ) -> Any:
        """The error of a Produce of one batch, or a future of the response."""
        records = batch(
            *values,
            timestamp=self.hosting.now_ms(),
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            transactional=transactional,
        )
        topic = ProduceRequest.TopicProduceData(
            name="t",
            topic_id=self.topic_id,
            partition_data=[ProduceRequest.PartitionProduceData(index=index, records=records)],
        )
        request = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=1000, topic_data=[topic])
        response = self.ask_in_place(0, request, version)
        if isinstance(response, asyncio.Future):
            self.hosting.spin()
            if not response.done():
                return response
            response = response.result()
        return response.responses[0].partition_responses[0].error_code

    def ask_in_place(self, api_key: int, request: Any, version: int) -> Any:
        """As `ask`, without a way through bytes: records stay in the buffer that the caller may overwrite."""
        from barnabas.api import produce

        self.context = self.hosting.context(api_key, version)
        response = step(produce.handle(self.context, request), self.loop)
        return step(response, self.loop) if asyncio.iscoroutine(response) else response

    def end(self, producer: tuple[int, int], commit: bool = True, version: int = 5, **fields: Any) -> Any:
        request = EndTxnRequest(
            transactional_id=fields.pop("transactional_id", "tx"),
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commit,
        )
        return self.ask(26, request, version)

    def add_offsets(self, producer: tuple[int, int], group_id: str = "g", version: int = 3) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id="tx", producer_id=producer[0], producer_epoch=producer[1], group_id=group_id
        )
        code: int = self.ask(25, request, version).error_code
        return code

    def commit_offset(
        self, producer: tuple[int, int], offset: int, version: int = 5, index: int = 0, **fields: Any
    ) -> int:
        """TxnOffsetCommit for t-`index` of group "g"; the partition's error."""
        topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
            name=fields.pop("topic", "t"),
            topic_id=fields.pop("topic_id", self.topic_id),
            partitions=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offset, committed_metadata=fields.pop("metadata", "m")
                )
            ],
        )
        request = TxnOffsetCommitRequest(
            transactional_id="tx",
            group_id=fields.pop("group_id", "g"),
            producer_id=producer[0],
            producer_epoch=producer[1],
            topics=[topic],
            **fields,
        )
        (answered,) = self.ask(28, request, version).topics
        code: int = answered.partitions[0].error_code
        return code

    def log(self, topic: str = "t", index: int = 0) -> Any:
        return self.hosting.replicas.partition(topic, index).log

    def contents(self, topic: str = "t", index: int = 0) -> list[str]:
        """What is in a partition, in short: values of records, and markers with their epoch."""
        found = []
        for chunk in self.hosting.replicas.read_internal(topic, index, 0):
            for position, header in iter_batches(chunk):
                for record in iter_records(chunk[position : position + header.size]):
                    if header.is_control:
                        found.append(f"{control_type(record.key).name}/{header.producer_epoch}")
                    else:
                        found.append(bytes(record.value or b"").decode())
        return found
