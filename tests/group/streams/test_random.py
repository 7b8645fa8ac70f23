"""Random lives of a streams group: whatever happens, no task is active twice, and calm brings all tasks back.

Members come, leave, fall silent, return, and lose answers; appends are refused, the coordinator fails over, topics grow and
settings change. What is checked is what the members themselves believe, since they are the ones that process: a member that has
fallen silent counts until its session is over.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import StreamsGroupHeartbeatResponse
from tests.group.streams.host import Member, StreamsHost, word_count

SESSION_MS = 45_000
FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)


class Life:
    """A group and its members."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.host = StreamsHost()
        self.host.settings["streams.assignment.interval.ms"] = self.rng.choice(("0", "1000"))
        self.host.settings["streams.initial.rebalance.delay.ms"] = self.rng.choice(("0", "3000"))
        self.members: list[Member] = []
        self.away: dict[str, str] = {}
        """Static members that left for a while: process id by instance id."""
        self.names = 0
        self.partitions = 2
        self.heard_ms: dict[str, int] = {}
        """When each member last sent a heartbeat."""

    def step(self) -> None:
        acts: list[tuple[int, Callable[[], None]]] = [
            (60, self.beat),
            (8, self.beat_and_lose_the_answer),
            (6, self.join),
            (2, self.leave),
            (2, self.fall_silent),
            (2, self.go_away),
            (3, self.return_to_place),
            (12, self.pass_time),
            (2, self.host.fail_over),
            (4, self.beat_while_the_log_refuses),
            (1, self.grow),
            (2, self.change_standbys),
        ]
        (act,) = self.rng.choices([act for _, act in acts], [weight for weight, _ in acts])
        act()
        self.check()

    # -- what happens ------------------------------------------------------------------------------------------------

    def _new(self, process_id: str, instance_id: str | None = None) -> Member:
        self.names += 1
        fields = {} if instance_id is None else {"instance_id": instance_id}
        member = Member(self.host, f"m{self.names}", process_id, **fields)
        self.members.append(member)
        return member

    def join(self) -> None:
        if len(self.members) < 5:
            static = f"i{self.names}" if self.rng.random() < 0.3 else None
            self._heard(self._new(self.rng.choice("pqr"), static), lambda member: member.join(word_count()))

    def beat(self) -> None:
        if self.members:
            self._beat(self.rng.choice(self.members))

    def _beat(self, member: Member) -> None:
        again = member.epoch == 0
        self._heard(member, lambda one: one.join(word_count()) if again else one.beat())

    def _heard(self, member: Member, send: Callable[[Member], StreamsGroupHeartbeatResponse]) -> None:
        self.heard_ms[member.member_id] = self.host.loop.now_ms
        if send(member).error_code in FENCED:
            member.epoch = 0
            member.tasks = {"active": [], "standby": [], "warmup": []}

    def beat_and_lose_the_answer(self) -> None:
        if self.members:
            member = self.rng.choice(self.members)
            epoch, tasks = member.epoch, dict(member.tasks)
            if epoch:
                member.beat()
                member.epoch, member.tasks = epoch, tasks

    def beat_while_the_log_refuses(self) -> None:
        self.host.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
        self.beat()
        self.host.log.refuse = None

    def leave(self) -> None:
        if self.members:
            member = self.members.pop(self.rng.randrange(len(self.members)))
            if member.epoch:
                member.leave()

    def fall_silent(self) -> None:
        """A member stops; nobody else is sure of that before its session is over."""
        if self.members:
            member = self.members.pop(self.rng.randrange(len(self.members)))
            for _ in range(SESSION_MS // 5_000):
                self.host.loop.advance(5_000)
                for other in list(self.members):
                    self._beat(other)
                silent_ms = self.host.loop.now_ms - self.heard_ms[member.member_id]
                self.check(*[member] if silent_ms < SESSION_MS else [])
            self.host.loop.advance(1_000)

    def go_away(self) -> None:
        static = [member for member in self.members if "instance_id" in member.fields and member.epoch]
        if static:
            member = self.rng.choice(static)
            self.members.remove(member)
            if not member.leave(-2).error_code:
                self.away[member.fields["instance_id"]] = member.process_id

    def return_to_place(self) -> None:
        if self.away:
            instance_id = self.rng.choice(sorted(self.away))
            self._heard(self._new(self.away.pop(instance_id), instance_id), lambda member: member.join(word_count()))

    def pass_time(self) -> None:
        self.host.loop.advance(self.rng.choice((100, 1_000, 4_000)))
        for member in list(self.members):
            if self.rng.random() < 0.8:
                self._beat(member)

    def grow(self) -> None:
        if self.partitions < 4:
            self.partitions += 1
            names = ["lines", "r", "c"]
            self.rng.shuffle(names)
            for name in names:
                self.host.create_topics({name: self.partitions})
                self.beat()

    def change_standbys(self) -> None:
        self.host.settings["streams.num.standby.replicas"] = self.rng.choice("0012")

    # -- what must hold ----------------------------------------------------------------------------------------------

    def check(self, *silent: Member) -> None:
        active = Counter(task for member in (*self.members, *silent) for task in held(member, "active"))
        assert max(active.values(), default=0) <= 1, active
        for process_id in "pqr":
            on = [member for member in self.members if member.process_id == process_id]
            copies = Counter(task for member in on for role in ("active", "standby") for task in held(member, role))
            assert max(copies.values(), default=0) <= 1, (process_id, copies)

    def calm(self) -> None:
        """All members heartbeat until nothing changes; then every task is active, and copies are where they should be."""
        self.host.loop.advance(SESSION_MS + 1_000)
        while len(self.members) < 2:
            self.join()
        for _ in range(12):
            self.host.loop.advance(1_500)
            for member in list(self.members):
                self._beat(member)
                self.check()
        everything = {f"{name}_{index}" for name in "01" for index in range(self.partitions)}
        assert {task for member in self.members for task in held(member, "active")} == everything
        assert self.host.group.state_name() == "Stable", self.host.group
        standby = int(self.host.settings.get("streams.num.standby.replicas", "0"))
        copies = min(standby, len({member.process_id for member in self.members}) - 1)
        found = Counter(task for member in self.members for task in held(member, "standby"))
        assert found == Counter(dict.fromkeys((f"1_{i}" for i in range(self.partitions)), copies) if copies else {})


def held(member: Member, role: str) -> list[str]:
    return [f"{task.subtopology_id}_{index}" for task in member.tasks[role] for index in task.partitions]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_life(seed: int) -> None:
    life = Life(seed)
    for _ in range(120):
        life.step()
    life.calm()
    life.host.fail_over()
    life.calm()
