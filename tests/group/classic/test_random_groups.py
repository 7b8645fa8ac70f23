"""Random members doing random things, in virtual time: what must hold after every step, and at the end.

After each step: counters and maps of the group agree with its members, and timers exist for exactly those who are watched.
At the end: nobody waits for ever; an offset that was acknowledged is there after a failover; the loaded group is the last one written.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from barnabas.group.classic.group import ClassicGroup, ClassicGroupState
from barnabas.protocol.errors import ErrorCode
from tests.coordinator.shards import context_of, runtime_of
from tests.group.script import ScriptRunner

CLIENTS = ("a", "b", "c", "d", "e")
STEPS = 80


class RandomRunner(ScriptRunner):
    """Plays random commands, and remembers what was promised."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.choices = random.Random(seed)
        self.config["group_initial_rebalance_delay_ms"] = self.choices.choice((0, 1000, 3000))
        self.config["group_max_size"] = self.choices.choice((2, 4, 100))
        self.futures: list[asyncio.Future[Any]] = []
        self.acknowledged: dict[int, int] = {}
        self.last: dict[str, asyncio.Future[Any]] = {}

    def _is_waiting(self, name: str) -> bool:
        """A client asks one thing at a time; what it asks under a new member id is another client's."""
        last = self.last.get(name)
        return last is not None and not last.done()

    def _expect(self, what: str, answer: Any, show: Any = lambda response: "") -> None:
        future = self._started(answer)
        self.futures.append(future)
        if what.endswith((": join", ": sync")):
            self.last[what.partition(":")[0]] = future
        super()._expect(what, future, show)

    def step(self) -> None:
        name = self.choices.choice(CLIENTS)
        instance = [f"instance=i{name}"] if name in "de" else []
        commands: list[tuple[str, ...]] = [
            ("advance", self.choices.choice(("0s", "1s", "4s", "11s", "70s"))),
            ("hold-commits",),
            ("release",),
            ("refuse", "NOT_ENOUGH_REPLICAS"),
            ("refuse",),
        ]
        if not self._is_waiting(name):
            commands += [("join", name, *instance)] * 3 + [("join", name, f"topics=t{len(self.futures)}", *instance)]
        if name in self.clients:
            commands += [("heartbeat", name), ("commit",), ("leave", name), ("join", name, "id=none", *instance)]
            commands += [("failover",)] if self.choices.random() < 0.1 else []
            if not self._is_waiting(name):
                commands += [("sync", name, "a=x", "b=y"), ("sync", name)]
        command, *arguments = self.choices.choice(commands)
        if command == "commit":
            self._commit(name)
        else:
            getattr(self, "do_" + command.replace("-", "_"))(*arguments)
        self.loop.run_ready()

    def _commit(self, name: str) -> None:
        partition, offset = self.choices.randrange(3), len(self.futures)
        self.do_commit(name, f"t:{partition}={offset}")

        def done(future: asyncio.Future[Any]) -> None:
            if future.result().topics[0].partitions[0].error_code == ErrorCode.NONE:
                self.acknowledged[partition] = max(self.acknowledged.get(partition, 0), offset)

        self.futures[-1].add_done_callback(done)

    def settle(self) -> None:
        """Let everything come to an end: appends work, nobody does anything, and a last member comes and goes."""
        self.do_refuse()
        self.do_release()
        self.loop.advance(600_000)
        # An empty generation whose record was refused is not written again: this one is.
        self.do_join("z", "version=3")
        self.loop.advance(600_000)


def check(runner: RandomRunner) -> None:
    shard = runner.shard()
    if shard is None or runtime_of(runner.coordinator).state(0) is None:
        return
    watched = {key for key in shard.environment.timer._timers if key.startswith("heartbeat-")}
    expected = set()
    for group in shard.groups.values():
        check_group(group, writing=bool(context_of(runner.coordinator).pending))
        expected |= {f"heartbeat-{group.group_id}-{m}" for m in (*group.members, *group.pending_join_members)}
        for timer, state in (("join", ClassicGroupState.PREPARING_REBALANCE),):
            assert (f"{timer}-{group.group_id}" in shard.environment.timer) == (group.state is state), group
    assert watched <= expected, "a timer for nobody"
    waiting = {
        f"heartbeat-{group.group_id}-{member.member_id}"
        for group in shard.groups.values()
        for member in group.members.values()
        if member.has_satisfied_heartbeat
    }
    assert expected - watched <= waiting, "a member that nobody watches"


def check_group(group: ClassicGroup, writing: bool) -> None:
    members = group.members
    assert group.awaiting_join_count == sum(member.awaiting_join is not None for member in members.values())
    assert group.static_members == {m.group_instance_id: m.member_id for m in members.values() if m.is_static}
    assert all(member_id == member.member_id for member_id, member in members.items())
    assert not set(members) & set(group.pending_join_members)
    assert set(group.pending_sync_members) <= set(members)
    assert group.leader_id in members if members else True
    if group.is_empty:
        assert not members
    if group.is_in_state(ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE):
        assert group.protocol_name is not None
        assert all(group.protocol_name in member.protocols for member in members.values())
        # A static member that has come back waits for its new id to be written.
        assert writing or all(member.awaiting_join is None for member in members.values())
    if group.is_in_state(ClassicGroupState.STABLE):
        assert all(member.awaiting_sync is None for member in members.values())


@pytest.mark.parametrize("seed", range(60))
def test_random_groups(seed: int) -> None:
    runner = RandomRunner(seed)
    for _ in range(STEPS):
        runner.step()
        check(runner)
    runner.settle()
    assert [future for future in runner.futures if not future.done()] == [], "someone waits for ever"
    groups = runner.shard().groups.values()
    before = [(g.group_id, g.generation_id, g.state, g.protocol_name, g.leader_id, list(g.members)) for g in groups]
    assert all(group.is_empty for group in groups), "all are gone, so the last generation is empty"
    runner.do_failover()
    runner.loop.run_ready()
    groups = runner.shard().groups.values()
    after = [(g.group_id, g.generation_id, g.state, g.protocol_name, g.leader_id, list(g.members)) for g in groups]
    assert after == before
    offsets = runner.shard()._store.offsets
    for partition, acknowledged in runner.acknowledged.items():
        committed = offsets.get("g", "t", partition)
        assert committed is not None
        assert committed.committed_offset >= acknowledged
