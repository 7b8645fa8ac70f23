"""A broker whose logs are synced in another thread, for a topic with `barnabas.flush.before.ack`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from barnabas.log.log_config import LogConfig
from barnabas.log.partition_log import PartitionLog
from barnabas.replication.partition import Partition
from tests.replication.following import Node

SYNCED = LogConfig(barnabas_flush_before_ack=True)


class Thread:
    """Another thread: `next` does one piece of work and reports its end."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Callable[[], None], Callable[[BaseException | None], None]]] = deque()

    def run(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        self.waiting.append((work, done))

    def next(self, error: BaseException | None = None) -> None:
        work, done = self.waiting.popleft()
        if error is None:
            work()
        done(error)


class SyncedNode(Node):
    """A broker whose syncs run in another thread."""

    def __init__(self, node_id: int = 1, partitions: int = 1, config: LogConfig = SYNCED) -> None:
        self.thread = Thread()
        self.config = config
        super().__init__(node_id, partitions, lambda: self.config)
        self.moved = 0

    def open_log(self, partition: Partition) -> PartitionLog:
        name = f"/{self.topic.name}-{partition.index}"
        run = self.thread.run
        return PartitionLog(self.disk, name, self.topic.config, now_ms=lambda: self.now_ms, run_blocking=run)

    def high_watermark_moved(self, partition: Partition) -> None:
        self.moved += 1
        super().high_watermark_moved(partition)

    def reconfigure(self, config: LogConfig) -> None:
        self.config = config
        self.topic.config_changed()
        self.replica().config_changed()
