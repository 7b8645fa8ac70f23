"""A simulated world: one clock, one network, and the nodes in it. A story, which is a coroutine outside all nodes, drives it.

world = World(seed=7)
broker, client = world.add_broker("broker"), world.add_node("client")

async def story() -> None:
    await broker.start()
    asked = client.run(produce(broker.address))
    broker.pause()
    await asyncio.sleep(5)  # the world's time
    broker.go_on()
    await asked

world.play(story())
"""

from __future__ import annotations

import asyncio
import gc
import random
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from barnabas.simulation.broker_node import BrokerNode
from barnabas.simulation.disk import SimDisk
from barnabas.simulation.network import Network
from barnabas.simulation.node import Node
from barnabas.simulation.timeline import Timeline
from barnabas.simulation.world_loop import WorldLoop
from barnabas.turns import new_budget

N = TypeVar("N", bound=Node)
R = TypeVar("R")

YEAR = 365 * 86_400.0


@contextmanager
def without_collections() -> Iterator[None]:
    """Collect no garbage while a world lasts, and all of it afterwards: collections during a run would depend on this process's memory.

    The garbage has tasks of processes that were killed. Closing such a task may fail, because a killed process may be anywhere in its code.
    """
    was_enabled, hook = gc.isenabled(), sys.unraisablehook
    gc.disable()
    try:
        yield
    finally:
        sys.unraisablehook = lambda unraisable: None
        gc.collect()
        sys.unraisablehook = hook
        if was_enabled:
            gc.enable()


class World:
    """All that happens in it follows from its seed and its story.

    Args:
        began: the time of its clock at the beginning, in seconds.
        hosts: what the hosts are called; the n-th node has the n in the place of the braces.

    Attributes:
        nodes: in the order they were added.
    """

    def __init__(self, seed: int, began: float = 0.0, *, hosts: str = "127.0.0.{}") -> None:
        self.seed = seed
        self.hosts = hosts
        new_budget()
        self.loop = WorldLoop(began)
        self.timeline = Timeline(self.loop.time)
        self.network = Network(self.loop, self.random("network"), self.timeline)
        self.nodes: list[Node] = []

    def __repr__(self) -> str:
        return f"<World seed={self.seed} at={self.loop.time():.3f} nodes={len(self.nodes)}>"

    def random(self, purpose: str) -> random.Random:
        """Return a source of chance of its own for one purpose, so that no other draws from it."""
        return random.Random(f"{self.seed} {purpose}")

    def add_node(self, name: str) -> Node:
        """Add a machine with a process that does nothing until it is asked to, as clients are."""
        return self.add(Node(self, name, self.next_host()))

    def add_broker(
        self, name: str, properties: dict[str, str] | None = None, disk: SimDisk | None = None
    ) -> BrokerNode:
        """Add a machine for a broker; `start` starts it."""
        return self.add(BrokerNode(self, name, self.next_host(), properties or {}, disk))

    def next_host(self) -> str:
        """Return the host of the next node."""
        return self.hosts.format(len(self.nodes) + 1)

    def add(self, node: N) -> N:
        """Add a machine of any kind, with the next host."""
        assert node.host == self.next_host(), f"{node.name} has the host {node.host}"
        self.nodes.append(node)
        return node

    def play(self, story: Coroutine[Any, Any, R], *, seconds: float = YEAR) -> R:
        """Let the world go on until its story ends, and end the world.

        Raises:
            Stuck: nothing will ever happen again, or it takes longer than so many virtual seconds.
        """
        self.loop.ends_at = self.loop.time() + seconds
        try:
            return self.loop.run_until_complete(story)
        finally:
            self._end()

    def _end(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        for node in self.nodes:
            self.network.power_lost(node.loop, node.host)
            node.loop.end()
        self.loop.close()

    @property
    def errors(self) -> list[str]:
        """The calls of the exception handler of any loop: always a fault, of the broker or of the story."""
        contexts = self.loop.errors + [context for node in self.nodes for context in node.errors]
        return [f"{context.get('message')}: {context.get('exception')!r}" for context in contexts]
