"""Faults stay within what the cluster promises to survive: no two nodes forget."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

from barnabas.simulation.world import World
from tests.simulation.cluster_faults import Faults
from tests.simulation.history import History
from tests.simulation.judged_node import JudgedNode


class Machine:
    """As much of a JudgedNode as the faults of this module use; it starts at once."""

    def __init__(self, name: str) -> None:
        self.name, self.is_broker, self.is_up, self.is_dying = name, True, True, False
        self.loop = SimpleNamespace(is_paused=False)
        self.happened: list[str] = []

    @property
    def serves(self) -> bool:
        return self.is_up

    def kill(self) -> None:
        self.happened.append("kill")
        self.is_up = False

    def lose_power(self) -> None:
        self.happened.append("power")
        self.is_up = False

    def begin(self, history: History) -> None:
        self.is_up = True


class Cluster:
    def __init__(self) -> None:
        self.is_in_sync = True
        self.machines = {name: Machine(name) for name in "abc"}
        self.faults = Faults(
            self.world,
            [],
            History(),
            kinds=(),
            every_seconds=1.0,
            longest_seconds=12.0,
            are_in_sync=lambda: self.is_in_sync,
        )

    world = World(1)

    async def do(self, fault: str, name: str) -> bool:
        """Let a fault happen to one node; return whether it did."""
        machine = self.machines[name]
        self.faults.nodes = [cast(JudgedNode, machine)]
        before = len(machine.happened)
        await getattr(self.faults, fault)(random.Random(1))
        return len(machine.happened) > before


def played(story: Callable[[Cluster], Coroutine[Any, Any, None]]) -> None:
    cluster = Cluster()
    cluster.world = World(1)
    cluster.world.play(story(cluster))


def test_a_second_node_does_not_forget_before_all_are_in_sync() -> None:
    async def story(cluster: Cluster) -> None:
        assert await cluster.do("lose_power", "a")
        cluster.is_in_sync = False
        assert not await cluster.do("lose_power", "b")
        assert not await cluster.do("failing_disk", "b"), "after a failed sync it claims nothing"
        assert await cluster.do("kill", "b"), "a killed process forgets nothing"
        assert await cluster.do("kill", "c")
        cluster.is_in_sync = True
        assert await cluster.do("lose_power", "b")

    played(story)


def test_a_node_may_forget_while_others_are_behind_or_were_killed() -> None:
    async def story(cluster: Cluster) -> None:
        assert await cluster.do("kill", "b")
        cluster.is_in_sync = False
        assert await cluster.do("lose_power", "a")
        assert await cluster.do("lose_power", "a"), "the same node again"

    played(story)


def test_a_disk_is_lost_only_while_all_are_in_sync() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.is_in_sync = False
        assert not await cluster.do("wipe", "a")

    played(story)


def test_a_killed_process_leaves_its_writes_and_a_power_cut_does_not() -> None:
    """The page cache belongs to the system."""

    async def story() -> None:
        node = world.add_node("n")
        kept = node.disk
        kept.open("/f", create=True).pwrite(b"x" * 100, 0)
        node.kill()
        assert kept.contents("/f") == b"x" * 100
        lost = [kept.copy(seed) for seed in range(20)]
        for disk in lost:
            disk.crash()
        assert any(not disk.exists("/f") or disk.contents("/f") != b"x" * 100 for disk in lost)
        await asyncio.sleep(0)

    world = World(1)
    world.play(story())
