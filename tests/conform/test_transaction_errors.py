"""One long conversation about transactions with both brokers, request by request: every error code must be the same.

The conversation goes through both versions of the protocol, with every mistake that a client can make at each place. Producer ids differ
from broker to broker and are named by the order in which they came; CONCURRENT_TRANSACTIONS passes by itself, and is asked again,
except where the step is about it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.admin import Admin, NewTopic
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    OffsetFetchRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from barnabas.records.builder import build_batch
from tests.conform.brokers import await_leaders, broker

pytestmark = [pytest.mark.conform, pytest.mark.slow, pytest.mark.timeout(3600)]

SETTINGS = {
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
}
_LATER = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
}
Pair = tuple[int, int]
TIMES = 5000
"""How often to ask again for what passes by itself, every 20 ms."""


class Talk:
    """A conversation, and what was said."""

    def __init__(self, admin: Admin) -> None:
        self.said: list[str] = []
        self._connection = admin.cluster.connection(admin.cluster.leader("t", 0))
        self._names: dict[int, str] = {-1: "-"}

    def _name(self, producer_id: int) -> str:
        return self._names.setdefault(producer_id, f"p{len(self._names)}")

    def _ask(self, what: str, request: Any, version: int, code_of: Callable[[Any], int]) -> tuple[Any, ErrorCode]:
        for _ in range(TIMES):
            answer = self._connection.request(request, version=version)
            code = ErrorCode(code_of(answer))
            if code not in _LATER:
                break
            time.sleep(0.02)
        self.said.append(f"{what} v{version}: {code.name}")
        return answer, code

    def init(self, name: str = "tx", version: int = 4, producer: Pair = (-1, -1), timeout_ms: int = 60_000) -> Pair:
        request = InitProducerIdRequest(
            transactional_id=name,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer[0] if version >= 3 else -1,
            producer_epoch=producer[1] if version >= 3 else -1,
        )
        answer, _ = self._ask(f"init {name} {producer[1]}", request, version, lambda a: a.error_code)
        self.said[-1] += f" {self._name(answer.producer_id)}/{answer.producer_epoch}"
        return answer.producer_id, answer.producer_epoch

    def add(self, producer: Pair, *indexes: int, version: int = 3, name: str = "tx", topic: str = "t") -> None:
        wanted = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=list(indexes))
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[wanted],
        )

        def codes(answer: Any) -> list[int]:
            return [
                found.partition_error_code
                for each in answer.results_by_topic_v3_and_below
                for found in sorted(each.results_by_partition, key=lambda found: found.partition_index)
            ]

        answer, _ = self._ask(f"add {indexes}", request, version, lambda a: codes(a)[0])
        self.said[-1] += str([ErrorCode(code).name for code in codes(answer)])

    def add_batched(self, producer: Pair, *indexes: int, verify_only: bool, name: str = "tx") -> None:
        wanted = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=list(indexes))
        transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            verify_only=verify_only,
            topics=[wanted],
        )
        self._ask(
            f"add {indexes} {verify_only=}",
            AddPartitionsToTxnRequest(transactions=[transaction]),
            5,
            lambda a: a.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code,
        )

    def add_offsets(self, producer: Pair, version: int = 3) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id="tx", producer_id=producer[0], producer_epoch=producer[1], group_id="g"
        )
        self._ask("add offsets", request, version, lambda a: a.error_code)

    def produce(
        self,
        producer: Pair,
        sequence: int,
        version: int = 12,
        index: int = 0,
        *,
        transactional: bool = True,
        name: str | None = "tx",
    ) -> None:
        batch = build_batch(
            [(round(time.time() * 1000), b"k", b"v", [])],
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            transactional=transactional,
        )
        partition = ProduceRequest.PartitionProduceData(index=index, records=bytes(batch))
        request = ProduceRequest(
            transactional_id=name,
            acks=-1,
            timeout_ms=5000,
            topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=[partition])],
        )
        answer, _ = self._ask(
            f"produce {index} {producer[1]}:{sequence}{' plain' * (not transactional)}",
            request,
            version,
            lambda a: a.responses[0].partition_responses[0].error_code,
        )
        found = answer.responses[0].partition_responses[0]
        self.said[-1] += f" {found.base_offset} {found.error_message}"

    def commit_offset(self, producer: Pair, offset: int, version: int = 5, **fields: Any) -> None:
        partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=fields.pop("index", 0),
            committed_offset=offset,
            committed_metadata=fields.pop("metadata", "m"),
        )
        request = TxnOffsetCommitRequest(
            transactional_id=fields.pop("name", "tx"),
            group_id=fields.pop("group_id", "g"),
            producer_id=producer[0],
            producer_epoch=producer[1],
            topics=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                    name=fields.pop("topic", "t"), partitions=[partition]
                )
            ],
            **fields,
        )
        self._ask(f"offset {offset}", request, version, lambda a: a.topics[0].partitions[0].error_code)

    def committed(self) -> None:
        wanted = OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id="g", topics=[OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        )
        answer, _ = self._ask(
            "committed",
            OffsetFetchRequest(groups=[wanted], require_stable=True),
            8,
            lambda a: a.groups[0].error_code or a.groups[0].topics[0].partitions[0].error_code,
        )
        self.said[-1] += f" {answer.groups[0].topics[0].partitions[0].committed_offset}"

    def end(self, producer: Pair, commit: bool = True, version: int = 5, name: str = "tx") -> Pair:
        request = EndTxnRequest(
            transactional_id=name, producer_id=producer[0], producer_epoch=producer[1], committed=commit
        )
        answer, _ = self._ask(f"end {commit} {producer[1]}", request, version, lambda a: a.error_code)
        self.said[-1] += f" {self._name(answer.producer_id)}/{answer.producer_epoch}"
        return answer.producer_id, answer.producer_epoch

    def mark(self, producer: Pair, version: int = 1, topic: str = "t", **fields: Any) -> None:
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=producer[0],
            producer_epoch=producer[1],
            topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=[1])],
            **fields,
        )
        self._ask(
            f"mark {producer[1]} {fields}",
            WriteTxnMarkersRequest(markers=[marker]),
            version,
            lambda a: a.markers[0].topics[0].partitions[0].error_code,
        )

    def describe(self, *names: str) -> None:
        for name in names:
            answer, _ = self._ask(
                f"describe {name!r}",
                DescribeTransactionsRequest(transactional_ids=[name]),
                0,
                lambda a: a.transaction_states[0].error_code,
            )
            found = answer.transaction_states[0]
            topics = sorted((topic.topic, sorted(topic.partitions)) for topic in found.topics)
            self.said[-1] += (
                f" {found.transaction_state} {self._name(found.producer_id) if found.producer_id else 0}"
                f"/{found.producer_epoch} {found.transaction_timeout_ms} {topics}"
            )

    def listed(self, **filters: Any) -> None:
        answer, _ = self._ask(f"list {filters}", ListTransactionsRequest(**filters), 2, lambda a: a.error_code)
        found = sorted((each.transactional_id, each.transaction_state) for each in answer.transaction_states)
        self.said[-1] += f" {found} {answer.unknown_state_filters}"

    def state_settles(self, name: str = "tx") -> None:
        """Wait until the markers of the last end are written."""
        request = DescribeTransactionsRequest(transactional_ids=[name])
        for _ in range(TIMES):
            state = self._connection.request(request, version=0).transaction_states[0].transaction_state
            if not state.startswith("Prepare"):
                return
            time.sleep(0.02)
        raise AssertionError(f"{name} stays {state}")


def converse(talk: Talk) -> None:
    """Everything, in an order in which nothing depends on timing."""
    stranger = (987_654, 0)
    # -- version 2
    for timeout_ms in (0, -1, 900_001):
        talk.init(timeout_ms=timeout_ms)
    talk.init("")
    talk.init(producer=(5, -1))
    first = talk.init()
    talk.init(producer=stranger)
    talk.end(first, True)
    talk.produce(stranger, 0)
    talk.produce(first, 3)
    talk.produce(first, 0)
    talk.produce(first, 0)
    talk.produce(first, 2)
    talk.produce(first, 1, name=None)
    talk.produce(first, 1, transactional=False, name=None)
    talk.produce(first, 1, version=10)
    talk.commit_offset(first, 5)
    talk.commit_offset(first, 5, group_id="")
    talk.commit_offset(first, 5, topic="nowhere")
    talk.commit_offset(first, 5, index=77)
    talk.commit_offset(first, 5, metadata="x" * 5000)
    talk.commit_offset(first, 5, member_id="m", generation_id_or_member_epoch=4)
    talk.commit_offset(stranger, 5)
    talk.describe("tx", "nobody", "")
    second = talk.end(first)
    talk.state_settles()
    for commit in (True, False):
        talk.end(first, commit)
    talk.end(second, True)
    talk.end((second[0], second[1] + 5), True)
    talk.end(stranger, True)
    talk.end(second, True, name="nobody")
    talk.end(second, True, name="")
    talk.committed()
    talk.produce(first, 2)
    talk.produce(second, 2)
    talk.produce(second, 0, index=1)
    third = talk.end(second, False)
    talk.state_settles()
    # A commit here is PRODUCER_FENCED, and INVALID_TXN_STATE by Apache Kafka until KAFKA-20785.
    talk.end(second, False)
    fourth = talk.end(third, False)
    talk.state_settles()
    talk.describe("tx")
    # -- version 1, by the same producer
    talk.produce(fourth, 0, version=10)
    talk.produce(fourth, 0, version=11)
    talk.commit_offset(fourth, 9, version=3)
    talk.commit_offset(fourth, 9, version=4)
    talk.add(stranger, 0)
    talk.add(fourth, 0, name="nobody")
    talk.add(fourth, 0, name="")
    talk.add(fourth, 0, 1, 77)
    talk.add(fourth, 0, topic="nowhere")
    talk.add((fourth[0], fourth[1] + 1), 0, version=1)
    talk.add((fourth[0], fourth[1] + 1), 0, version=2)
    talk.add(fourth, 0, version=0)
    talk.produce(fourth, 0, version=7)
    talk.produce(fourth, 0, version=10, index=1)
    talk.produce(fourth, 0, version=11, index=1)
    talk.add_batched(fourth, 1, verify_only=True)
    talk.add_batched(fourth, 0, verify_only=True)
    talk.add_batched((fourth[0], 0), 0, verify_only=True)
    talk.add_batched(stranger, 0, verify_only=True, name="nobody")
    talk.add_offsets(fourth)
    talk.add_offsets(stranger)
    for version in (1, 2):
        talk.add_offsets((fourth[0], 0), version=version)
    talk.commit_offset(fourth, 9, version=3)
    talk.listed(state_filters=["Ongoing", "Nope"])
    talk.listed(transactional_id_pattern="t.")
    talk.listed(transactional_id_pattern="t")
    talk.listed(duration_filter=3_600_000)
    for version in (1, 2):
        talk.end((fourth[0], 0), version=version)
    talk.end(fourth, version=3)
    talk.state_settles()
    for commit in (True, False):
        talk.end(fourth, commit, version=3)
    talk.committed()
    talk.produce(fourth, 1, version=10)
    talk.add(fourth, 0)
    talk.produce(fourth, 1, version=10)
    # -- another producer takes over, which aborts what is open
    fifth = talk.init()
    talk.end(fourth, version=3)
    talk.end(fourth, version=1)
    talk.produce(fourth, 2, version=10)
    talk.add(fourth, 0, version=1)
    talk.init("tx", 3, producer=fourth)
    talk.init("tx", 4, producer=fourth)
    sixth = talk.init(producer=fifth)
    talk.init(producer=fifth)
    talk.end(sixth, False, version=3)
    talk.end(sixth, False)
    talk.state_settles()
    talk.describe("tx")
    # -- markers by hand
    other = talk.init("other")
    talk.produce(other, 0, index=1, name="other")
    talk.mark(other, 2, transaction_version=2)
    talk.mark(other, topic="nowhere")
    talk.mark(other, coordinator_epoch=3)
    talk.mark(other, coordinator_epoch=2)
    talk.produce(other, 1, index=1, name="other", version=10)
    talk.mark((other[0], 1), 2, transaction_version=2, coordinator_epoch=3)
    talk.mark((other[0], 1), 2, transaction_version=2, coordinator_epoch=3)
    talk.mark(other)


def test_both_say_the_same(tmp_path: Path) -> None:
    said = {}
    for name in ("apache-kafka", "barnabas"):
        with broker(name, tmp_path / name, SETTINGS) as running, Admin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", 2, 1)])
            admin.cluster.coordinator("g")
            admin.cluster.coordinator("tx", 1)
            await_leaders(running.bootstrap_servers, {"t": 2})
            talk = Talk(admin)
            converse(talk)
            said[name] = talk.said
    assert said["barnabas"] == said["apache-kafka"]
