"""A topic whose records are deleted when they are old, or when there are too many, while leaders move and die.

- Each look at the nodes finds the log starts that have moved. A record that is gone was older than retention.ms. Its age counts from the
  moment when its producer made it, which is before its timestamp, and the clocks of brokers may be ahead. Size is judged on a node that
  has led since the last look: another one may have lost a tail since, which was never committed.
- A log start that is a leader's does not go back in its epoch. The next leader may begin before it: it has not deleted as much yet.
- The reader is now and then too slow, or begins at offset 0. It is refused with OFFSET_OUT_OF_RANGE, asks for the log start, and goes on
  there. It sees no gap, and nothing below a log start that the same leader has named before.
- In the end no replica keeps what its leader has deleted.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, NamedTuple

from barnabas.protocol.errors import ErrorCode
from tests.simulation.client import Asks, Connect
from tests.simulation.cluster_client import Address, ClusterClient
from tests.simulation.history import Batch, History, Partition
from tests.simulation.judged_node import JudgedNode
from tests.simulation.retention_history import Deletion
from tests.simulation.side_topic import View
from tests.simulation.transactions import Refused, end_offset, start_offset
from tests.simulation.workload import LOST, NOT_YET, Producer, fetch

BY_TIME, BY_SIZE = "retention.ms", "retention.bytes"
LIMITS = {BY_TIME: 1500, BY_SIZE: 1500}
ROLL_MS = 600
LONGEST_PAUSE_SECONDS = 0.3
RETURN_RATE, SLEEP_RATE = 0.1, 0.1
SLEEP_SECONDS = 4.0
"""Longer than records live, mostly."""
SLOW_CHECK_MS = "8000"
"""How often every second node looks for what is old: otherwise a follower would not need its leader's log start."""
FARTHEST_BEHIND_MS = 30_000
"""A broker whose clock is set back farther finds nothing old for longer than the simulation waits for progress."""
CONVERGE_SECONDS = 4.0
"""Within which followers hear of their leader's log start: some fetches of theirs, but less than `SLOW_CHECK_MS`."""


class AgingProducer(Producer):
    """A producer that notes when it made its values."""

    def __init__(
        self, name: str, partition: Partition, history: History, rng: random.Random, pause_seconds: float, view: View
    ) -> None:
        super().__init__(name, partition, history, rng, pause_seconds)
        self._view = view
        self.made: list[tuple[Batch, int]] = []

    def next_batch(self) -> Batch:
        batch = super().next_batch()
        self.made.append((batch, self._view.now_ms()))
        return batch


class _Look(NamedTuple):
    """What a node's replica was at the last look."""

    process: Any
    start: int
    led_epoch: int | None


class AgingTopic:
    """The topic, its producer and its reader.

    Args:
        limit: `BY_TIME` or `BY_SIZE`.
    """

    name = "aging"

    def __init__(self, limit: str, history: History, view: View, rng: Any, pause_seconds: float) -> None:
        self.partitions = self.watched = [Partition(self.name, 0)]
        self._limit, other = limit, BY_SIZE if limit == BY_TIME else BY_TIME
        self.settings = {limit: str(LIMITS[limit]), other: "-1", "segment.ms": str(ROLL_MS)}
        self._history, self._view, self._found = history, view, history.retention
        self._found.partitions = self.partitions
        self._found.retention_ms, self._found.retention_bytes = (int(self.settings[each]) for each in LIMITS)
        (partition,) = self.partitions
        self.producer = AgingProducer("a0", partition, history, rng("a0"), pause_seconds, view)
        self.reader = AgingReader(partition, history, view, rng("aging reader"))
        self._looks: dict[JudgedNode, _Look] = {}
        self._ahead_ms = 0

    def workers(self) -> list[Any]:
        return [self.reader]

    def counts(self) -> dict[str, int]:
        found = {"the reader of what is left": self._found.reads}
        if not self._is_late():
            found |= {
                f"the deletions of {self.name}": len(self._found.deletions),
                "the reader that is out of range": self._found.out_of_range,
            }
        return found

    def _is_late(self) -> bool:
        """Return whether a broker, which may lead, keeps records for longer because its clock was set back."""
        return self._limit == BY_TIME and any(node.clock_jumped_ms < -FARTHEST_BEHIND_MS for node in self._view.brokers)

    # On the nodes

    def observe(self) -> None:
        (partition,) = self.partitions
        leader = self._view.leader_of(partition)
        for node in self._view.brokers:
            self._ahead_ms = max(self._ahead_ms, node.clock_jumped_ms)
            log = node.log(partition)
            before = self._looks.pop(node, None)
            if log is None:
                continue
            led_epoch = leader[1] if leader is not None and leader[0] == node.address else None
            self._looks[node] = _Look(node.loop, log.log_start_offset, led_epoch)
            if before is None or before.process is not node.loop:
                continue
            leads_still = led_epoch is not None and led_epoch == before.led_epoch
            start = log.log_start_offset
            if start > before.start:
                size = log.size_in_bytes if leads_still else None
                youngest_ms = self._youngest_ms(before.start, start)
                deletion = Deletion(partition, node.name, before.start, start, youngest_ms, size)
                self._found.deletions.append(deletion)
            elif start < before.start and leads_still:
                self._found.started_back.append(
                    f"the log of {partition} on {node.name} began at {before.start}, then at {start}"
                )

    def _youngest_ms(self, start: int, end: int) -> int | None:
        """Return at least how old the youngest of the acknowledged records is that have these offsets."""
        made = [
            made_ms
            for batch, made_ms in self.producer.made
            if batch.survives and batch.base_offset < end and batch.base_offset + len(batch.values) > start
        ]
        return self._view.now_ms() + self._ahead_ms - max(made) if made else None

    # At the end

    async def read_at_the_end(self, client: ClusterClient) -> None:
        (partition,) = self.partitions
        while True:
            start, end = await start_offset(client, *partition), await end_offset(client, *partition)
            records = await _read(client, partition, start, end)
            if records is not None:
                break
        self._history.final_bounds[partition], self._history.final_logs[partition] = (start, end), records
        ends_at = asyncio.get_running_loop().time() + CONVERGE_SECONDS
        while left_behind := self._left_behind(partition):
            if asyncio.get_running_loop().time() > ends_at:
                self._found.left_behind += left_behind
                return
            await asyncio.sleep(0.1)

    def _left_behind(self, partition: Partition) -> list[str]:
        starts = {node: log.log_start_offset for node in self._view.brokers if (log := node.log(partition)) is not None}
        leader = self._view.leader_of(partition)
        at = next((start for node, start in starts.items() if leader is not None and node.address == leader[0]), 0)
        return [
            f"the log of {partition} begins at {start} on {node.name}, and at {at} on its leader"
            for node, start in starts.items()
            if start < at
        ]


async def _read(client: Asks, partition: Partition, start: int, end: int) -> list[tuple[int, bytes]] | None:
    """Return the records between two offsets; None if some of them have been deleted meanwhile."""
    records: list[tuple[int, bytes]] = []
    offset = start
    while offset < end:
        error, found = await fetch(client, partition, offset)
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            return None
        if error and error not in NOT_YET:
            raise AssertionError(f"the last reader of {partition} was answered {ErrorCode(error).name}")
        if error or not found:
            await asyncio.sleep(0.1)
            continue
        records += [each for each in found if each[0] < end]
        offset = found[-1][0] + 1
    return records


class AgingReader:
    """Reads what is left until stopped."""

    def __init__(self, partition: Partition, history: History, view: View, rng: random.Random) -> None:
        self._partition, self._found, self._view, self._rng = partition, history.retention, view, rng
        self._offset = 0
        # The highest log start that a leader has named, with the leader.
        self._named: tuple[tuple[Address, int], int] | None = None

    async def run(self, connect: Connect, loop: Any) -> None:
        client: Any = connect("aging reader")
        while True:
            try:
                await self._step(client)
            except (*LOST, Refused):
                await asyncio.sleep(0.1)
            if self._rng.random() < RETURN_RATE:
                self._offset = 0
            elif self._rng.random() < SLEEP_RATE:
                await asyncio.sleep(self._rng.random() * SLEEP_SECONDS)
            await asyncio.sleep(self._rng.random() * LONGEST_PAUSE_SECONDS)

    async def _step(self, client: ClusterClient) -> None:
        offset, before = self._offset, self._view.leader_of(self._partition)
        error, records = await fetch(client, self._partition, offset, wait_ms=200)
        is_led = self._is_led(client, before)
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            start = await start_offset(client, *self._partition)
            if is_led and self._is_led(client, before) and before is not None:
                # Below the log start: this reader has no offset above the end.
                if start <= offset:
                    self._found.refused.append(
                        f"offset {offset} of {self._partition} was refused, the log begins at {start}"
                    )
                self._named = before, start
                self._found.out_of_range += 1
            self._offset = start
        elif error in NOT_YET:
            await asyncio.sleep(0.1)
        elif error:
            raise AssertionError(f"a reader of {self._partition} was answered {ErrorCode(error).name}")
        elif records:
            self._note(records, before if is_led else None)

    def _note(self, records: list[tuple[int, bytes]], leader: tuple[Address, int] | None) -> None:
        self._found.reads += 1
        first = records[0][0]
        if first != self._offset:
            self._found.shown.append(f"a reader of {self._partition} asked for {self._offset} and was shown {first}")
        if self._named is not None and leader == self._named[0] and first < self._named[1]:
            self._found.shown.append(
                f"a reader of {self._partition} was shown {first}; the log begins at {self._named[1]}"
            )
        seen = self._found.seen.setdefault(self._partition, {})
        for at, value in records:
            if seen.setdefault(at, value) != value:
                self._found.shown.append(f"a reader of {self._partition} saw {seen[at]!r} at {at}, and then {value!r}")
        self._offset = records[-1][0] + 1

    def _is_led(self, client: ClusterClient, before: tuple[Address, int] | None) -> bool:
        """Return whether the leader of a moment before was asked, and still leads."""
        return before is not None and before == self._view.leader_of(self._partition) and client.last_asked == before[0]
