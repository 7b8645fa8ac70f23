"""Apache Kafka as the judge: its dump-log reads our files, our log opens its directories, and it opens what we wrote on."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from apache_kafka import ApacheKafka, run_tool

from barnabas.log import meta_properties
from barnabas.log.disk import OsDisk
from barnabas.log.log_config import LogConfig
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import AppendOrigin, PartitionLog
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from barnabas.records.control import build_end_transaction_marker
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from tests.at_once import at_once
from tests.conform.brokers import await_leaders

pytestmark = [pytest.mark.conform, pytest.mark.slow, pytest.mark.timeout(3600)]

TOPIC = "orders"


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def data_records(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None, int]]:
    """Offset, key, value and timestamp of every record that is not a control record."""
    found = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 20, max_offset=log.log_end_offset).read()
        for position, header in iter_batches(data):
            offset = header.next_offset
            if not header.is_control:
                for record in iter_records(data, position):
                    found.append((record.offset, record.key, record.value, record.timestamp))
    return found


def write_log(directory: Path, *, clean: bool) -> PartitionLog:
    """A log with every compression, an idempotent producer, transactions, and several segments and epochs."""
    dice = random.Random(1)
    now = wall_ms()
    config = LogConfig(segment_bytes=100_000, index_interval_bytes=1000)
    log = PartitionLog(OsDisk(), str(directory), config, now_ms=wall_ms)
    sequence = 0
    for number in range(400):
        count = dice.randrange(1, 20)
        records = [
            (now - dice.randrange(100_000), b"k%d" % number, bytes(dice.randrange(300)), (("h", b"x"), ("n", None)))
            for _ in range(count)
        ]
        batch = build_batch(
            records,
            compression=Compression(number % 5),
            producer_id=7,
            producer_epoch=0,
            base_sequence=sequence,
        )
        sequence += count
        log.append_as_leader(batch, number // 100)
    for number in range(3):
        batch = build_batch(
            [(now, b"a", b"b", ())], producer_id=9, producer_epoch=0, base_sequence=number, transactional=True
        )
        log.append_as_leader(batch, 4)
    log.append_as_leader(
        build_end_transaction_marker(commit=False, coordinator_epoch=2, producer_id=9, producer_epoch=0, timestamp=now),
        4,
        origin=AppendOrigin.COORDINATOR,
    )
    log.close(clean=clean)
    return log


def dump(directory: Path, suffix: str, *options: str) -> str:
    files = sorted(str(path) for path in directory.glob(f"*{suffix}"))
    assert files
    result = run_tool("dump-log", *options, "--files", ",".join(files))
    assert result.returncode == 0, result.stderr
    for complaint in ("Mismatches", "not found", "out of order", "isvalid: false", "Exception", "Error"):
        assert complaint not in result.stdout + result.stderr, result.stdout + result.stderr
    return result.stdout


def test_dump_log_reads_ours(tmp_path: Path) -> None:
    directory = tmp_path / f"{TOPIC}-0"
    log = write_log(directory, clean=True)
    text = dump(directory, ".log", "--deep-iteration")
    batches = [line for line in text.splitlines() if line.startswith("baseOffset")]
    assert len(batches) == 404
    assert all("isvalid: true" in line for line in batches)
    assert text.count("| offset: ") == log.log_end_offset
    assert "endTxnMarker: ABORT coordinatorEpoch: 2" in text
    for suffix in (".index", ".timeindex"):
        # Without options every entry is compared with the batch it points to.
        assert dump(directory, suffix)
        assert dump(directory, suffix, "--verify-index-only")
        assert dump(directory, suffix, "--index-sanity-check").count("passed sanity check") == len(
            list(directory.glob(f"*{suffix}"))
        )
    snapshots = dump(directory, ".snapshot")
    assert "producerId: 7 producerEpoch: 0 coordinatorEpoch: -1 " in snapshots
    assert f"lastSequence: {log.log_end_offset - 5} lastOffset: {log.log_end_offset - 5}" in snapshots
    aborted = dump(directory, ".txnindex")
    end = log.log_end_offset
    assert f"producerId: 9 firstOffset: {end - 4} lastOffset: {end - 1} lastStableOffset: {end}" in aborted


def produce(kafka: ApacheKafka, count: int, *, compression: str, transactional_id: str | None = None) -> None:
    from confluent_kafka import Producer

    settings = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "compression.type": compression,
        "enable.idempotence": True,
        "batch.num.messages": 20,
    }
    if transactional_id is not None:
        settings["transactional.id"] = transactional_id
    producer = Producer(settings)
    if transactional_id is not None:
        producer.init_transactions()
        for abort in (False, True, False):
            producer.begin_transaction()
            for number in range(count):
                producer.produce(TOPIC, b"%s-%d" % (str(abort).encode(), number), b"t")
            producer.flush()
            if abort:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        return
    for number in range(count):
        producer.produce(TOPIC, b"value-%d" % number * (number % 30), b"key-%d" % number, headers={"h": b"1"})
        producer.poll(0)
    producer.flush()


def consume(kafka: ApacheKafka, end: int, *, isolation: str = "read_uncommitted") -> list[tuple[object, ...]]:
    from confluent_kafka import Consumer, TopicPartition

    await_leaders(kafka.bootstrap_servers, {TOPIC: 1})
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "judge", "enable.partition.eof": True}
    # While markers are being written the end is nearer for those who read what is committed.
    end_reader = Consumer({**settings, "isolation.level": "read_uncommitted"})
    _, last = end_reader.get_watermark_offsets(TopicPartition(TOPIC, 0), 240)
    end_reader.close()
    consumer = Consumer({**settings, "isolation.level": isolation})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[tuple[object, ...]] = []
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            if message.error().name() == "_PARTITION_EOF" and message.offset() >= last:
                break
            continue
        found.append((message.offset(), message.key(), message.value() or b"", message.timestamp()[1]))
    consumer.close()
    return found


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_ours_opens_apache_kafkas_directory_and_gives_it_back(tmp_path: Path, clean: bool) -> None:
    settings = {"log.index.interval.bytes": "500", "log.segment.bytes": "1048576", "auto.create.topics.enable": "false"}
    with ApacheKafka(tmp_path / "kafka", settings=settings) as kafka:
        created = run_tool(
            "topics", "--bootstrap-server", kafka.bootstrap_servers, "--create", "--topic", TOPIC, "--partitions", "1"
        )
        assert created.returncode == 0, created.stderr
        for compression in ("none", "gzip", "snappy", "lz4", "zstd"):
            produce(kafka, 2500, compression=compression)
        produce(kafka, 30, compression="none", transactional_id="t")
        expected = consume(kafka, -1)
        committed = consume(kafka, -1, isolation="read_committed")
        if clean:
            kafka.stop()
        else:
            kafka.kill()
        assert len(expected) == 5 * 2500 + 90
        assert len(committed) == len(expected) - 30

        manager = LogManager(OsDisk(), str(kafka.data_dir), now_ms=wall_ms, config_for=lambda _: LogConfig())
        at_once(manager.open())
        assert manager.had_clean_shutdown is clean
        meta = meta_properties.read(OsDisk(), str(kafka.data_dir))
        assert meta is not None
        assert meta.node_id >= 0
        log = manager.get(TOPIC, 0)
        assert log is not None
        assert [(o, k, v or b"", t) for o, k, v, t in data_records(log)] == expected
        log.high_watermark = log.log_end_offset
        assert log.last_stable_offset == log.log_end_offset
        aborted = log.aborted_transactions(0, log.log_end_offset)
        hidden = {offset for entry in aborted for offset in range(entry.first_offset, entry.last_offset)}
        assert [row for row in expected if row[0] not in hidden] == committed
        assert len(log.producers()) == 6
        stamps = [row[3] for row in expected]
        for wanted in sorted(random.Random(2).sample(stamps, 20)):
            found = log.offset_for_timestamp(int(str(wanted)))
            assert found is not None
            assert found.offset == next(row[0] for row in expected if int(str(row[3])) >= int(str(wanted)))

        # We go on writing where it stopped, and give the directory back.
        epoch = log.latest_epoch
        for number in range(300):
            records = [(wall_ms(), b"ours-%d" % number, bytes(100), ())]
            log.append_as_leader(build_batch(records, producer_id=5000, producer_epoch=0, base_sequence=number), epoch)
        log.high_watermark = log.log_end_offset
        ours = [(o, k, v or b"", t) for o, k, v, t in data_records(log)]
        at_once(manager.close(clean=clean))
        kafka.start()
        assert consume(kafka, -1) == ours
        produce(kafka, 10, compression="none")
        assert len(consume(kafka, -1)) == len(ours) + 10
