"""`reassign_partitions_test` of kafkatest: twenty partitions move among four brokers while they are written and read, and brokers bounce.

Every replica must be in sync for a write (`min.insync.replicas` 3), so a move or a bounce that loses one stops the producer. No
acknowledged record is lost, repeated or out of order, and a group that reads meanwhile misses none. The logs begin at offset 0, or where
retention or DeleteRecords has moved their start.
"""

from __future__ import annotations

import json
import random
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.cluster.cluster import Cluster
from tests.cluster.kafkatest.bounces import bounce
from tests.cluster.kafkatest.reassignments import Reassignment, shuffled
from tests.cluster.kafkatest.verifiable import VerifiableConsumer, VerifiableProducer, check_acked_are_there
from tests.cluster.load import QUICK
from tests.cluster.node_process import KINDS
from tests.cluster.records import read_partition
from tests.cluster.replicas import check_bytes_identical
from tests.cluster.topics import create_topic
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.conform, pytest.mark.long, pytest.mark.timeout(1800)]

TOPIC = "reassigned"
PARTITIONS = 20
PER_SECOND = 500
OLD_MS = 1000
"""The time of records that retention deletes at once."""
OLD_RECORDS = 20_000
SETTINGS = {"log.roll.ms": "3000", "log.retention.check.interval.ms": "2000"}


def spread(nodes: int) -> list[list[int]]:
    """Return three replicas for each partition, evenly over the nodes."""
    return [[(index + each) % nodes + 1 for each in range(3)] for index in range(PARTITIONS)]


def bounds(cluster: Cluster, topic: str) -> list[tuple[int, int]]:
    """Return the first and the next offset of each partition."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "looks", **QUICK})

    def of(index: int) -> tuple[int, int] | None:
        """Return them; None while the leader of a new topic does not know yet that it leads."""
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=30, cached=False)  # type: ignore[no-any-return]
        except KafkaException:
            return None

    try:
        return [
            wait_for(f"the offsets of {topic}-{index}", lambda index=index: of(index)) for index in range(PARTITIONS)
        ]  # type: ignore[misc]
    finally:
        consumer.close()


def expire(cluster: Cluster, folder: Path, tools: ToolProcess) -> None:
    """Move the start of each log by retention, as kafkatest does: all records are older than any limit, so none stays."""
    old = VerifiableProducer(
        cluster, folder, TOPIC, count=OLD_RECORDS, keys=100, created_ms=OLD_MS, name="old-producer"
    )
    old.start()
    old.await_end()
    assert len(old.acked) == OLD_RECORDS, f"{old}: {old.errors[:3]}"
    wait_for("all logs are empty", lambda: all(first == last > 0 for first, last in bounds(cluster, TOPIC)))


def delete_records(cluster: Cluster, folder: Path, tools: ToolProcess) -> None:
    """Move the start of each log into the middle of a segment, by kafka-delete-records."""
    old = VerifiableProducer(cluster, folder, TOPIC, count=OLD_RECORDS, keys=100, name="old-producer")
    old.start()
    old.await_end()
    ends = [last for _, last in bounds(cluster, TOPIC)]
    wanted = [{"topic": TOPIC, "partition": index, "offset": last} for index, last in enumerate(ends)]
    file = folder / "delete.json"
    file.write_text(json.dumps({"version": 1, "partitions": wanted}))
    printed = tools.run(
        "delete-records", "--bootstrap-server", cluster.bootstrap_servers, "--offset-json-file", str(file)
    )
    assert printed.startswith("exit 0"), printed
    assert bounds(cluster, TOPIC) == [(last, last) for last in ends], "records are not deleted"


STARTS = {"from zero": None, "expired": expire, "deleted": delete_records}


@pytest.mark.parametrize("start", list(STARTS))
@pytest.mark.parametrize("bounced", ["none", "clean", "hard"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_partitions_move_while_they_are_written_and_read(
    stack: ExitStack, tmp_path: Path, tools: ToolProcess, kind: str, bounced: str, start: str
) -> None:
    cluster = stack.enter_context(Cluster(kind, tmp_path / "nodes", 4, settings=SETTINGS))
    create_topic(cluster, TOPIC, spread(4), {"min.insync.replicas": "3"})
    begin = STARTS[start]
    if begin is not None:
        begin(cluster, tmp_path, tools)
    firsts = [first for first, _ in bounds(cluster, TOPIC)]
    producer = VerifiableProducer(cluster, tmp_path, TOPIC, per_second=PER_SECOND, keys=100)
    consumers = [
        VerifiableConsumer(cluster, tmp_path, TOPIC, f"{protocol}-readers", protocol, is_verbose=True)
        for protocol in ("classic", "consumer")
    ]
    for program in (producer, *consumers):
        stack.callback(program.stop, is_clean=False)
        program.start()
    producer.await_more(4 * PER_SECOND)
    reassignment = Reassignment(cluster, tools, tmp_path, shuffled(cluster, random.Random(7), TOPIC))
    reassignment.execute()
    if bounced != "none":
        for node in cluster.brokers[::2]:
            bounce(cluster, node, is_clean=bounced == "clean")
    reassignment.await_done()
    cluster.await_in_sync([TOPIC])
    producer.await_more(4 * PER_SECOND)
    producer.stop()
    there = {
        index: [(offset, int(value)) for offset, value in read_partition(cluster.bootstrap_servers, TOPIC, index)]
        for index in range(PARTITIONS)
    }
    assert [records[0][0] for records in there.values()] == firsts, "the logs begin elsewhere"
    check_acked_are_there(producer, there)
    wanted = {each.value for each in producer.acked}
    for consumer in consumers:
        consumer.await_that("all is read", lambda consumer=consumer: wanted <= set(consumer.values))  # type: ignore[misc]
        consumer.check_offsets()
    if start == "from zero":
        check_bytes_identical(cluster, TOPIC)
