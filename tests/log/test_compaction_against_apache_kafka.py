"""The same directory cleaned by Apache Kafka and by us: the same batches are left, and each can go on where the other stopped."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from apache_kafka import ApacheKafka, run_tool
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.log import checkpoints
from barnabas.log.cleanable_log import CleanerConfig
from barnabas.log.cleaner_worker import ProcessWorker
from barnabas.log.disk import OsDisk
from barnabas.log.log_cleaner import CLEANER_OFFSET_CHECKPOINT, LogCleaner
from barnabas.log.log_config import LogConfig
from barnabas.log.log_flusher import run_inline
from barnabas.log.partition_log import PartitionLog
from barnabas.records.record import Record, iter_records
from barnabas.records.record_batch import BatchHeader

pytestmark = [pytest.mark.conform, pytest.mark.slow, pytest.mark.timeout(3600)]

TOPIC = "orders"
KEY = (TOPIC, 0)
DELETE_RETENTION_MS = 1
SETTINGS = {
    "cleanup.policy": "compact",
    "segment.ms": "5000",
    "min.cleanable.dirty.ratio": "0.0",
    "delete.retention.ms": str(DELETE_RETENTION_MS),
}
CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_ms=5000,
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=DELETE_RETENTION_MS,
)


class CleanedBatch(NamedTuple):
    """A batch without what may differ: position, CRC, the time of the delete horizon."""

    base_offset: int
    last_offset: int
    producer: tuple[int, int, int]
    attributes: int
    max_timestamp: int
    records: tuple[tuple[int, int, bytes | None, bytes | None], ...]


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def write(bootstrap_servers: str, first_timestamp: int, round_: int) -> None:
    """Records of all codecs, tombstones, committed and aborted transactions; a hundred milliseconds from one to the next."""
    timestamp = first_timestamp
    for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "compression.type": codec,
                "linger.ms": 50,
            }
        )
        for i in range(60):
            value = None if i % 11 == 5 else f"{round_}-{number}-{i}" * 3
            producer.produce(TOPIC, value, f"k{(i * 7 + number) % 23}", partition=0, timestamp=timestamp)
            timestamp += 100
            if i % 6 == 5:
                assert producer.flush(240) == 0
        assert producer.flush(240) == 0
        transactional = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": f"t{number % 3}"})
        transactional.init_transactions(240)
        for attempt in range(4):
            transactional.begin_transaction()
            for i in range(5):
                key = f"k{i}" if attempt % 2 else f"only-{round_}-{number}-{attempt}-{i}"
                transactional.produce(TOPIC, f"{round_} in {attempt}", key, partition=0, timestamp=timestamp)
                timestamp += 100
            # In the log before the end: librdkafka would drop what an aborted transaction has not sent yet, and Apache Kafka rejects the
            # end of a transaction whose partition it has not added yet.
            assert transactional.flush(240) == 0
            if attempt % 2:
                transactional.abort_transaction(240)
            else:
                transactional.commit_transaction(240)
    last = Producer({"bootstrap.servers": bootstrap_servers})
    # A jump beyond segment.ms: everything before it lies in sealed segments.
    last.produce(TOPIC, f"end {round_}", f"end-{round_}", partition=0, timestamp=timestamp + 60_000)
    assert last.flush(240) == 0


def open_log(directory: Path, *, cleaned_to: int) -> PartitionLog:
    log = PartitionLog(OsDisk(), str(directory), CONFIG, now_ms=wall_ms, clean=True, cleaned_to=cleaned_to)
    log.high_watermark = log.log_end_offset
    return log


def cleaned_to(data_dir: Path) -> int:
    offsets = checkpoints.read_offsets(OsDisk(), str(data_dir / CLEANER_OFFSET_CHECKPOINT))
    return (offsets or {}).get(KEY, 0)


def clean_ours(data_dir: Path) -> None:
    logs: dict[tuple[str, int], PartitionLog] = {}
    cleaner = LogCleaner(
        OsDisk(),
        str(data_dir),
        logs,
        now_ms=wall_ms,
        make_worker=lambda: ProcessWorker(run_inline),
        config=CleanerConfig(backoff_ms=0, dedupe_buffer_bytes=1 << 20),
    )
    cleaner.load()
    logs[KEY] = open_log(data_dir / f"{TOPIC}-0", cleaned_to=cleaner.cleaned_to(KEY))
    cleaner.poll()
    assert cleaner.stats.cleanings >= 1
    cleaner.close()
    logs[KEY].close()


def read(data_dir: Path) -> tuple[list[CleanedBatch], list[int], list[tuple[int, ...]]]:
    """The batches that say anything, the segments, and the aborted transactions of a directory."""
    log = open_log(data_dir / f"{TOPIC}-0", cleaned_to=cleaned_to(data_dir))
    batches: list[CleanedBatch] = []
    for segment in log.segments:
        for position, header in segment.headers():
            records = list(iter_records(segment.read_batch(position, header)))
            batches.append(_batch(header, records))
    aborted = [tuple(entry) for entry in log.aborted_transactions(0, log.log_end_offset)]
    bases = [segment.base_offset for segment in log.segments]
    log.close()
    return batches, bases, aborted


def _batch(header: BatchHeader, records: list[Record]) -> CleanedBatch:
    return CleanedBatch(
        header.base_offset,
        header.last_offset,
        (header.producer_id, header.producer_epoch, header.base_sequence),
        header.attributes,
        header.max_timestamp,
        tuple((record.offset, record.timestamp, record.key, record.value) for record in records),
    )


def start(kafka: ApacheKafka, *, cleaner: bool) -> None:
    kafka.settings["log.cleaner.enable"] = str(cleaner).lower()
    if kafka.data_dir.exists():
        text = "".join(f"{key}={value}\n" for key, value in kafka.properties().items())
        (kafka.folder / "server.properties").write_text(text)
    kafka.start()


def run_kafka_cleaner(kafka: ApacheKafka) -> None:
    """Starts Apache Kafka with its cleaner, waits for the end of a cleaning, and stops it."""
    before = cleaned_to(kafka.data_dir)
    start(kafka, cleaner=True)
    deadline = time.monotonic() + 240
    while cleaned_to(kafka.data_dir) <= before:
        assert time.monotonic() < deadline, "Apache Kafka has not cleaned"
        time.sleep(0.1)
    kafka.stop()


def test_both_leave_the_same(tmp_path: Path) -> None:
    settings = {
        "log.cleaner.enable": "false",
        "log.cleaner.backoff.ms": "100",
        "log.cleaner.dedupe.buffer.size": "2000000",
    }
    kafka = ApacheKafka(tmp_path / "kafka", settings=settings)
    first_timestamp = wall_ms() - 3_600_000
    theirs: list[CleanedBatch] = []
    for round_ in range(3):
        start(kafka, cleaner=False)
        try:
            if not round_:
                admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
                topic = NewTopic(TOPIC, 1, 1, config=SETTINGS)
                admin.create_topics([topic])[TOPIC].result(240)
            write(kafka.bootstrap_servers, first_timestamp + round_ * 600_000, round_)
        finally:
            kafka.stop()
        ours_dir = tmp_path / f"ours-{round_}"
        ours_dir.mkdir()
        shutil.copytree(kafka.data_dir / f"{TOPIC}-0", ours_dir / f"{TOPIC}-0")
        if (kafka.data_dir / CLEANER_OFFSET_CHECKPOINT).exists():
            shutil.copy(kafka.data_dir / CLEANER_OFFSET_CHECKPOINT, ours_dir)
        before = read(ours_dir)[0]
        clean_ours(ours_dir)
        run_kafka_cleaner(kafka)
        ours, our_segments, our_aborted = read(ours_dir)
        theirs, their_segments, their_aborted = read(kafka.data_dir)
        assert cleaned_to(ours_dir) == cleaned_to(kafka.data_dir)
        assert len(theirs) < len(before)
        # The last batch of a new segment stays with us though it may be empty.
        ends = {base - 1 for base in our_segments}
        extra = [batch for batch in ours if batch not in theirs]
        assert [batch for batch in theirs if batch not in ours] == []
        assert [batch for batch in extra if batch.records or batch.last_offset not in ends] == []
        assert our_segments == their_segments
        assert our_aborted == their_aborted
        files = ",".join(str(path) for path in sorted((ours_dir / f"{TOPIC}-0").glob("*.log")))
        dumped = run_tool("dump-log", "--deep-iteration", "--files", files)
        assert dumped.returncode == 0, dumped.stderr
        assert "isvalid: false" not in dumped.stdout
        assert dumped.stdout.count("baseOffset:") == len(ours)
        for suffix in ("index", "timeindex"):
            indexes = ",".join(str(path) for path in sorted((ours_dir / f"{TOPIC}-0").glob(f"*.{suffix}")))
            checked = run_tool("dump-log", "--index-sanity-check", "--files", indexes)
            assert checked.returncode == 0, checked.stderr
            assert "Mismatches" not in checked.stdout + run_tool("dump-log", "--files", indexes).stdout
    assert any(batch.attributes & 0x40 for batch in theirs)
    # Apache Kafka goes on with what we have cleaned.
    shutil.rmtree(kafka.data_dir / f"{TOPIC}-0")
    shutil.copytree(ours_dir / f"{TOPIC}-0", kafka.data_dir / f"{TOPIC}-0")
    start(kafka, cleaner=False)
    try:
        write(kafka.bootstrap_servers, wall_ms() - 600_000, 3)
    finally:
        kafka.stop()
    run_kafka_cleaner(kafka)
    assert read(kafka.data_dir)[0]
