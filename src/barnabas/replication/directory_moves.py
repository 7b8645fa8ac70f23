"""Replicas that move to another directory of this broker: the copying of their logs, and the exchange at the end.

    begin ──► COPYING ──► caught up, synced ──► ASSIGNING ──► the metadata names the directory ──► LAST ──► exchange
                │                                  │                                                 │
                └───────────────── give up, failed directory, deleted replica ◄──────────────────────┘

- The copy follows the log as a follower follows its leader: it appends whole batches, and with them come indexes, epochs, producers and
  transactions; a truncation of the log cuts the copy first (`PartitionLog.future`). Leaders and followers move in the same way.
- One coroutine copies, a chunk of one log in each turn of the loop. A chunk has so few batches that a turn stays short.
- Before the exchange the controller learns of the new directory (AssignReplicasToDirs), so that it judges a failure of either directory
  rightly, and so that a start that finds one of them missing makes no empty log (KIP-858).
- The exchange happens in one turn: the last records are copied, and the copy has synced at least what the log has.
- `replica.alter.log.dirs.io.max.bytes.per.second` limits the copying, but not the last records.
- After a restart the moves whose copies are there go on.
- A copy whose directory fails, or that takes no records, ends the move. The replica stays where it is. If the controller may know the
  new directory by then, it learns of the old one again before it learns of the failure (`leave`). Otherwise it would take the replica
  for lost, and a partition without another replica would wait for an operator (`cluster accept-loss`).

Difference from Kafka: its threads (num.replica.alter.log.dirs.threads) copy several logs at a time; here one coroutine takes turns.

Source: KIP-113, KIP-858; Kafka's `ReplicaAlterLogDirsThread`, `ReplicaManager.alterReplicaLogDirs`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING

from barnabas.log.errors import KafkaStorageError, in_words
from barnabas.pause import Pause
from barnabas.protocol.errors import KafkaError
from barnabas.protocol.messages import FetchResponse
from barnabas.replication.follower_log import append_fetched, truncate_to_start
from barnabas.steps import in_background
from barnabas.turns import next_turn

if TYPE_CHECKING:
    from barnabas.log.log_directories import LogDirectories
    from barnabas.log.log_manager import LogManager
    from barnabas.log.offset_checkpoints import Key
    from barnabas.log.partition_log import PartitionLog
    from barnabas.metadata.partition_registration import PartitionRegistration
    from barnabas.replication.partition import Partition
    from barnabas.replication.replica_quota import ReplicaQuota

__all__ = ["DirectoryMoves", "MoveStage"]

logger = logging.getLogger(__name__)

CHUNK_MIN, CHUNK_MAX = 1 << 16, 1 << 20
"""Bytes of one turn; a single larger batch is copied too."""
RECORDS_PER_CHUNK = 1_000
"""A chunk with more records, which may be as many batches, is followed by a smaller one."""
IDLE_S = 0.1
"""How long the copying rests when it has nothing to do, or must not go on."""
LAST_CHUNKS = 4
"""How many chunks the turn of the exchange copies at most."""
SYNCS = 3
"""How often the copy is synced elsewhere before the turn of the exchange syncs it: only logs that sync each append need that."""


class MoveStage(Enum):
    COPYING = auto()
    ASSIGNING = auto()
    LAST = auto()


class _Move:
    """One move."""

    __slots__ = ("chunk", "future", "key", "partition", "stage", "syncs", "target")

    def __init__(self, partition: Partition, target: LogManager, future: PartitionLog) -> None:
        self.key: Key = (partition.topic.name, partition.index)
        self.partition = partition
        self.target = target
        self.future = future
        self.stage = MoveStage.COPYING
        self.chunk = CHUNK_MIN
        self.syncs = 0


class DirectoryMoves:
    """The moves between the directories of one broker.

    Args:
        partition_of, registration_of: return a replica of this broker, and what the metadata has for it; None for one that is not here.
        changed: wakes the requests that wait for a partition.

    Attributes:
        quota: limits the bytes; every partition counts against it.
        tell: makes the controller learn where a replica is, or will be; None if it need not. Takes the topic, its id with the index,
            and the registration; returns a future for the controller's answer.
    """

    def __init__(
        self,
        node_id: int,
        logs: LogDirectories,
        quota: ReplicaQuota,
        loop: asyncio.AbstractEventLoop,
        partition_of: Callable[[Key], Partition | None],
        registration_of: Callable[[Key], PartitionRegistration | None],
        changed: Callable[[Partition], None],
    ) -> None:
        self.tell: Callable[[str, tuple[bytes, int], PartitionRegistration], asyncio.Future[None] | None] | None = None
        self.quota = quota
        self._node_id = node_id
        self._logs = logs
        self._partition_of = partition_of
        self._registration_of = registration_of
        self._changed = changed
        self._loop = loop
        self._moves: dict[Key, _Move] = {}
        # Assignments that the controller has not answered yet, with the targets of their moves.
        self._answers: dict[Key, tuple[LogManager, asyncio.Future[None]]] = {}
        self._pause = Pause(loop)
        self._running: asyncio.Future[None] | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        moves = " ".join(f"{each.future.name}:{each.stage.name}" for each in self._moves.values())
        return f"<DirectoryMoves {moves or 'none'}>"

    # Requests and restarts

    def begin(self, partition: Partition, target: LogManager) -> None:
        """Move a replica to a directory; the directory where it is ends a move that is under way.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR if the replica is lost, or a disk failed.
        """
        if partition.lost is not None:
            raise partition.lost
        log = partition.log
        key = (partition.topic.name, partition.index)
        known = self._moves.get(key)
        if known is not None and known.partition is not partition:
            self._forget(known)  # Of a deleted topic of the same name.
            known = None
        if known is not None and known.target is not target:
            self._give_up(known)
            logger.info("%s: its move to %s is given up", log.name, known.target.root_dir)
        elif known is not None:
            return
        if self._logs.directory_of(*key) is not target:
            future = self._logs.moving.begin(key, target, partition.topic.topic_id)
            logger.info("%s moves from %s to %s", log.name, log.directory.rpartition("/")[0], target.root_dir)
            self._add(partition, target, future)

    def future_of(self, partition: Partition) -> tuple[LogManager, PartitionLog] | None:
        """Return the directory and the copy of a replica that moves; None for any other."""
        move = self._moves.get((partition.topic.name, partition.index))
        return None if move is None else (move.target, move.future)

    def resume(self) -> None:
        """Go on with the moves whose copies the start has found; once, after the first metadata."""
        for key, target in self._logs.moving.found():
            partition = self._partition_of(key)
            if key in self._moves or (partition is not None and partition.lost is not None):
                continue
            if partition is None or target.futures.topic_id_of(key) != partition.topic.topic_id:
                self._logs.moving.give_up(key)
                continue
            try:
                future = self._logs.moving.cut_back(key, target)
            except KafkaError as error:
                logger.error("%s: the copy of %s cannot be opened: %s", target.root_dir, partition.name, error.message)
                continue
            future.reconfigure(partition.topic.config)
            logger.info("%s goes on to move to %s, from offset %d", future.name, target.root_dir, future.log_end_offset)
            self._add(partition, target, future)

    async def leave(self, target: LogManager) -> None:
        """End the moves to a directory that has failed; return when the controller knows where their replicas are."""
        ended = [move for move in self._moves.values() if move.target is target]
        for move in ended:
            self._forget(move)
            if move.stage is not MoveStage.COPYING:
                self._tell(move)
        for directory, answer in list(self._answers.values()):
            if directory is target:
                await answer

    def wake(self) -> None:
        """Look again: the metadata has changed."""
        if self._moves:
            self._pause.wake()

    def close(self) -> None:
        """Copy no more. The copies stay for the next run; their syncs begin now."""
        self._is_closed = True
        if self._running is not None:
            self._running.cancel()
        for move in self._moves.values():
            with suppress(KafkaError):
                move.future.flush_elsewhere()

    # The copying

    def _add(self, partition: Partition, target: LogManager, future: PartitionLog) -> None:
        move = _Move(partition, target, future)
        self._moves[move.key] = move
        self._pause.wake()
        if self._running is None or self._running.done():
            self._running = in_background(self._run(), self._loop)

    async def _run(self) -> None:
        while self._moves and not self._is_closed:
            is_idle = True
            for move in list(self._moves.values()):
                await next_turn()
                if self._moves.get(move.key) is move and not self._is_closed:
                    is_idle = not await self._step_of(move) and is_idle
            if is_idle:
                await self._pause.or_woken(IDLE_S)

    async def _step_of(self, move: _Move) -> bool:
        """Do one step of a move; return False if it waits."""
        partition = move.partition
        if partition.is_deleted:
            self._forget(move)
        elif partition.lost is not None or move.target not in self._logs.online:
            # The copy, or the log, is on a disk that failed: the next start decides.
            self._forget(move)
            self._tell(move)
        else:
            try:
                return await self._step(move)
            except KafkaError as error:
                self._failed(move, error)
            except OSError as error:
                self._failed(move, KafkaStorageError(in_words(error)))
        return True

    async def _step(self, move: _Move) -> bool:
        log = move.partition.log
        if log.future is not move.future:
            raise KafkaStorageError(f"the copy of {log.name} does not follow it any more")
        if move.stage is MoveStage.ASSIGNING:
            if not self._is_assigned(move):
                return False
            move.stage = MoveStage.LAST
        if move.stage is MoveStage.COPYING:
            if self.quota.is_exceeded():
                return False
            if self._copy(move):
                return True
            await self._sync(move)
            self._assign(move)
            return True
        return await self._end(move)

    def _copy(self, move: _Move) -> bool:
        """Copy one chunk; return False if the copy has everything.

        Raises:
            KafkaError: a disk failed, or a batch of the log is damaged.
        """
        log, future = move.partition.log, move.future
        truncate_to_start(future, log.log_start_offset)
        end = log.log_end_offset
        found = log.read(future.log_end_offset, move.chunk, max_offset=end) if future.log_end_offset < end else None
        if found is not None and not found.size:
            raise KafkaStorageError(f"{log.name} ends with a hole from offset {future.log_end_offset} to {end}")
        data = FetchResponse.PartitionData(
            partition_index=move.partition.index,
            high_watermark=log.high_watermark,
            log_start_offset=log.log_start_offset,
            records=b"" if found is None else found.read(),
        )
        before = future.log_end_offset
        try:
            append_fetched(future, data, max(log.latest_epoch, move.partition.leader_epoch))
        except KafkaStorageError as error:
            move.target.failure.noticed(error, f"cannot write the copy of {log.name}")
            raise
        if found is None:
            return False
        self.quota.record(found.size)
        records = future.log_end_offset - before
        move.chunk = max(move.chunk // 2, CHUNK_MIN) if records > RECORDS_PER_CHUNK else min(move.chunk * 2, CHUNK_MAX)
        return True

    async def _sync(self, move: _Move) -> None:
        end: asyncio.Future[None] = self._loop.create_future()
        if move.future.recovery_point < move.future.log_end_offset:
            move.future.flush_elsewhere(partial(_end, end))
            await end

    # The controller

    def _assign(self, move: _Move) -> None:
        if move.target not in self._logs.online or move.partition.is_deleted:
            return  # Meanwhile: the next step ends the move.
        move.stage = MoveStage.ASSIGNING
        self._logs.moving.promised[move.key] = move.target
        self._tell(move)

    def _tell(self, move: _Move) -> None:
        registration = self._registration_of(move.key)
        if self.tell is None or registration is None or self._node_id not in registration.replicas:
            return
        self._answers = {key: each for key, each in self._answers.items() if not each[1].done()}
        answer = self.tell(move.key[0], (move.partition.topic.topic_id, move.key[1]), registration)
        if answer is not None:
            self._answers[move.key] = (move.target, answer)

    def _is_assigned(self, move: _Move) -> bool:
        """Return whether the metadata names the new directory; it names none before metadata.version 3.7-IV2."""
        registration = self._registration_of(move.key)
        if registration is None or self._node_id not in registration.replicas:
            return False
        position = registration.replicas.index(self._node_id)
        if self.tell is None or len(registration.directories) != len(registration.replicas):
            return True
        return registration.directories[position] == self._logs.ids[self._logs.online.index(move.target)]

    # The end

    async def _end(self, move: _Move) -> bool:
        log, future = move.partition.log, move.future
        if not move.syncs:
            await move.target.checkpoint()
            move.syncs = 1
            return True
        if move.syncs < SYNCS and (move.syncs == 1 or future.recovery_point < log.recovery_point):
            self._copy(move)
            move.syncs += 1
            await self._sync(move)
            return True
        # From here on in one turn.
        for _ in range(LAST_CHUNKS):
            if not self._copy(move):
                break
        else:
            return True
        if future.recovery_point < log.recovery_point:
            future.flush()
        self._exchange(move, log)
        return True

    def _exchange(self, move: _Move, log: PartitionLog) -> None:
        partition = move.partition
        source = self._logs.directory_of(*move.key)
        assert source in self._logs.online, source
        root = source.root_dir
        self._logs.moving.exchange(move.key, source, move.target)
        del self._moves[move.key]
        partition.log_moved(move.future)
        logger.info("%s has moved from %s to %s", move.future.name, root, move.target.root_dir)
        self._changed(partition)

    def _give_up(self, move: _Move) -> None:
        self._forget(move)
        self._logs.moving.give_up(move.key)
        self._tell(move)

    def _forget(self, move: _Move) -> None:
        if self._moves.get(move.key) is move:
            del self._moves[move.key]
            self._logs.moving.leave(move.key)

    def _failed(self, move: _Move, error: KafkaError) -> None:
        """End a move; the replica stays where it is."""
        logger.error("%s does not move to %s: %s", move.future.name, move.target.root_dir, error.message)
        if move.partition.lost is None and {self._logs.directory_of(*move.key), move.target} <= {*self._logs.online}:
            self._give_up(move)
        else:
            self._forget(move)


def _end(future: asyncio.Future[None], error: BaseException | None) -> None:
    if not future.done():
        future.set_result(None)
