"""Requests that no client sends, or not often, on barnabas and on Apache Kafka: the same answers, field by field.

A script is a list of requests in fixed versions, played over one connection to each broker. Of an answer everything is compared but
what must differ: ids, addresses, the wording of errors (whether there are words is compared), the times a broker gives, and the settings
of a new topic, of which 4.4 has more. What is different on purpose stays out: records that are wrong within a batch whose header is
right, and batches that are cut to fit (docs/other-suites.md).
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.client.wire import BlockingConnection
from barnabas.protocol.message import Struct
from barnabas.protocol.messages import (
    AddPartitionsToTxnRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeProducersRequest,
    ElectLeadersRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    UpdateFeaturesRequest,
)
from barnabas.records.builder import build_batch
from barnabas.records.checksum import crc32c
from tests.conform.brokers import BarnabasProcess, KafkaProcess
from tests.conform.card.results import OURS, THEIRS

pytestmark = [pytest.mark.conform, pytest.mark.timeout(200)]

BEGIN = 1_700_000_000_000
MB = 1 << 20
NOBODY = b"\x07" * 16
NOT_YET = (6, 14, 15, 16, 51)
"""Not the leader, loading, not available, not the coordinator, a transaction still ending: asked again."""
LEFT_OUT = frozenset(
    ("throttle_time_ms", "cluster_id", "host", "port", "log_append_time_ms", "producer_id", "session_id", "configs")
)

Ask = tuple[str, int, Any]
Script = Callable[["Side"], Iterator[Ask]]


class Side:
    """One broker under test."""

    def __init__(self, one: BarnabasProcess | KafkaProcess) -> None:
        host, _, port = one.bootstrap_servers.partition(":")
        self.connection = BlockingConnection(host, int(port), client_id="raw")
        self.names: dict[bytes, str] = {}
        self.ids: dict[str, bytes] = {}

    def create(self, name: str, partitions: int, **configs: str) -> None:
        """Create a topic and wait until it has leaders."""
        kind = CreateTopicsRequest
        settings = [kind.CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()]
        topic = kind.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
        created = self.connection.request(kind(topics=[topic], timeout_ms=10_000), version=7).topics[0]
        assert created.error_code == 0, created
        self.names[created.topic_id], self.ids[name] = name, created.topic_id
        wanted = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
        )
        for _ in range(200):
            (found,) = self.connection.request(wanted, version=12).topics
            if not found.error_code and all(p.leader_id >= 0 for p in found.partitions):
                return
        raise AssertionError(f"{name} has no leaders")

    def play(self, script: Script) -> list[tuple[str, int, Any]]:
        return [(label, version, self.seen(self.ask(request, version))) for label, version, request in script(self)]

    def ask(self, request: Any, version: int) -> Any:
        for _ in range(100):
            answer = self.connection.request(request, version=version)
            if not any(code in NOT_YET for code in codes(answer)):
                break
            time.sleep(0.05)
        return answer

    def seen(self, value: Any, field: str = "") -> Any:
        if isinstance(value, Struct):
            return {name: self.seen(getattr(value, name), name) for name in value.FIELDS if name not in LEFT_OUT}
        if isinstance(value, list):
            return [self.seen(element, field) for element in value]
        if field == "records":
            return [] if value is None else list(headers(bytes(value)))
        if isinstance(value, bytes):
            return self.names.get(value, "new" if len(value) == 16 and any(value) and value != NOBODY else value)
        if field.endswith("message") and value:
            return "words"
        return value


def codes(answer: Any) -> Iterator[int]:
    for name in answer.FIELDS:
        value = getattr(answer, name)
        if name.endswith("error_code"):
            yield value
        for element in value if isinstance(value, list) else ():
            if isinstance(element, Struct):
                yield from codes(element)


def headers(records: bytes) -> Iterator[tuple[int, ...]]:
    """Base offset, length, and what follows the CRC, of each batch."""
    at = 0
    while at + 61 <= len(records):
        base, length = struct.unpack_from(">qi", records, at)
        yield base, length, *struct.unpack_from(">hiqqqhii", records, at + 21)
        at += 12 + length


def batch(count: int = 3, start: int = BEGIN, **fields: Any) -> bytearray:
    return build_batch([(start + n, b"k", b"value%d" % n, [("h", b"x")]) for n in range(count)], **fields)


def damaged(at: int, kind: str, value: int, *, sealed: bool = True) -> bytearray:
    """A batch with one field of its header overwritten, and the CRC made anew."""
    found = batch()
    struct.pack_into(">" + kind, found, at, value)
    if sealed:
        found[17:21] = crc32c(memoryview(found)[21:]).to_bytes(4, "big")
    return found


def message(magic: int) -> bytes:
    """A message of the formats before record batches, its byte at the place of v2's attributes set."""
    body = struct.pack(">bb", magic, 0) + b"\xff" * 24
    return struct.pack(">qi", 0, 4 + len(body)) + b"\0" * 4 + body


BATCHES: dict[str, bytes | bytearray] = {
    "good": batch(),
    "CRC": damaged(17, "I", 5, sealed=False),
    "magic 3": damaged(16, "b", 3, sealed=False),
    "magic -1": damaged(16, "b", -1, sealed=False),
    "format 0": message(0),
    "format 1": message(1),
    "no record counted": damaged(57, "i", 0),
    "one record too many": damaged(57, "i", 4),
    "last offset delta 0": damaged(23, "i", 0),
    "last offset delta 9": damaged(23, "i", 9),
    "length 0": damaged(8, "i", 0),
    "length 20": damaged(8, "i", 20),
    "a byte longer": damaged(8, "i", len(batch()) - 11),
    "cut": batch()[:-3],
    "cut within the header": batch()[:30],
    "cut before the magic": batch()[:16],
    "two": batch() + batch(),
    "with a tail": batch() + b"\0\0\0",
    "nothing": b"",
    "base offset 5": batch(base_offset=5),
    "control": batch(control=True),
    "transactional": batch(transactional=True, producer_id=7000, producer_epoch=0, base_sequence=0),
    "producer": batch(producer_id=7001, producer_epoch=0, base_sequence=0),
    "producer again": batch(producer_id=7001, producer_epoch=0, base_sequence=0),
    "gap": batch(producer_id=7001, producer_epoch=0, base_sequence=9),
    "new epoch with a sequence": batch(producer_id=7001, producer_epoch=1, base_sequence=3),
    "new epoch": batch(producer_id=7001, producer_epoch=1, base_sequence=0),
    "old epoch": batch(producer_id=7001, producer_epoch=0, base_sequence=3),
    "no sequence": batch(producer_id=7001, producer_epoch=1, base_sequence=-1),
    "no timestamp": batch(1, start=-1),
    "no key": build_batch([(BEGIN, None, b"v", [])]),
    "no value": build_batch([(BEGIN, b"k", None, [])]),
    "too large": build_batch([(BEGIN, b"k", b"v" * (MB + 1), [])]),
    **{f"codec {codec}": batch(compression=codec) for codec in (1, 2, 3, 4)},
}


def write(topic: str, records: bytes | bytearray, *, partition: int = 0, acks: int = -1, id_: bytes = bytes(16)) -> Any:
    data = ProduceRequest.PartitionProduceData(index=partition, records=bytes(records))
    topics = [ProduceRequest.TopicProduceData(name=topic, topic_id=id_, partition_data=[data])]
    return ProduceRequest(acks=acks, timeout_ms=5000, topic_data=topics)


def producing(side: Side) -> Iterator[Ask]:
    side.create("raw-plain", 1)
    side.create("raw-compacted", 1, cleanup_policy="compact")
    side.create("raw-appended", 1, message_timestamp_type="LogAppendTime")
    for topic in ("raw-plain", "raw-compacted", "raw-appended"):
        for label, records in BATCHES.items():
            yield f"{label} to {topic}", 9, write(topic, records)
    for version in range(3, 14):
        for topic in ("raw-plain", "raw-none", "no name", "__consumer_offsets"):
            for partition, acks in ((0, 1), (9, -1), (-1, 2)):
                id_ = bytes(16) if version < 13 else side.ids.get(topic, NOBODY)
                request = write(topic, batch(), partition=partition, acks=acks, id_=id_)
                yield f"{topic}-{partition} acks={acks}", version, request


def read(side: Side, version: int, offset: int = 0, partition: int = 0, **fields: Any) -> FetchRequest:
    limits = {key: fields.pop(key) for key in ("partition_max_bytes", "current_leader_epoch") if key in fields}
    wanted = FetchRequest.FetchPartition(
        partition=partition, fetch_offset=offset, **{"partition_max_bytes": MB, **limits}
    )
    name, id_ = ("raw-read", bytes(16)) if version < 13 else ("", fields.pop("id_", side.ids["raw-read"]))
    topic = FetchRequest.FetchTopic(topic=name, topic_id=id_, partitions=[wanted])
    fields = {"max_bytes": MB, "session_epoch": -1, **fields}
    return FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic], **fields)


def reading(side: Side) -> Iterator[Ask]:
    """Fetch, ListOffsets, OffsetForLeaderEpoch and DeleteRecords at the edges of a log."""
    side.create("raw-read", 2)
    uneven = build_batch([(BEGIN + at, b"k", b"v", []) for at in (50, 300, 200, 300)], compression=3)
    for records in (batch(), batch(start=BEGIN + 100, compression=1), uneven, batch(start=BEGIN + 10)):
        yield "write", 9, write("raw-read", records)
    for deleted in (None, -2, 99, 4, 3):
        if deleted is not None:
            partition = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=deleted)
            shortened = DeleteRecordsRequest.DeleteRecordsTopic(name="raw-read", partitions=[partition])
            yield f"delete before {deleted}", 2, DeleteRecordsRequest(topics=[shortened], timeout_ms=5000)
        for version in (4, 7, 11, 12, 13, 17):
            for offset in (0, 3, 4, 8, 13, 14, -1, 2**63 - 1):
                yield f"from {offset}", version, read(side, version, offset)
            for size, total in ((0, MB), (1, MB), (MB, 0), (MB, 1)):
                request = read(side, version, 4, partition_max_bytes=size, max_bytes=total)
                yield f"{size} of {total} bytes", version, request
            yield "no partition", version, read(side, version, partition=9)
            for epoch in (0, 1, -2) if version > 8 else ():
                yield f"epoch {epoch}", version, read(side, version, 13, current_leader_epoch=epoch)
            for session, turn in ((5, 1), (5, 0), (0, 1), (5, -1)) if version > 6 else ():
                request = read(side, version, 13, session_id=session, session_epoch=turn)
                yield f"session {session} epoch {turn}", version, request
            for id_ in (bytes(16), NOBODY) if version > 12 else ():
                yield "no topic", version, read(side, version, id_=id_)
        for version in (1, 4, 7, 8, 11):
            for at_ms in (*range(-7, 1), *(BEGIN + at for at in (0, 2, 11, 50, 51, 103, 201, 300, 301)), 2**63 - 1):
                moment = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=at_ms)
                topics = [ListOffsetsRequest.ListOffsetsTopic(name="raw-read", partitions=[moment])]
                yield f"at {at_ms}", version, ListOffsetsRequest(replica_id=-1, topics=topics)
    for known in (-2, -1, 0, 1):
        for epoch in (-1, 0, 1, -3):
            end = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                partition=0, current_leader_epoch=known, leader_epoch=epoch
            )
            topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic="raw-read", partitions=[end])
            yield f"end of epoch {epoch}", 4, OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])


def committing(side: Side) -> Iterator[Ask]:
    """Offsets of a group without members, and transactions that are added to wrongly."""
    side.create("raw-offsets", 1)
    yield "group", 4, FindCoordinatorRequest(key_type=0, coordinator_keys=["raw"])
    yield "transactions", 4, FindCoordinatorRequest(key_type=1, coordinator_keys=["raw-tx"])
    yield "share", 4, FindCoordinatorRequest(key_type=2, coordinator_keys=["raw"])
    for version in range(2, 11):
        id_ = side.ids["raw-offsets"] if version > 9 else bytes(16)
        for group, member, generation in (
            ("raw", "", -1),
            ("raw", "m", -1),
            ("raw", "", 5),
            ("raw", "m", 0),
            ("", "", -1),
        ):
            for offset, words, index in ((5, "x", 0), (-1, None, 0), (-5, "", 0), (7, "x" * 4097, 0), (1, "x", 9)):
                kept = OffsetCommitRequest.OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offset, committed_metadata=words
                )
                topic = OffsetCommitRequest.OffsetCommitRequestTopic(
                    name="raw-offsets" if version < 10 else "", topic_id=id_, partitions=[kept]
                )
                request = OffsetCommitRequest(
                    group_id=group, member_id=member, generation_id_or_member_epoch=generation, topics=[topic]
                )
                yield f"commit {offset} by {member!r} {generation}", version, request
        if version >= 8:
            groups = [
                OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("raw", "none")
            ]
            yield "fetch", version, OffsetFetchRequest(groups=groups)
    for timeout_ms in (60_000, 0, -1, 900_001):
        yield "init", 4, InitProducerIdRequest(transactional_id="raw-tx", transaction_timeout_ms=timeout_ms)
    for name, index in (("raw-offsets", 0), ("raw-offsets", 9), ("raw-none", 0), ("__transaction_state", 0)):
        added = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=[index])
        for transactional_id in ("raw-tx", "raw-none", ""):
            adding = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=transactional_id,
                v3_and_below_producer_id=999_999,
                v3_and_below_topics=[added],
            )
            yield f"add {name}-{index} to {transactional_id!r}", 3, adding


def administering(side: Side) -> Iterator[Ask]:
    side.create("raw-admin", 2)
    new = CreateTopicsRequest
    for partitions, replicas in ((0, 1), (1, 0), (-2, 1), (1, 2), (-1, -1)):
        topic = new.CreatableTopic(name="raw-new", num_partitions=partitions, replication_factor=replicas)
        yield f"{partitions} x {replicas}", 7, new(topics=[topic], timeout_ms=5000, validate_only=True)
    for name in ("", ".", "a b", "a" * 250, "raw-admin", "__consumer_offsets_"):
        topic = new.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        yield f"create {name!r}", 4, new(topics=[topic], timeout_ms=5000, validate_only=True)
    for setting, value in (("nope", "1"), ("retention.ms", "-2"), ("cleanup.policy", "bad"), ("retention.ms", None)):
        config = new.CreatableTopicConfig(name=setting, value=value)
        topic = new.CreatableTopic(name="raw-new", num_partitions=1, replication_factor=1, configs=[config])
        yield f"{setting}={value}", 4, new(topics=[topic], timeout_ms=5000, validate_only=True)
    more = CreatePartitionsRequest
    for name, count in (("raw-admin", 2), ("raw-admin", 1), ("raw-admin", -1), ("raw-none", 3), ("", 3)):
        grown = more.CreatePartitionsTopic(name=name, count=count, assignments=None)
        yield f"{name} to {count}", 3, more(topics=[grown], timeout_ms=5000)
    for names in (["raw-none"], [""], ["raw-admin", "raw-admin"], []):
        yield f"delete {names}", 5, DeleteTopicsRequest(topic_names=names, timeout_ms=5000)
    both = DeleteTopicsRequest.DeleteTopicState(name="raw-admin", topic_id=side.ids["raw-admin"])
    yield "delete by both", 6, DeleteTopicsRequest(topics=[both], timeout_ms=5000)
    for kind, indexes in ((0, [0, 9]), (1, [0]), (7, [0, 1])):
        elected = ElectLeadersRequest.TopicPartitions(topic="raw-admin", partitions=indexes)
        yield f"elect {kind}", 2, ElectLeadersRequest(election_type=kind, topic_partitions=[elected], timeout_ms=5000)
    for name in ("raw-admin", "raw-none", "no name"):
        topic_of = DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[0, 9])
        yield f"producers of {name}", 0, DescribeProducersRequest(topics=[topic_of])
    for feature, level, kind in (
        ("nope", 1, 1),
        ("group.version", 9, 1),
        ("group.version", -1, 1),
        ("group.version", 0, 9),
    ):
        update = UpdateFeaturesRequest.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
        yield (
            f"{feature}={level}",
            1,
            UpdateFeaturesRequest(feature_updates=[update], validate_only=True, timeout_ms=5000),
        )


@pytest.mark.parametrize("script", [producing, reading, committing, administering])
def test_both_brokers_answer_alike(both_brokers: dict[str, BarnabasProcess | KafkaProcess], script: Script) -> None:
    if len(both_brokers) < 2:
        pytest.skip("one broker alone has nobody to agree with")
    played = {name: Side(both_brokers[name]).play(script) for name in (OURS, THEIRS)}
    different = [
        (*ours, theirs[2]) for ours, theirs in zip(played[OURS], played[THEIRS], strict=True) if ours != theirs
    ]
    assert different == []
