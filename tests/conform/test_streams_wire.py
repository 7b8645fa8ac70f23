"""Heartbeats of streams groups, request by request, on barnabas and on Apache Kafka: the same answers and the same records.

The scenario keeps to what the two versions have in common: no standbys (a member that keeps a copy of a task it gives up gets it a step
earlier since 4.4), no static members and no warm-up tasks (both new in 4.4), version 0 (all that 4.3 has). The interval of task
offsets is not compared: 4.3 says 0.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.client.wire import BlockingConnection
from barnabas.coordinator.coordinator_log import RecordSerde
from barnabas.group.streams.heartbeat import StreamsHeartbeatResult
from barnabas.group.streams.records import (
    STREAMS_GROUP_METADATA,
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA,
)
from barnabas.protocol.messages import FindCoordinatorRequest, StreamsGroupDescribeRequest
from tests.conform.brokers import broker
from tests.group.streams.host import GROUP, Member, Request, info, word_count

pytestmark = [pytest.mark.conform, pytest.mark.timeout(3600)]

ATTEMPTS = 3

SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
}
PATIENCE_SECONDS = 240
Seen = tuple[list[tuple[Any, ...]], list[tuple[bytes, bytes | None]]]
TASK = [Request.TaskIds(subtopology_id="0", partitions=[0])]


class WireHost:
    """What `Member` needs of a host, over a socket; it writes down what is answered."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.partition(":")
        self.connection = BlockingConnection(host, int(port), client_id="wire")
        self.answers: list[tuple[Any, ...]] = []
        self.connection.request(FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP]), version=4)

    def send(self, request: Request) -> StreamsHeartbeatResult:
        for _ in range(600):
            answer = self.connection.request(request, version=0)
            if answer.error_code not in (14, 15, 16):  # The coordinator is on its way.
                break
            time.sleep(0.1)
        statuses = sorted((status.status_code, status.status_detail) for status in answer.status)
        tasks = [_tasks(answer.active_tasks), _tasks(answer.standby_tasks), _tasks(answer.warmup_tasks)]
        told = (answer.error_code, answer.error_message, answer.member_id, answer.member_epoch, statuses, tasks)
        endpoints = None
        if answer.partitions_by_user_endpoint is not None:
            endpoints = sorted(_endpoint(endpoint) for endpoint in answer.partitions_by_user_endpoint)
        self.answers.append((*told, answer.heartbeat_interval_ms, answer.endpoint_information_epoch, endpoints))
        return StreamsHeartbeatResult(answer)

    def describe(self) -> None:
        (group,) = self.connection.request(StreamsGroupDescribeRequest(group_ids=[GROUP]), version=0).groups
        members = sorted(group.members, key=lambda member: member.member_id)
        self.answers.append((group.error_code, group.group_state, group.group_epoch, group.topology, members))


def _tasks(found: Any) -> Any:
    return None if found is None else sorted((task.subtopology_id, task.partitions) for task in found)


def _endpoint(endpoint: Any) -> tuple[Any, ...]:
    active = sorted((topic.topic, topic.partitions) for topic in endpoint.active_partitions)
    return endpoint.user_endpoint.host, endpoint.user_endpoint.port, active


def refusals(host: WireHost) -> None:
    """Requests that are wrong, each in its own way."""
    nobody = Member(host, "a")  # type: ignore[arg-type]
    broken = word_count()
    broken.subtopologies[1].state_changelog_topics = [info("c", 3)]
    pattern = word_count()
    pattern.subtopologies[0].source_topic_regex = ["a.*"]
    internal, unnameable, loop = word_count(), word_count(), word_count()
    internal.subtopologies[0].source_topics = ["__consumer_offsets"]
    unnameable.subtopologies[0].source_topics = ["a b"]
    loop.subtopologies = [
        Request.Subtopology(subtopology_id="0", repartition_sink_topics=["r"], repartition_source_topics=[info("r")])
    ]
    for topology in (broken, pattern, internal, unnameable, loop):
        nobody.join(topology)
    for fields in (
        {"rebalance_timeout_ms": -1},
        {"rack_id": " "},
        {"active_tasks": TASK},
        {"active_tasks": None},
        {"standby_tasks": TASK},
    ):
        nobody.join(**fields)
    for member_id, epoch, fields in (
        ("", 3, {}),
        ("a", -3, {}),
        ("a", 3, {}),
        ("a", -1, {}),
        ("a", 3, {"topology": word_count()}),
        ("a", 3, {"active_tasks": []}),
    ):
        host.send(Request(group_id=GROUP, member_id=member_id, member_epoch=epoch, **fields))


def life(host: WireHost, admin: AdminClient) -> None:
    """Three members come and go; the topics are made on the way."""
    # An endpoint while source topics are missing is an UNKNOWN_SERVER_ERROR of Kafka's, so a has none.
    a, c = Member(host, "a"), Member(host, "c")  # type: ignore[arg-type]
    b = Member(host, "b", user_endpoint=Request.Endpoint(host="h", port=1))  # type: ignore[arg-type]
    a.join(client_tags=[Request.KeyValue(key="zone", value="z"), Request.KeyValue(key="a", value="b")])
    create(admin, {"lines": 3, "r": 3, "c": 3})
    for member in (a, a, b):
        member.join() if member.epoch == 0 else member.beat()
    for _ in range(4):
        a.beat()
        b.beat()
    c.join()
    for _ in range(4):
        a.beat()
        b.beat()
        c.beat()
    host.describe()
    for epoch in (99, 1):
        host.send(Request(group_id=GROUP, member_id="a", member_epoch=epoch))
    for wrong in (
        Request.TaskIds(subtopology_id="7", partitions=[0]),
        Request.TaskIds(subtopology_id="0", partitions=[9]),
    ):
        a.beat(active_tasks=[wrong])
    b.beat(shutdown_application=True)
    a.beat()
    b.leave()
    for _ in range(3):
        a.beat()
        c.beat()
    a.join(word_count(epoch=1))
    a.join()
    for _ in range(3):
        a.beat()
        c.beat()
    host.describe()
    b.epoch = 3
    b.beat()


def create(admin: AdminClient, topics: dict[str, int]) -> None:
    for future in admin.create_topics([NewTopic(name, count, 1) for name, count in topics.items()]).values():
        future.result(30)
    wanted = dict(topics)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while wanted:
        found = admin.list_topics(timeout=30).topics
        wanted = {
            name: count for name, count in wanted.items() if name not in found or len(found[name].partitions) != count
        }
        assert time.monotonic() < deadline, wanted
    # The coordinator hears of topics after the broker's answers about them do, from the same update.
    time.sleep(1)


def records(bootstrap: str) -> Iterator[tuple[bytes, bytes | None]]:
    """Keys and values of `__consumer_offsets`; without hashes of topic ids and times, which differ."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "-", "enable.auto.commit": False})
    partition = TopicPartition("__consumer_offsets", 0, 0)
    _, end = consumer.get_watermark_offsets(partition, 30)
    assert end > 0
    consumer.assign([partition])
    serde = RecordSerde("group")
    deadline = time.monotonic() + PATIENCE_SECONDS
    last = -1
    try:
        while last < end - 1:
            assert time.monotonic() < deadline, (last, end)
            message = consumer.poll(1)
            if message is None or message.error() is not None:
                continue
            last = message.offset()
            key, value = message.key(), message.value()
            if isinstance(key, bytes):
                record = serde.decode(key, value)
                if record.type_id == STREAMS_GROUP_METADATA and value is not None:
                    value = value[:6] + value[14:]
                if record.type_id == STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA and value is not None:
                    value = value[:6]
                yield key, value
    finally:
        consumer.close()


def play(name: str, folder: Path) -> Seen:
    with broker(name, folder / name, SETTINGS) as under_test:
        bootstrap = under_test.bootstrap_servers
        host, admin = WireHost(bootstrap), AdminClient({"bootstrap.servers": bootstrap})
        create(admin, {"untouched": 1})
        refusals(host)
        life(host, admin)
        return host.answers, list(records(bootstrap))


def test_the_same_answers_and_records(tmp_path: Path) -> None:
    """A conversation in real time may meet a broker that is held up at the wrong moment; one that answers otherwise does so each time."""
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt)
        ours, our_records = play("barnabas", folder)
        theirs, their_records = play("apache-kafka", folder)
        different = [f"{one}\n{other}" for one, other in zip_longest(ours, theirs) if one != other]
        if not different and our_records == their_records:
            return
        warnings.warn("\n\n".join(different) or "the records differ", stacklevel=1)
    assert not different, "\n\n".join(different)
    assert our_records == their_records
