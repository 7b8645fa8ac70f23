"""Golden scripts of a share group (see `tests.golden`): one partition's leader over a real log, its state with a real share coordinator.

    > fetch a                                      `a` is a member
    a: fetch 0-4 x1                                the offsets that it has acquired, and how often they have been delivered
    > ack a 0-1 accept
    state update leader=0 start=0 complete=2 [0-1 ACKNOWLEDGED x1]     a record of `__share_group_state`, as it is written
    a: ack NONE                                    the answer
      q start=2 [2-4 ACQUIRED x1 by a]             the partition's window, if it has changed

`leader` is the leader epoch, `complete` counts the finished records at or above the start offset (KIP-1226).

Commands: see the methods `do_...`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from barnabas.coordinator.result import CoordinatorRecord, CoordinatorResult
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import ShareSnapshotValue
from barnabas.share.acknowledgement import Acknowledgement
from barnabas.share.fetch import ShareFetchParams
from barnabas.share.in_flight import RecordState
from barnabas.share.sessions import ShareSessionCache, TopicPartitionId
from barnabas.share.settings import ShareSettings
from barnabas.share.share_partition import SharePartition
from barnabas.simulation.disk import SimDisk
from barnabas.steps import start
from tests.golden import Script, milliseconds, options
from tests.replication.hosting import Hosting
from tests.share.state_store import Persister, Settings, Store, WatchedManager

T = TypeVar("T")

TYPES = {"gap": 0, "accept": 1, "release": 2, "reject": 3, "renew": 4}
LOCK_MS = 30_000


class WrittenDown(Store):
    """A state whose records are listed."""

    def __init__(self, topic_id: bytes, trace: Callable[[str], None], snapshots: int) -> None:
        self.trace = trace
        super().__init__(topic_id, random.Random(1), snapshots)
        self.trouble = False

    def written(self, record: CoordinatorRecord) -> None:
        value: Any = record.value
        kind = "snapshot" if isinstance(value, ShareSnapshotValue) else "update"
        batches = [
            f"{batch.first_offset}-{batch.last_offset} {RecordState(batch.delivery_state).name} x{batch.delivery_count}"
            for batch in value.state_batches
        ]
        where = f"leader={value.leader_epoch} start={value.start_offset} complete={value.delivery_complete_count}"
        self.trace(f"state {kind} {where} [{', '.join(batches)}]")


class Rejecting(Persister):
    """A leader's way to the state, on which the share coordinator may reject.

    Attributes:
        error: what every call gets; None if the coordinator answers.
    """

    error: ErrorCode | None = None

    async def _call(self, operation: Callable[[], CoordinatorResult[T]]) -> T:
        if self.error is not None:
            raise KafkaError(self.error)
        return await super()._call(operation)


class ShareScript(Script):
    def __init__(self) -> None:
        super().__init__()
        self.hosting = Hosting(Path("/data"), SimDisk())
        self.topic_id = self.hosting.create_topic("q")
        self.id = TopicPartitionId(bytes(self.topic_id), 0)
        self.settings = Settings(deliveries=5, locks=2000, lock_ms=LOCK_MS)
        self.store = WrittenDown(bytes(self.topic_id), self._write_down, snapshots=500)
        self.manager: WatchedManager
        self._begin()

    def close(self) -> None:
        self.manager.close()
        self.hosting.close()

    # -- commands ----------------------------------------------------------------------------------------------------

    def do_set(self, *words: str) -> None:
        """set NAME=VALUE ...: settings of the group"""
        self.settings.values |= {name: int(value) for name, value in options(words).items()}

    def do_produce(self, *values: str) -> None:
        """produce VALUE ...: one record batch"""
        self.hosting.append("q", *(value.encode() for value in values))

    def do_fetch(self, member: str, *words: str) -> None:
        """fetch MEMBER [records=N] [strict]: ShareFetch, without a wait; N is a bound for whole batches unless it is strict"""
        most = int(options(words).get("records", 500))
        params = ShareFetchParams("g", member, 0, 1, 1 << 20, most, 500, "strict" in words, 0)

        def acquired(answer: Any) -> str:
            data = answer.get(self.id)
            if data is None:
                return "nothing"
            if data.error_code:
                return ErrorCode(data.error_code).name
            found = [f"{p.first_offset}-{p.last_offset} x{p.delivery_count}" for p in data.acquired_records]
            return ", ".join(found) or "nothing"

        self._expect(f"{member}: fetch", self.manager.fetch(params, [self.id], 1), acquired)

    def do_ack(self, member: str, offsets: str, *types: str) -> None:
        """ack MEMBER FIRST-LAST TYPE ...: ShareAcknowledge, with one type for all offsets or one for each"""
        first, last = offsets.split("-")
        asked = Acknowledgement(int(first), int(last), tuple(TYPES[each] for each in types))

        def outcome(answer: Any) -> str:
            error = answer[self.id]
            return "NONE" if error is None else str(error.code.name)

        self._expect(f"{member}: ack", self.manager.acknowledge("g", member, {self.id: [asked]}), outcome)

    def do_advance(self, time: str) -> None:
        """advance TIME: let time pass"""
        self.hosting.advance(milliseconds(time))

    def do_coordinator(self, error: str = "") -> None:
        """coordinator [ERROR]: the share coordinator rejects each request (without an error: it answers again)"""
        self.persister.error = ErrorCode[error] if error else None

    def do_elect(self) -> None:
        """elect: the partition has another leader epoch; the next fetch reads the state"""
        self.hosting.change(self.topic_id, leader=1)

    def do_restart(self) -> None:
        """restart: the leader ends without a word, and begins again with another leader epoch"""
        self.persister.dead = True
        self.manager.close()
        self.do_elect()
        self._begin()

    # -- the trace ---------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        self.hosting.spin()

    def states(self) -> dict[str, str]:
        return {"the share partition": _window(self.manager.shared)} if self.manager.known else {}

    def _begin(self) -> None:
        self.persister = Rejecting(self.store, self.hosting.loop)
        self.manager = WatchedManager(
            self.hosting.replicas,
            persister=self.persister,
            settings=ShareSettings(self.settings),
            sessions=ShareSessionCache(10),
            loop=self.hosting.loop,
            now_ms=self.hosting.now_ms,
        )

    def _write_down(self, line: str) -> None:
        self.trace.append(line)

    def _expect(self, what: str, asked: Any, show: Callable[[Any], str]) -> None:
        def done(future: asyncio.Future[Any]) -> None:
            self.trace.append(f"{what} {show(future.result())}")

        future = start(asked, self.hosting.loop)
        if future.done():
            done(future)
        else:
            future.add_done_callback(done)


def _window(shared: SharePartition) -> str:
    """The records from the start offset on; neighbours of one state are one range, whatever the window makes of them."""
    window = shared.window
    if window is None:
        return f"q {shared.state.value}"
    ranges: list[tuple[int, int, str]] = []
    for run in (run for batch in window.batches for run in batch.runs if run.last >= window.start_offset):
        first = max(run.first, window.start_offset)
        words = f"{run.state.name} x{run.delivery_count}{f' by {run.member_id}' if run.member_id else ''}"
        if ranges and ranges[-1][1:] == (first - 1, words):
            first = ranges.pop()[0]
        ranges.append((first, run.last, words))
    state = "" if shared.is_active else f"{shared.state.value} "
    return f"q {state}start={window.start_offset} [{', '.join(f'{first}-{last} {words}' for first, last, words in ranges)}]"
