"""How long a cluster holds its event loops as it grows, and what its metadata costs: real nodes in virtual time, in one process.

    python -m bench.long_turns [--nodes 3] [--partitions 4000] [--replicas 3] [--per-topic 250]

The nodes are the whole broker and controller; only network, disk and time are simulated. So a turn of a loop is measured in CPU seconds
of this process, which other load on the machine hardly changes. The simulated disk is part of them: a real one takes less CPU and more
time. Garbage is collected between the phases only, because here it is that of all nodes. Seconds of the world's time count what the
protocol waits for, and no computing.

Each phase prints the world's seconds, the CPU seconds of all nodes together, and the longest turns with the functions that a sampler saw
in them most. The phases: create the partitions; nothing happens for a minute; kill the active controller until another answers; start it
again until it has the metadata; kill a broker until nobody follows it; start it again until its replicas are in sync.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import gc
import random
import resource
import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from tests.simulation.cluster_client import ClusterClient
from tests.simulation.creator import create_topic
from tests.simulation.history import History
from tests.simulation.judged_node import JudgedNode
from tests.simulation.workload import LOST

from barnabas.metadata.image import MetadataImage
from barnabas.protocol.errors import ErrorCode
from barnabas.simulation.executor import Executor
from barnabas.simulation.node_loop import NodeLoop
from barnabas.simulation.world import World

SAMPLE_SECONDS = 0.004
LONG_SECONDS = 0.05
SHOWN = 4
FRAMES = 3
PATIENCE_SECONDS = 600.0


class Turns:
    """The CPU time of each turn of the nodes' loops; what their threads do is not part of it."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self.turns: list[tuple[float, list[str]]] = []
        self._samples: list[str] = []
        self._elsewhere = 0.0
        self._is_inside = False

    def install(self) -> None:
        """Measure every node's turns from now on."""
        run, work = NodeLoop.run, Executor._do

        def measured_run(loop: NodeLoop, handle: Any) -> None:
            self._samples, self._elsewhere, self._is_inside = [], 0.0, True
            began = time.thread_time()
            try:
                run(loop, handle)
            finally:
                self._is_inside = False
                taken = time.thread_time() - began
                self.cpu += taken
                taken -= self._elsewhere
                if taken > LONG_SECONDS / 5:
                    self.turns.append((taken, self._samples))

        def measured_work(*args: Any) -> None:
            began, was_inside = time.thread_time(), self._is_inside
            self._is_inside = False
            try:
                work(*args)
            finally:
                self._is_inside = was_inside
                self._elsewhere += time.thread_time() - began

        NodeLoop.run = measured_run  # type: ignore[method-assign]
        Executor._do = measured_work  # type: ignore[method-assign]
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, SAMPLE_SECONDS, SAMPLE_SECONDS)

    def _sample(self, _: int, frame: FrameType | None) -> None:
        if not self._is_inside:
            return
        names = []
        while frame is not None and len(names) < 40:
            module = frame.f_globals.get("__name__", "")
            if module.startswith("barnabas") and not module.startswith("barnabas.steps"):
                names.append(frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name)
            frame = frame.f_back
        self._samples.append(" < ".join(names[:FRAMES]))

    def take(self) -> tuple[float, list[tuple[float, list[str]]]]:
        """Return the CPU seconds since the last call, and the long turns, the longest first."""
        cpu, turns = self.cpu, sorted(self.turns, key=lambda each: -each[0])
        self.cpu, self.turns = 0.0, []
        return cpu, turns


class Growing:
    """The cluster and the phases."""

    def __init__(self, nodes: int, partitions: int, replicas: int, per_topic: int, turns: Turns) -> None:
        self.world = World(1)
        self.turns, self.replicas = turns, replicas
        self.topics = [(f"t-{number}", per_topic) for number in range(partitions // per_topic)]
        ids = range(1, nodes + 1)
        voters = [(each, f"127.0.0.{each}") for each in list(ids)[:3]]
        self.nodes = [
            self.world.add(
                JudgedNode(
                    self.world,
                    each,
                    f"127.0.0.{each}",
                    ("broker", "controller") if each <= 3 else ("broker",),
                    voters,
                    {"min.insync.replicas": str(min(2, replicas))},
                )
            )
            for each in ids
        ]
        for node in self.nodes:
            node.slow_threads(0.01)
            node.format()
        self.clients = self.world.add_node("clients")
        self.history = History()

    def report(self, phase: str, seconds: float) -> None:
        cpu, turns = self.turns.take()
        gc.collect()
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        longest = turns[0][0] * 1000 if turns else 0.0
        many = sum(taken > LONG_SECONDS for taken, _ in turns)
        print(
            f"{phase}: {seconds:.2f} s, {cpu:.2f} CPU s; longest turn {longest:.0f} ms, {many} over "
            f"{LONG_SECONDS * 1000:.0f} ms; at most {megabytes:.0f} MB",
            flush=True,
        )
        for taken, samples in turns[:SHOWN]:
            if taken > LONG_SECONDS / 2:
                print(f"   {taken * 1000:.0f} ms")
                for what, count in collections.Counter(samples).most_common(4):
                    print(f"      {count * SAMPLE_SECONDS * 1000:4.0f} ms  {what}")

    async def until(self, phase: str, is_so: Callable[[], bool]) -> None:
        began = self.world.loop.time()
        while not is_so():
            assert self.world.loop.time() < began + PATIENCE_SECONDS, f"never came: {phase}"
            await asyncio.sleep(0.05)
        self.report(phase, self.world.loop.time() - began)

    async def story(self) -> None:
        for node in self.nodes:
            node.begin(self.history)
        await self.until("start", lambda: all(node.serves for node in self.nodes) and self.controller() is not None)
        began = self.world.loop.time()
        await self.clients.run(self.create())
        self.report("create", self.world.loop.time() - began)
        total = sum(count for _, count in self.topics)
        await self.until("all nodes know all", lambda: all(self.known(node) >= total for node in self.nodes))
        if self.replicas > 1:
            await self.until("followers fetch", self.all_fetch)
        await asyncio.sleep(60)
        self.report("a minute without work", 60.0)

        controller = self.controller()
        assert controller is not None
        controller.kill()
        await self.until("the active controller is killed: another leads", lambda: self.controller() is not None)
        await self.until("its partitions have other leaders", lambda: self.leads(controller.node_id) == 0)
        controller.begin(self.history)
        await self.until("it is started again", lambda: controller.serves and self.known(controller) >= total)
        await self.until("all are in sync", self.in_sync)
        others = [node for node in self.nodes if node is not self.controller()]
        victim = max(others, key=lambda node: self.leads(node.node_id))
        victim.kill()
        await self.until("a broker is killed", lambda: self.leads(victim.node_id) == 0)
        victim.begin(self.history)
        await self.until("it is started again", lambda: victim.serves and self.known(victim) >= total)
        await self.until("all are in sync", self.in_sync)

    def controller(self) -> JudgedNode | None:
        """The node that leads the quorum and controls."""
        for node in self.nodes:
            quorum = getattr(getattr(node, "server", None), "quorum", None) if node.is_up else None
            if quorum is not None and quorum.driver.node.is_leader and quorum.controller is not None:
                return node
        return None

    def image(self) -> MetadataImage:
        return next(node.image for node in self.nodes if node.is_up and node.image is not None)

    def known(self, node: JudgedNode) -> int:
        image = node.image
        return 0 if image is None else sum(len(topic.partitions) for topic in image.topics.by_name.values())

    def all_fetch(self) -> bool:
        """Whether the session of each fetcher has all its partitions."""
        return all(
            len(loop.fetcher._session.requested) == len(loop.fetcher.partitions) and not loop.fetcher._to_begin
            for node in self.nodes
            for loop in node.server.broker.replica_manager.fetchers.values()
        )

    def partitions(self) -> Any:
        for name, _ in self.topics:
            topic = self.image().topics.by_name.get(name)
            if topic is not None:
                yield from topic.partitions.values()

    def leads(self, node_id: int) -> int:
        """How many partitions a node leads, in the eyes of the one that has read least."""
        return max(
            sum(
                each.leader == node_id
                for topic in node.image.topics.by_name.values()
                for each in topic.partitions.values()
            )
            for node in self.nodes
            if node.is_up and node.image is not None
        )

    def in_sync(self) -> bool:
        return all(len(each.isr) == len(each.replicas) and each.leader >= 0 for each in self.partitions())

    async def create(self) -> None:
        client = ClusterClient([node.address for node in self.nodes], "admin", random.Random(1))
        for name, count in self.topics:
            while True:
                try:
                    error = await create_topic(client, name, count, self.replicas)
                except LOST:
                    error = int(ErrorCode.NOT_CONTROLLER)
                if error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    break
                await asyncio.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.long_turns", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=4000)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--per-topic", type=int, default=250)
    args = parser.parse_args()
    gc.disable()
    turns = Turns()
    turns.install()
    growing = Growing(args.nodes, args.partitions, args.replicas, args.per_topic, turns)
    try:
        growing.world.play(growing.story())
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    for error in growing.history.errors + growing.world.errors:
        print("an error:", error)


if __name__ == "__main__":
    main()
