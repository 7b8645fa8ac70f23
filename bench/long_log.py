"""A log of many gigabytes in one partition: start after a kill, reads from its middle, retention of its half.

`fill` leaves the node's folder; `rest` and `measure` start from that folder, so that the three may be run apart. Before each start
and each read the pages of the log's files leave the machine's memory (posix_fadvise), so that bytes read are read from the disk.
"""

from __future__ import annotations

import json
import os
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from tests.cluster import views
from tests.cluster.node_process import NodeProcess
from tests.cluster.waiting import NeverCame, wait_for

from bench.choice_rows import load
from bench.clusters import BenchCluster, ClusterCost
from bench.scenarios import Figures

TOPIC = "long"
SETTINGS = {"log.retention.check.interval.ms": "1000", "log.initial.task.delay.ms": "1000"}
REST_SECONDS = 65
"""The recovery point is written each minute (log.flush.offset.checkpoint.interval.ms)."""
SEGMENT_BYTES = 1 << 30
"""The default of both brokers."""

PLACES = (0.3, 0.4, 0.5, 0.6, 0.7)
DELETE_DELAY_MS = "3000"
WHERE = TopicPartition(TOPIC, 0)


def fill(kind: str, folder: Path, gigabytes: float, segment_bytes: int = SEGMENT_BYTES) -> Figures:
    """Write the log through the broker, and kill it."""
    with BenchCluster(kind, folder, 1, SETTINGS) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        topic = NewTopic(TOPIC, 1, 1, config={"segment.bytes": str(segment_bytes)})
        admin.create_topics([topic])[TOPIC].result(60)
        cluster.await_in_sync([TOPIC])
        found = load("fill", cluster.bootstrap_servers, TOPIC, gigabytes)
    return {"written MB/s": gigabytes * 1000 / found["seconds"]}


def rest(kind: str, folder: Path, seconds: float = REST_SECONDS) -> None:
    """Start the node, wait until it has written its recovery point, and kill it."""
    with BenchCluster(kind, folder, 1, SETTINGS):
        time.sleep(seconds)


def measure(kind: str, folder: Path, more_gigabytes: float) -> Figures:
    """Start twice after a kill, read from the middle by offset and by time, and let retention delete half of the log."""
    cluster = BenchCluster(kind, folder, 1, SETTINGS)
    node = cluster[1]
    try:
        figures = {f"killed at rest: {name}": value for name, value in _start(node).items()}
        servers = cluster.bootstrap_servers
        figures |= _reads(node, servers)
        load("fill", servers, TOPIC, more_gigabytes)
        node.kill()
        figures |= {f"killed in a write: {name}": value for name, value in _start(node).items()}
        return figures | _retention(cluster, node)
    finally:
        cluster.close()


def bytes_read(pid: int) -> int:
    """Return what a process has read from the disk so far."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))


def drop_pages(folder: Path) -> None:
    """Write the files of a folder to the disk, and take them out of the page cache."""
    for path in folder.rglob("*"):
        if path.is_file():
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(handle)


def _start(node: NodeProcess) -> Figures:
    """Start the node: seconds until it answers, and until it tells where the partition ends."""
    drop_pages(node.data_dir)
    began = time.perf_counter()
    node.launch()
    _poll(lambda: bool(views.metadata(node.address).brokers))
    answered = time.perf_counter() - began
    consumer = _consumer(node.bootstrap_servers)
    _poll(lambda: consumer.get_watermark_offsets(WHERE, 1)[1] > 0)
    readable = time.perf_counter() - began
    assert node.process is not None
    read = bytes_read(node.process.pid)
    consumer.close()
    return {"answers s": answered, "log is there s": readable, "read MB": read / 1e6}


def _poll(is_so: object, seconds: float = 240) -> None:
    """Ask again and again, a hundred times a second."""
    deadline = time.monotonic() + seconds
    assert callable(is_so)
    while time.monotonic() < deadline:
        try:
            if is_so():
                return
        except Exception:  # the node does not listen yet, or the client says so in its own way
            pass
        time.sleep(0.01)
    raise NeverCame("the node does not answer")


def _consumer(servers: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "long",
            "enable.auto.commit": False,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 50,
            "log_level": 0,
        }
    )


def _reads(node: NodeProcess, servers: str) -> Figures:
    """The first record at places in the middle, by a reader that is connected: medians."""
    assert node.process is not None
    pid = node.process.pid
    consumer = _consumer(servers)
    try:
        first, end = consumer.get_watermark_offsets(WHERE, 30)
        times = [_record_at(consumer, offset)[1] for offset in (first, end - 1)]
        found: dict[str, list[float]] = {"offset ms": [], "offset MB": [], "time ms": [], "time MB": []}
        for by in ("offset", "time"):
            for place in PLACES:
                drop_pages(node.data_dir)
                before, began = bytes_read(pid), time.perf_counter()
                if by == "offset":
                    offset = int(first + (end - first) * place)
                else:
                    stamp = int(times[0] + (times[1] - times[0]) * place)
                    offset = consumer.offsets_for_times([TopicPartition(TOPIC, 0, stamp)], 30)[0].offset
                got = _record_at(consumer, offset)[0]
                assert got == offset, (by, place, got, offset)
                found[f"{by} ms"].append((time.perf_counter() - began) * 1000)
                found[f"{by} MB"].append((bytes_read(pid) - before) / 1e6)
        return {f"middle by {name}": statistics.median(values) for name, values in found.items()}
    finally:
        consumer.close()


def _record_at(consumer: Consumer, offset: int) -> tuple[int, int]:
    """Return offset and timestamp of the first record from an offset on."""
    consumer.assign([TopicPartition(TOPIC, 0, offset)])
    while True:
        message = consumer.poll(30)
        assert message is not None, f"no record at {offset}"
        if message.error() is None:
            found = message.offset(), message.timestamp()[1]
            consumer.unassign()
            assert found[0] is not None
            return found  # type: ignore[return-value]


def _retention(cluster: BenchCluster, node: NodeProcess) -> Figures:
    """Set retention.bytes to half of the log; how long until it begins later, and until the files are gone."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    consumer = _consumer(cluster.bootstrap_servers)
    log = node.data_dir / f"{TOPIC}-0"
    size = _size(log)
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in (("file.delete.delay.ms", DELETE_DELAY_MS), ("retention.bytes", str(size // 2)))
    ]
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=entries)
    try:
        with ClusterCost(cluster) as cost, _pinged(node) as answers:
            began = time.perf_counter()
            for done in admin.incremental_alter_configs([resource]).values():
                done.result(30)
            wait_for("the log begins later", lambda: consumer.get_watermark_offsets(WHERE, 30)[0] > 0)
            moved = time.perf_counter() - began
            first = consumer.get_watermark_offsets(WHERE, 30)[0]
            wait_for("the files are gone", lambda: _first_offset(log) >= first)
            gone = time.perf_counter() - began
        return {
            "retention: begins later s": moved,
            "retention: files gone s": gone,
            "retention: deleted GB": (size - _size(log)) / 1e9,
            "retention: CPU s": cost.cpu,
            "retention: longest answer ms": max(answers) * 1000,
        }
    finally:
        consumer.close()


def _first_offset(log: Path) -> int:
    """Return where the first segment begins whose file is still there; a name begins with the segment's first offset."""
    return min(int(path.name.partition(".")[0]) for path in log.glob("*.log*"))


def _size(log: Path) -> int:
    """Return the bytes of the log's files, those that wait for their deletion included."""
    total = 0
    for path in log.iterdir():
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue
    return total


@contextmanager
def _pinged(node: NodeProcess) -> Iterator[list[float]]:
    """Ask the node for its metadata all the time; yields the seconds of each answer."""
    ended, taken = threading.Event(), [0.0]

    def ask() -> None:
        while not ended.wait(0.005):
            began = time.perf_counter()
            views.metadata(node.address)
            taken.append(time.perf_counter() - began)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield taken
    finally:
        ended.set()
        thread.join()


def remember(folder: Path, figures: Figures) -> None:
    """Keep what `fill` measured beside the log."""
    (folder / "figures.json").write_text(json.dumps(figures))


def remembered(folder: Path) -> Figures:
    """Return what `fill` measured."""
    found: Figures = json.loads((folder / "figures.json").read_text())
    return found
