"""A log on a simulated disk with a clock that the test turns."""

from __future__ import annotations

from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import PartitionLog
from barnabas.records.builder import build_batch
from barnabas.simulation.disk import SimDisk
from tests.log.story import NOW_MS


class Clock:
    def __init__(self) -> None:
        self.ms = NOW_MS

    def __call__(self) -> int:
        return self.ms


def open_log(disk: SimDisk | None = None, *, clock: Clock | None = None, **settings: object) -> PartitionLog:
    return PartitionLog(
        disk or SimDisk(),
        "/data/orders-0",
        LogConfig(**settings),  # type: ignore[arg-type]
        now_ms=clock or Clock(),
    )


def reopen(log: PartitionLog, disk: SimDisk, *, clean: bool = True) -> PartitionLog:
    log.close(clean=clean)
    return PartitionLog(disk, log.directory, log.config, now_ms=Clock(), clean=clean)


def plain(count: int = 1, *, size: int = 10, timestamp: int = NOW_MS, key: bytes | None = b"k") -> bytearray:
    return build_batch([(timestamp, key, b"v" * size, ()) for _ in range(count)])
