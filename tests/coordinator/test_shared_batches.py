"""Shared batches under failure: random work on a busy shard, with appends that are refused, lost or torn at every point.

After each failure three things must hold: each operation has an answer; an answer without an error is in the log and one with an error
is not, unless it says that nobody knows; the shard's memory is what its log says when it is read from the start.
"""

from __future__ import annotations

import asyncio
import importlib
import random
from collections.abc import Awaitable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from barnabas.api import APIS
from barnabas.api.serving.context import ConnectionInfo, RequestContext
from barnabas.coordinator.result import CoordinatorResult
from barnabas.coordinator.shard_context import ContextState
from barnabas.log.log_config import LogConfig
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import HeartbeatRequest, JoinGroupRequest, OffsetCommitRequest, OffsetFetchRequest
from barnabas.protocol.topic_names import GROUP_METADATA
from barnabas.simulation.disk import SimDisk
from barnabas.steps import start
from tests.api.group_hosting import PARTITIONS, GroupHosting
from tests.coordinator.sums import Hosted, Sum
from tests.replication.hosting import NODE, Hosting

REFUSALS = (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def reject(shard: Sum) -> CoordinatorResult[None]:
    """Reject a request, for a reason that rests on the state."""
    raise KafkaError(ErrorCode.INVALID_REQUEST, str(shard.total))


class RandomWork:
    """A shard of sums whose log fails at random; each write adds a bit of its own."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.host = Hosted(max_batch_bytes=self.random.choice((400, 100_000)))
        self.host.elect()
        self.epoch = 0
        self.next_value = 1
        self.writes: list[tuple[int, Any]] = []
        self.reads: list[Any] = []
        self.rejections: list[Any] = []
        self.outcomes: dict[int, Any] = {}

    def step(self) -> None:
        log, loop = self.host.log, self.host.loop
        action = self.random.choice(
            ("add",) * 20 + ("alone",) * 2 + ("read",) * 4 + ("reject",) * 2 + ("turn",) * 3 + ("fail", "hold", "end")
        )
        if action == "add":
            self.write()
        elif action == "alone":
            value = self.next_value
            self.write(on_append=lambda error: self.outcomes.__setitem__(value, error))
        elif action == "read":
            self.reads.append(self.host.total())
        elif action == "reject":
            self.rejections.append(self.host.runtime.schedule_write(0, reject))
        elif action == "turn":
            loop.run_ready()
        elif action == "fail":
            log.refuse = self.random.choice((None, *REFUSALS))
        elif action == "hold":
            log.hold_commits = True
        else:
            self.end_of_hold()

    def write(self, **options: Any) -> None:
        value, self.next_value = self.next_value, self.next_value * 2
        self.writes.append((value, self.host.add(value, **options)))

    def end_of_hold(self) -> None:
        log, loop = self.host.log, self.host.loop
        if not log.hold_commits or not log.waits:
            log.release()
        elif self.random.random() < 0.5:
            log.lose(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            log.release()
        loop.run_ready()
        if self.host.runtime.state(0) is ContextState.FAILED:  # What was lost was being read.
            self.host.elect()

    def check(self) -> None:
        """Come to rest, and compare the memory and the answers with the log."""
        host = self.host
        host.log.refuse = None
        host.log.release()
        host.loop.run_ready()
        assert host.runtime.state(0) is ContextState.ACTIVE
        total = host.total().result()
        scratch = Hosted()
        for batch in host.log.batches.get(0, []):
            scratch.log.append(0, bytearray(batch))
        scratch.elect()
        assert total == scratch.total().result()
        assert host.shards[-1].replayed == scratch.shards[-1].replayed, "also the offsets that were foreseen"
        for value, answer in self.writes:
            assert answer.done(), "each operation has an answer"
            self.check_outcome(value, answer.exception(), total)
        for value, error in self.outcomes.items():
            self.check_outcome(value, error, total)
        assert all(answer.done() for answer in (*self.reads, *self.rejections))
        for error in (answer.exception() for answer in self.rejections):
            assert error.code is not ErrorCode.INVALID_REQUEST or int(error.message) & ~total == 0
        for read in self.reads:
            assert read.exception() is not None or read.result() & ~total == 0, (
                "an answer rests on nothing that is lost later"
            )

    def check_outcome(self, value: int, error: Any, total: int) -> None:
        is_written = bool(total & value)
        if error is None:
            assert is_written
        elif error.code in REFUSALS:
            assert not is_written
        else:
            assert error.code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


@pytest.mark.parametrize("seed", range(200))
def test_random_failures_of_the_log(seed: int) -> None:
    work = RandomWork(seed)
    for writes in (20, 40, 60):
        while work.next_value < 1 << writes:
            work.step()
        work.check()


def committed(answer: asyncio.Future[Any]) -> ErrorCode:
    return ErrorCode(answer.result().topics[0].partitions[0].error_code)


class BusyGroups(GroupHosting):
    """Groups of one partition of `__consumer_offsets`, on a disk that can fail."""

    def __init__(self) -> None:
        self.disk = SimDisk()
        super().__init__(Hosting(Path("/data"), self.disk), create=False)
        self.hosting.create_topic(GROUP_METADATA, PARTITIONS, replicas=(NODE, NODE + 1), isr=(NODE,))
        self.hosting.create_topic("t")
        self.coordinator.on_elected(0, 0)
        self.hosting.spin()
        names = (f"g{count}" for count in range(1000))
        self.groups = list(islice((name for name in names if self.coordinator.partition_of(name) == 0), 12))
        self.stable = self.groups.pop()
        self.joining = self.groups.pop()
        self.member_id = self.stable_member(self.stable)
        self.committed = dict.fromkeys(self.groups, -1)

    def send(self, api_key: int, request: Any, version: int) -> asyncio.Future[Any]:
        """Send a request without a turn of the loop."""
        module = importlib.import_module(f"barnabas.api.{APIS[api_key].module}")
        context = RequestContext(self.hosting.services, ConnectionInfo("c"), api_key, version, 1, "client")

        async def answer() -> Any:
            handled = module.handle(context, request)
            return await handled if isinstance(handled, Awaitable) else handled

        return start(answer(), self.loop)

    def commit(self, group_id: str, offset: int) -> asyncio.Future[Any]:
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[partition])
        return self.send(8, OffsetCommitRequest(group_id=group_id, topics=[topic]), 8)

    def commit_all(self, offset: int) -> dict[str, asyncio.Future[Any]]:
        return {group_id: self.commit(group_id, offset) for group_id in self.groups}

    def heartbeat(self) -> asyncio.Future[Any]:
        return self.send(12, HeartbeatRequest(group_id=self.stable, generation_id=1, member_id=self.member_id), 3)

    def join(self) -> asyncio.Future[Any]:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
        request = JoinGroupRequest(
            group_id=self.joining,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=[protocol],
        )
        return self.send(11, request, 3)

    def offset(self, group_id: str) -> int:
        topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
        answer = self.ask(9, OffsetFetchRequest(group_id=group_id, topics=[topic]), 5)
        assert answer.error_code == ErrorCode.NONE
        return int(answer.topics[0].partitions[0].committed_offset)

    def offsets(self) -> dict[str, int]:
        return {group_id: self.offset(group_id) for group_id in self.groups}

    def offsets_in_log(self) -> dict[str, int]:
        """What another coordinator reads from the same log."""
        own = self.coordinator
        other = GroupHosting(self.hosting, create=False).coordinator
        other.on_elected(0, 0)
        self.hosting.spin()
        found = self.offsets()
        other.close()
        self.hosting.services.group_coordinator = self.coordinator = own
        return found

    def make_busy(self) -> None:
        self.first_join = self.join()  # Writes the group; the joins behind it are in memory only.
        self.hosting.spin()
        answers = self.commit_all(1)
        assert all(answer.done() for answer in answers.values())
        self.hosting.spin()

    def turn(self, offset: int) -> tuple[dict[str, asyncio.Future[Any]], list[asyncio.Future[Any]]]:
        """Send commits, heartbeats and joins in one turn of the loop; returns the answers to commits, and to the others."""
        first, *others = self.groups
        others_answers = [self.join()]
        commits = {first: self.commit(first, offset)}
        others_answers.append(self.heartbeat())
        commits |= {group_id: self.commit(group_id, offset) for group_id in others}
        others_answers += [self.join(), self.heartbeat()]
        return commits, others_answers

    def check(self, commits: dict[str, asyncio.Future[Any]], others: list[asyncio.Future[Any]], offset: int) -> None:
        self.disk.on_call = None
        self.disk.capacity = None
        self.hosting.advance(100)
        if not self.coordinator.active_shards():  # The disk failed again when the shard was read again.
            self.coordinator.on_elected(0, 1)
            self.hosting.spin()
        assert all(answer.done() for answer in (self.first_join, *commits.values(), *others))
        in_memory = self.offsets()
        assert in_memory == self.offsets_in_log()
        for group_id, answer in commits.items():
            code = committed(answer)
            assert code in (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR)
            assert in_memory[group_id] == (offset if code == ErrorCode.NONE else 1)
        for answer in (self.first_join, *others):
            assert answer.result().error_code in (ErrorCode.NONE, ErrorCode.NOT_COORDINATOR)
        assert self.heartbeat().result().error_code == ErrorCode.NONE, "a stable group outlives the failure"
        commits = self.commit_all(9)
        self.hosting.spin()
        assert {committed(answer) for answer in commits.values()} == {ErrorCode.NONE}

    def close(self) -> None:
        self.coordinator.close()
        self.hosting.close()


@pytest.fixture
def busy() -> Iterator[BusyGroups]:
    host = BusyGroups()
    host.make_busy()
    yield host
    host.close()


def test_a_busy_turn_is_one_batch(busy: BusyGroups) -> None:
    before = busy.disk.calls
    commits, others = busy.turn(5)
    assert not any(answer.done() for answer in commits.values())
    assert busy.disk.calls == before
    busy.hosting.spin()
    assert all(answer.done() for answer in commits.values())
    assert busy.disk.calls == before + 1
    busy.check(commits, others, 5)


@pytest.mark.parametrize("again", range(6))
def test_the_disk_fails_in_the_append_and_again_while_the_shard_is_read(busy: BusyGroups, again: int) -> None:
    calls = 0

    def fail(call: str, path: str) -> OSError | None:
        nonlocal calls
        calls += 1
        return OSError(5, "simulated failure", path) if calls in (1, 1 + again) else None

    busy.disk.on_call = fail
    commits, others = busy.turn(5)
    busy.hosting.spin()
    assert {committed(answer) for answer in commits.values()} == {ErrorCode.NOT_COORDINATOR}
    busy.check(commits, others, 5)


@pytest.mark.parametrize("room", [0, 1, 12, 60, 61, 62, 100, 300, 10_000])
def test_the_disk_is_full(busy: BusyGroups, room: int) -> None:
    busy.disk.capacity = busy.disk.used + room
    _, others = busy.turn(5)
    busy.hosting.spin()
    commits = busy.commit_all(5)
    busy.hosting.spin()
    busy.check(commits, others, 5)


def test_too_few_replicas_cost_no_group_its_members(busy: BusyGroups) -> None:
    joins = [busy.first_join]
    busy.hosting.reconfigure(GROUP_METADATA, LogConfig(min_insync_replicas=2))
    commits, others = busy.turn(5)
    busy.hosting.spin()
    for answer in commits.values():
        assert committed(answer) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert [answer.result().error_code for answer in others if answer.done()] == [ErrorCode.NONE, ErrorCode.NONE]
    busy.hosting.reconfigure(GROUP_METADATA, LogConfig())
    busy.hosting.advance(100)
    joins += [answer for answer in others if hasattr(answer.result(), "generation_id")]
    assert [answer.result().error_code for answer in joins] == [ErrorCode.NONE] * 3
    assert len({answer.result().member_id for answer in joins}) == 3
