"""Golden scripts of a quorum (see `tests.golden`): drivers, their messages' bytes and logs on simulated disks, in virtual time.

    > stand 1                                            node 1 stands for election
    1 > 2 PreVote epoch=0 log=0@0                        a request as it arrives; a log's end is OFFSET@EPOCH
    2 > 1 granted epoch=0 leader=none                    an answer as it arrives
      1 leader epoch=1 leader=1 log=[1@0] end=2 hw=2     a node whose state has changed; log= has each epoch with its first offset

A Fetch is written if it asks for something else than the node's last one, and its answer if it holds news. What is lost on
its way is not written. A command ends when no message has come for a while.

Commands: see the methods `do_...`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from barnabas.protocol.errors import ErrorCode
from barnabas.raft.peer_messages import (
    BeginEpoch,
    EndEpoch,
    EpochAnswer,
    Fetched,
    FetchFrom,
    FetchSnapshot,
    SnapshotPiece,
    Vote,
    VoteAnswer,
)
from barnabas.raft.seams import SnapshotId
from barnabas.raft.voter_changes import VersionRange, VoterChangeResult, VoterChanges
from barnabas.raft.voters import Voter, VoterEndpoint
from barnabas.records.control import parse_control_record
from barnabas.records.record import iter_records
from barnabas.records.record_batch import read_header
from barnabas.steps import start
from tests.golden import Script, milliseconds, options
from tests.quorum.disk_log import DiskLog
from tests.raft.member_of_three import TIMEOUTS
from tests.raft.quorum_of_drivers import Member, Quorum

QUIET_MS = 15


class WrittenDown(Quorum[DiskLog]):
    """A quorum that lists what its nodes say to each other."""

    def __init__(self, voters: int, observers: int) -> None:
        self.lines: list[str] = []
        self.asked: dict[int, tuple[int, ...]] = {}
        self.told: dict[int, tuple[int, int]] = {}
        super().__init__(DiskLog, voters, observers)

    def carried(self, sender: int, receiver: int, message: Any) -> None:
        if isinstance(message, FetchFrom):
            asks = (receiver, message.epoch, message.offset, message.last_fetched_epoch)
            if self.asked.get(sender) == asks:
                return
            self.asked[sender] = asks
        if isinstance(message, Fetched):
            tells = (message.epoch, message.high_watermark)
            has_more = message.batches or message.diverging or message.snapshot or message.error
            if not has_more and self.told.get(receiver) == tells:
                return
            self.told[receiver] = tells
        self.lines.append(f"{sender} > {receiver} {_words(message)}")


class QuorumScript(Script):
    def __init__(self) -> None:
        super().__init__()
        self.quorum: WrittenDown
        self.changes: dict[int, VoterChanges] = {}

    # -- commands ----------------------------------------------------------------------------------------------------

    def do_nodes(self, voters: str, *words: str) -> None:
        """nodes VOTERS [observers=N] [leader=NODE]: numbered from 1, observers after voters; without a leader nobody has voted yet"""
        given = options(words)
        self.quorum = WrittenDown(int(voters), int(given.get("observers", 0)))
        self.changes = {node_id: self._changes_of(member) for node_id, member in self.quorum.members.items()}
        if "leader" in given:
            node = self._driver(given["leader"]).node
            if not node.is_leader:
                self.do_stand(given["leader"])
            self.settle()
            self.trace.clear()
            assert node.is_leader

    def do_stand(self, node_id: str) -> None:
        """stand NODE: stand for election now, as if it had not heard of a leader for long"""
        self._driver(node_id).campaign()

    def do_resign(self, node_id: str) -> None:
        """resign NODE: the leader gives up its epoch"""
        self._driver(node_id).resign()

    def do_append(self, node_id: str, *values: str) -> None:
        """append NODE VALUE ...: one batch"""
        last = self._driver(node_id).append([value.encode() for value in values])
        self.trace.append(f"{node_id}: appended up to {last}")

    def do_cut(self, *node_ids: str) -> None:
        """cut NODE ...: nothing reaches these nodes, or comes from them"""
        self.quorum.cut |= {int(node_id) for node_id in node_ids}

    def do_heal(self, *node_ids: str) -> None:
        """heal NODE ...: these nodes reach the others again that are not cut off"""
        self.quorum.cut -= {int(node_id) for node_id in node_ids}

    def do_advance(self, time: str) -> None:
        """advance TIME: let time pass"""
        self.quorum.loop.advance(milliseconds(time))

    def do_snapshot(self, node_id: str) -> None:
        """snapshot NODE: write a snapshot of what is committed, and drop the log before its end"""
        node, log = self._driver(node_id).node, self.quorum.members[int(node_id)].log
        end = node.high_watermark
        log.begin_at_new_snapshot(SnapshotId(end, log.epoch_at(end)), node.history.at(end - 1))

    def do_add(self, leader: str, node_id: str) -> None:
        """add LEADER NODE: AddRaftVoter, to a leader"""
        endpoint = VoterEndpoint("CONTROLLER", f"node{node_id}", 9093)
        voter = Voter(*self.quorum.members[int(node_id)].key, (endpoint,))
        self._expect(f"{leader}: add {node_id}", self.changes[int(leader)].add(voter))

    def do_remove(self, leader: str, node_id: str) -> None:
        """remove LEADER NODE: RemoveRaftVoter, to a leader"""
        key = self.quorum.members[int(node_id)].key
        self._expect(f"{leader}: remove {node_id}", self.changes[int(leader)].remove(key))

    # -- the trace ---------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        quiet_ms = 0
        while quiet_ms < QUIET_MS:
            self._write_down()
            self.quorum.loop.advance(1)
            quiet_ms = 0 if self.quorum.lines else quiet_ms + 1

    def states(self) -> dict[str, str]:
        return {f"node {node_id}": _state(member) for node_id, member in self.quorum.members.items()}

    def _write_down(self) -> None:
        self.trace += self.quorum.lines
        self.quorum.lines.clear()

    def _expect(self, what: str, change: Any) -> None:
        def done(future: asyncio.Future[VoterChangeResult]) -> None:
            self._write_down()
            error, message = future.result()
            self.trace.append(f"{what} {error.name} {message or ''}".rstrip())

        start(change, self.quorum.loop).add_done_callback(done)

    def _driver(self, node_id: str) -> Any:
        return self.quorum.members[int(node_id)].driver

    def _changes_of(self, member: Member[DiskLog]) -> VoterChanges:
        async def versions_of(node_id: int, endpoint: VoterEndpoint) -> VersionRange | None:
            return VersionRange(0, 1)

        return VoterChanges(
            member.driver,
            self.quorum.loop,
            listener_name="CONTROLLER",
            versions_of=versions_of,
            timeout_ms=TIMEOUTS.request,
        )


def _words(message: Any) -> str:
    error = getattr(message, "error", ErrorCode.NONE)
    if error is not ErrorCode.NONE:
        return f"{error.name} epoch={message.epoch} leader={_node(message.leader_id)}"
    match message:
        case Vote():
            name = "PreVote" if message.pre_vote else "Vote"
            return f"{name} epoch={message.epoch} log={message.log_end.end_offset}@{message.log_end.epoch}"
        case VoteAnswer():
            given = "granted" if message.is_granted else "not granted"
            return f"{given} epoch={message.epoch} leader={_node(message.leader_id)}"
        case BeginEpoch():
            return f"BeginQuorumEpoch epoch={message.epoch}"
        case EndEpoch():
            return f"EndQuorumEpoch epoch={message.epoch} preferred={[key.id for key in message.preferred]}"
        case EpochAnswer():
            return f"accepted epoch={message.epoch} leader={_node(message.leader_id)}"
        case FetchFrom():
            return f"Fetch epoch={message.epoch} from={message.offset}@{message.last_fetched_epoch}"
        case Fetched():
            return _fetched(message)
        case FetchSnapshot():
            return f"FetchSnapshot epoch={message.epoch} {_snapshot(message.snapshot)} position={message.position}"
        case SnapshotPiece():
            is_all = message.position + len(message.data) == message.size
            return f"{_snapshot(message.snapshot)} position={message.position}{' the rest' if is_all else ''}"
    raise AssertionError(message)


def _fetched(answer: Fetched) -> str:
    words = []
    if answer.diverging is not None:
        words.append(f"diverging={answer.diverging.end_offset}@{answer.diverging.epoch}")
    if answer.snapshot is not None:
        words.append(_snapshot(answer.snapshot))
    words += [_batch(memoryview(batch)) for batch in answer.batches]
    return " ".join([*words, f"hw={answer.high_watermark}"])


def _batch(batch: memoryview) -> str:
    header = read_header(batch)
    if header.is_control:
        names = [parse_control_record(record).type.name for record in iter_records(batch)]
    else:
        names = [bytes(record.value or b"").decode() for record in iter_records(batch)]
    return f"{header.base_offset}@{header.partition_leader_epoch}:{','.join(names)}"


def _state(member: Member[DiskLog]) -> str:
    node, log = member.driver.node, member.log
    epochs: dict[int, int] = {}
    for batch in log.contents():
        header = read_header(memoryview(batch))
        epochs.setdefault(header.partition_leader_epoch, header.base_offset)
    first = log.earliest_snapshot()
    held = [f"{offset}@{epoch}" for epoch, offset in epochs.items()]
    if first is not None:
        held.insert(0, _snapshot(first))
    return (
        f"{member.key.id} {node.role.name.lower()} epoch={node.epoch} leader={_node(node.leader_id)} "
        f"log=[{' '.join(held)}] end={log.end_offset} hw={node.high_watermark} voters={','.join(map(str, node.voters.ids()))}"
    )


def _snapshot(snapshot: SnapshotId) -> str:
    return f"snapshot:{snapshot.end_offset}@{snapshot.epoch}"


def _node(node_id: int) -> str:
    return "none" if node_id < 0 else str(node_id)
