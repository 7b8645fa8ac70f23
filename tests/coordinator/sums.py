"""A small coordinator for tests of the runtime: its shards add up numbers."""

from __future__ import annotations

from typing import Any

from barnabas.coordinator.coordinator_log import RecordSerde
from barnabas.coordinator.coordinator_runtime import CoordinatorRuntime
from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.coordinator.timer import CoordinatorTimer
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import OffsetCommitKey, OffsetCommitValue
from tests.coordinator.internal_topic import InternalTopic
from tests.coordinator.virtual_loop import VirtualLoop


def number(value: int) -> CoordinatorRecord:
    key = OffsetCommitKey(group="g", topic="t", partition=0)
    return CoordinatorRecord(1, key, OffsetCommitValue(offset=value, metadata="", commit_timestamp=0), 4)


class Sum:
    """Adds the offsets of the records that it replays."""

    def __init__(self, partition: int, timer: CoordinatorTimer) -> None:
        self.timer = timer
        self.total = 0
        self.replayed: list[tuple[int, int]] = []
        self.events: list[str] = []

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int) -> None:
        assert record.value is not None
        self.total += record.value.offset
        self.replayed.append((offset, producer_id))

    def replay_end_transaction_marker(self, producer_id: int, committed: bool) -> None:
        self.events.append(f"{'commit' if committed else 'abort'} {producer_id}")

    def on_loaded(self) -> None:
        self.events.append("loaded")

    def on_unloaded(self) -> None:
        self.events.append("unloaded")


class Hosted:
    def __init__(self, **settings: Any) -> None:
        self.loop = VirtualLoop()
        self.log = InternalTopic(self.loop)
        self.shards: list[Sum] = []
        self.runtime: CoordinatorRuntime[Sum] = CoordinatorRuntime(
            name="test",
            log=self.log,
            serde=RecordSerde("group"),
            new_shard=self._new_shard,
            loop=self.loop,
            now_ms=lambda: self.loop.now_ms,
            write_timeout_ms=5000,
            **settings,
        )

    def _new_shard(self, partition: int, timer: CoordinatorTimer) -> Sum:
        self.shards.append(Sum(partition, timer))
        return self.shards[-1]

    def elect(self, partition: int = 0, epoch: int = 0) -> None:
        self.runtime.on_elected(partition, epoch)
        self.loop.run_ready()

    def load_again(self, epoch: int = 1) -> None:
        """Lose the leadership, and win it again."""
        self.runtime.on_resigned(0)
        self.elect(epoch=epoch)

    def add(self, *values: int, **options: Any) -> Any:
        records = [number(value) for value in values]
        return self.runtime.schedule_write(0, lambda shard: CoordinatorResult(sum(values), records, **options))

    def total(self) -> Any:
        return self.runtime.schedule_read(0, lambda shard: shard.total)


def code(future: Any) -> ErrorCode:
    error = future.exception()
    assert isinstance(error, KafkaError)
    return error.code
