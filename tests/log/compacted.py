"""A compacted log with small segments, its cleaner, and what must be left of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.log.cleanable_log import CleanerConfig
from barnabas.log.cleaner import clean
from barnabas.log.cleaner_worker import CleanerWorker, InlineWorker, OnEvent
from barnabas.log.cleaning_task import CleaningFailed, CleaningTask
from barnabas.log.disk import Disk
from barnabas.log.log_cleaner import LogCleaner
from barnabas.log.log_config import LogConfig
from barnabas.log.log_flusher import RunBlocking, run_inline
from barnabas.log.partition_log import PartitionLog
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from barnabas.records.record import Record
from barnabas.simulation.disk import SimDisk
from tests.log.small_log import Clock
from tests.log.story import NOW_MS, read_all

KEY = ("orders", 0)
ROOT = "/data"
DIRECTORY = f"{ROOT}/orders-0"


class Compacted:
    """One log in a directory of its own with a cleaner beside it."""

    def __init__(
        self,
        disk: SimDisk | None = None,
        *,
        clock: Clock | None = None,
        worker: CleanerWorker | None = None,
        run_blocking: RunBlocking = run_inline,
        cleaner: CleanerConfig | None = None,
        clean: bool = False,
        **settings: object,
    ) -> None:
        self.disk = disk or SimDisk()
        self.clock = clock or Clock()
        config: dict[str, object] = {
            "cleanup_policy": frozenset({"compact"}),
            "segment_bytes": 250,
            "index_interval_bytes": 100,
            "min_cleanable_dirty_ratio": 0.0,
            "delete_retention_ms": 1000,
            **settings,
        }
        self.logs: dict[tuple[str, int], PartitionLog] = {}
        self.cleaned: list[tuple[str, int]] = []
        self.cleaner = LogCleaner(
            self.disk,
            ROOT,
            self.logs,
            now_ms=self.clock,
            make_worker=lambda: worker or InlineWorker(self.disk),
            config=cleaner or CleanerConfig(dedupe_buffer_bytes=24_000, backoff_ms=0),
            on_cleaned=self.cleaned.append,
        )
        self.cleaner.load()
        self.log = PartitionLog(
            self.disk,
            DIRECTORY,
            LogConfig(**config),  # type: ignore[arg-type]
            now_ms=self.clock,
            run_blocking=run_blocking,
            clean=clean,
            cleaned_to=self.cleaner.cleaned_to(KEY),
        )
        self.log.on_truncate = lambda offset: self.cleaner.truncated(KEY, offset)
        self.logs[KEY] = self.log
        self.committed()

    def committed(self) -> None:
        self.log.high_watermark = self.log.log_end_offset

    def put(
        self,
        *records: tuple[str, str | None],
        compression: Compression = Compression.NONE,
        producer_id: int = -1,
        sequence: int = 0,
        epoch: int = 0,
        transactional: bool = False,
        timestamp: int | None = None,
    ) -> None:
        """Appends a batch of keys and values; None is a tombstone."""
        batch = build_batch(
            [
                (
                    (self.clock() if timestamp is None else timestamp) + i,
                    key.encode(),
                    None if value is None else value.encode(),
                    [("h", key.encode())],
                )
                for i, (key, value) in enumerate(records)
            ],
            compression=compression,
            producer_id=producer_id,
            producer_epoch=epoch if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
            transactional=transactional,
        )
        self.log.append_as_leader(batch, 0)
        self.committed()

    def clean(self) -> None:
        """Rolls the active segment, so that everything may be cleaned, and cleans."""
        self.log.roll()
        self.cleaner.poll()

    def reopened(self, *, clean: bool = False) -> Compacted:
        """The same directory after its owner is gone, cleanly or not."""
        settings = {name: getattr(self.log.config, name) for name in ("cleanup_policy", "segment_bytes")}
        self.cleaner.close()
        self.log.close(clean=clean)
        return Compacted(self.disk, clock=self.clock, clean=clean, **settings)

    def records(self) -> list[Record]:
        return read_all(self.log)

    def pairs(self) -> list[tuple[int, str, str | None]]:
        return pairs(self.records())


def pairs(records: Iterable[Record]) -> list[tuple[int, str, str | None]]:
    """Offset, key and value of data records."""
    return [
        (r.offset, r.key.decode(), None if r.value is None else r.value.decode())
        for r in records
        if r.key is not None and not r.key.startswith(b"\0")
    ]


def latest_of_each_key(records: list[tuple[int, str, str | None]]) -> list[tuple[int, str, str | None]]:
    last = {key: offset for offset, key, _ in records}
    return [record for record in records if last[record[1]] == record[0]]


class SteppingWorker:
    """Cleans an event at a time, when the test says so."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._events: Iterator[object] | None = None
        self._on_event: OnEvent | None = None
        self.deaths = 0
        self.was_cancelled = False

    def start(self, task: CleaningTask, on_event: OnEvent) -> None:
        self._events = clean(task, self._disk)
        self._on_event = on_event

    def step(self) -> None:
        assert self._events is not None
        assert self._on_event is not None
        self._on_event(next(self._events))  # type: ignore[arg-type]

    def cancel(self) -> None:
        self.was_cancelled = True

    def end_cancelled(self) -> None:
        assert self._on_event is not None
        self._on_event(CleaningFailed("it was cancelled", is_corrupt=False))

    def rest(self) -> None:
        pass


__all__ = ["DIRECTORY", "KEY", "NOW_MS", "ROOT", "Compacted", "SteppingWorker", "latest_of_each_key", "pairs"]


def fill(compacted: Compacted, batches: int = 24) -> None:
    for i in range(batches):
        compacted.put((f"k{i % 3}", f"{i:03d}"), (f"only-{i}", "x"))


def stepping(**settings: object) -> tuple[Compacted, SteppingWorker]:
    disk = SimDisk()
    worker = SteppingWorker(disk)
    compacted = Compacted(disk, worker=worker, **settings)  # type: ignore[arg-type]
    fill(compacted)
    return compacted, worker
