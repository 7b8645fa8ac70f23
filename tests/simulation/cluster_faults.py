"""The faults of a cluster, drawn from a seed, one after the other and several at a time.

They stay within what three replicas with min.insync.replicas=2 promise to survive:

- A node may be killed, stopped, paused or cut off at any time, and others with it: the cluster may stand still, but loses nothing. What a
  killed process wrote is in the page cache of its system, so its disk gets all of it; only the write that it died in is torn.
- A node whose disk is full, or fails, may stop. It counts as killed, and is started again on a disk that works. If it does not stop when
  its disk fails, its operator restarts it: a log whose sync has failed takes no writes until then.
- A node loses its power, and with it what its disk had not synced, only if no other node has forgotten something since every replica was
  in sync. Kafka does not sync before it acknowledges; a second disk that forgets would break its promise. The others may be killed, cut
  off, paused or behind: a killed process is not a machine without power, and the broker that returns says so (`running_file`).
- A node loses its whole disk only while every replica is in sync and every node has the same metadata, because a voter loses its vote
  with its disk. A sole controller keeps its disk: nobody else has the metadata.
- A node with several directories loses one of them under the same conditions as its whole disk.
- A node whose disk fails counts as one that forgets: after a failed sync it claims nothing, and leaves the in-sync replicas when it
  restarts. If all brokers but one that has forgotten left them, that one would lead, and records would be lost, as in Apache Kafka, where
  every kill has this effect.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING

from barnabas.protocol.errors import KafkaError
from barnabas.simulation.node import NodeDied
from barnabas.simulation.world_loop import Crash
from tests.simulation.failed_directory import FailedDirectory
from tests.simulation.history import History
from tests.simulation.judged_node import JudgedNode

if TYPE_CHECKING:
    from barnabas.simulation.world import World

STOP_SECONDS = 60.0
"""More than a clean stop takes."""
EMPTY_RATE = 0.7
"""How many of the directories that failed are replaced by an empty one; the others return as they were."""
FARTHEST_CLOCK_SECONDS = 3_000.0
"""How far a wall clock may be off."""


class Faults:
    """Disturbs the nodes of a cluster.

    Args:
        kinds: the names of the faults that happen, methods of this class.
        every_seconds: the mean time from one to the next.
        longest_seconds: of most faults; longer than a session, so that some brokers are fenced, and some are not.
        are_in_sync: returns whether every node knows that every replica is in sync.
    """

    def __init__(
        self,
        world: World,
        nodes: Sequence[JudgedNode],
        history: History,
        *,
        kinds: Sequence[str],
        every_seconds: float,
        longest_seconds: float,
        are_in_sync: Callable[[], bool],
    ) -> None:
        self._world, self.nodes, self._history = world, nodes, history
        self._kinds, self._every_seconds, self._are_in_sync = kinds, every_seconds, are_in_sync
        self._longest_seconds = longest_seconds
        self._rng = world.random("faults")
        # Dictionaries, because their order is the same in every run of a seed.
        self._under_way: dict[asyncio.Task[None], None] = {}
        self._stopping: dict[asyncio.Task[None], None] = {}
        # The last node whose disk has forgotten something, until every replica is in sync again.
        self._forgetful: JudgedNode | None = None

    async def run(self) -> None:
        """Let one fault begin after the other until cancelled."""
        while True:
            await asyncio.sleep(self._rng.expovariate(1 / self._every_seconds))
            fault: Callable[[random.Random], Coroutine[None, None, None]] = getattr(
                self, self._rng.choice(list(self._kinds))
            )
            task = asyncio.ensure_future(fault(self._rng))
            self._under_way[task] = None
            task.add_done_callback(self._under_way.pop)

    async def end(self) -> None:
        """End every fault: all ways are open, all disks are quick, every node runs."""
        for task in list(self._under_way):
            task.cancel()
        await asyncio.sleep(0)
        self._world.network.heal_all()
        for node in self.nodes:
            node.disk.duration = lambda call, path: 0.0
            node.disk.end_in_write = None
            if node.broken:
                node.mend_directory(is_empty=True)
            if node.disk.error_rate:
                node.kill("is restarted because of its disk")
            node.mend_disk()
            node.slow_threads(0.0)
            if node.loop.is_paused:
                node.go_on()
        if self._stopping:
            await asyncio.wait(self._stopping, timeout=STOP_SECONDS)
        self._history.stalls += [f"{task.get_name()} does not stop" for task in self._stopping]
        for node in self.nodes:
            if not node.is_up:
                node.begin(self._history)

    def _node(self, rng: random.Random) -> JudgedNode | None:
        """Return a node that runs; None if the one that was picked does not."""
        node = rng.choice(list(self.nodes))
        return node if node.serves and not node.loop.is_paused else None

    def _may_forget(self, node: JudgedNode) -> bool:
        """Return whether a node may now lose what its disk has not synced."""
        if self._forgetful is not None and self._are_in_sync():
            self._forgetful = None
        is_another_dying = any(each.is_dying for each in self.nodes)
        return node.serves and not is_another_dying and self._forgetful in (None, node)

    def _cut_power(self, node: JudgedNode) -> None:
        """Take a node's power, and with it what its disk has not synced; `_may_forget` says whether it may."""
        self._forgetful = node
        node.lose_power()
        self._history.crashes.append(f"power cut of {node.name}")

    def _seconds(self, rng: random.Random) -> float:
        return rng.choice((0.3, min(2.0, self._longest_seconds / 3), self._longest_seconds)) * rng.random()

    async def _stay_down(self, node: JudgedNode, rng: random.Random) -> None:
        await asyncio.sleep(0.05 + self._seconds(rng))
        if not node.is_up:
            node.begin(self._history)

    # Faults

    async def kill(self, rng: random.Random) -> None:
        node = self._node(rng)
        if node is not None:
            node.kill()
            self._history.crashes.append(f"kill of {node.name}")
            await self._stay_down(node, rng)

    async def kill_in_write(self, rng: random.Random) -> None:
        """Kill a node in the middle of its next write, which is torn."""
        node = self._node(rng)
        if node is not None:
            node.disk.end_in_write = Crash
            self._history.crashes.append(f"kill of {node.name} in a write")
            try:
                while node.is_up:
                    await asyncio.sleep(0.05)
            finally:
                node.disk.end_in_write = None
            await self._stay_down(node, rng)

    async def lose_power(self, rng: random.Random) -> None:
        node = self._node(rng)
        if node is not None and self._may_forget(node):
            self._cut_power(node)
            await self._stay_down(node, rng)

    async def wipe(self, rng: random.Random) -> None:
        """Kill a node, and let it return with an empty disk."""
        node = self._node(rng)
        if node is not None and node.is_broker and self._may_forget(node) and self._are_in_sync():
            self._forgetful = node
            node.kill()
            node.wipe()
            self._history.crashes.append(f"lost disk of {node.name}")
            await self._stay_down(node, rng)

    async def stop(self, rng: random.Random) -> None:
        """Stop a node cleanly, as an upgrade does."""
        node = self._node(rng)
        if node is not None:
            node.note("is asked to stop")
            task = asyncio.ensure_future(self._stop(node))
            task.set_name(node.name)
            self._stopping[task] = None
            task.add_done_callback(self._stopping.pop)
            await asyncio.wait({task})
            await self._stay_down(node, rng)

    async def _stop(self, node: JudgedNode) -> None:
        # It may die before it has stopped.
        with contextlib.suppress(NodeDied):
            try:
                await node.stop()
            except (OSError, KafkaError):
                if not node.has_bad_disk:
                    raise
                node.kill("cannot stop in order")

    async def pause(self, rng: random.Random) -> None:
        node = self._node(rng)
        if node is not None:
            node.pause()
            await asyncio.sleep(self._seconds(rng))
            if node.is_up and node.loop.is_paused:
                node.go_on()

    async def cut(self, rng: random.Random) -> None:
        """Cut one direction between two nodes, and leave the other open."""
        source, target = rng.sample(list(self.nodes), 2)
        self._world.network.cut(source.host, target.host)
        await asyncio.sleep(self._seconds(rng))
        self._world.network.heal(source.host, target.host)

    async def isolate(self, rng: random.Random) -> None:
        """Cut one node off from all other nodes; clients still reach it."""
        node = rng.choice(list(self.nodes))
        others = [other for other in self.nodes if other is not node]
        self._world.network.part([node.host], [other.host for other in others])
        await asyncio.sleep(self._seconds(rng))
        for other in others:
            self._world.network.heal(node.host, other.host)
            self._world.network.heal(other.host, node.host)

    async def slow_way(self, rng: random.Random) -> None:
        source, target = rng.sample(list(self.nodes), 2)
        self._world.network.slow_down(source.host, target.host, rng.choice((0.1, 0.5, 2.0)))
        await asyncio.sleep(self._seconds(rng))
        self._world.network.slow_down(source.host, target.host, 0.0)

    async def slow_disk(self, rng: random.Random) -> None:
        node = rng.choice(list(self.nodes))
        seconds = rng.choice((0.01, 0.1, 1.0))
        node.note(f"its disk takes {seconds:g} s to sync")
        node.disk.duration = lambda call, path: seconds if call.startswith("sync") else 0.0
        await asyncio.sleep(self._seconds(rng))
        node.disk.duration = lambda call, path: 0.0

    async def full_disk(self, rng: random.Random) -> None:
        """Leave a node's disk only a few free bytes, for a while."""
        node = self._node(rng)
        if node is not None:
            free = rng.choice((0, 300, 5000))
            node.note(f"its disk has {free} bytes left")
            node.disk.capacity = node.disk.used + free
            await self._with_bad_disk(node, rng)

    async def failing_disk(self, rng: random.Random) -> None:
        """Let some of a node's calls to its disk fail for a while."""
        node = self._node(rng)
        if node is not None and self._may_forget(node):
            self._forgetful = node
            node.note("its disk fails now and then")
            node.disk.error_rate = rng.choice((0.003, 0.05, 1.0))
            await self._with_bad_disk(node, rng, must_restart=True)

    async def fail_directory(self, rng: random.Random) -> None:
        """Let one of a node's directories fail, and judge what follows; later its operator restarts the node, mostly with an empty one."""
        node = self._node(rng)
        if node is not None and node.is_broker and self._may_forget(node) and self._are_in_sync():
            self._forgetful = node
            self._history.crashes.append(f"failed directory of {node.name}")
            await FailedDirectory(node, self.nodes, self._history, rng).judge()
            await asyncio.sleep(self._seconds(rng))
            node.mend_directory(is_empty=rng.random() < EMPTY_RATE)
            await self._stay_down(node, rng)

    async def replace_directory(self, rng: random.Random) -> None:
        """Kill a node, and let it return with one empty directory."""
        node = self._node(rng)
        if node is not None and node.is_broker and self._may_forget(node) and self._are_in_sync():
            self._forgetful = node
            self._history.crashes.append(f"lost directory of {node.name}")
            node.kill()
            node.replace_directory(rng.choice(node.config.log_dirs))
            await self._stay_down(node, rng)

    async def short_writes(self, rng: random.Random) -> None:
        """Let a node's disk take only a part of many writes."""
        node = self._node(rng)
        if node is not None:
            node.note("its disk takes a part of each write")
            node.disk.short_write_rate = 0.3
            await asyncio.sleep(self._seconds(rng))
            node.disk.short_write_rate = 0.0

    async def _with_bad_disk(self, node: JudgedNode, rng: random.Random, *, must_restart: bool = False) -> None:
        node.has_bad_disk = True
        await asyncio.sleep(self._seconds(rng))
        if must_restart:
            node.kill("is restarted because of its disk")
        node.mend_disk()
        await asyncio.sleep(0.1)
        if not node.is_up:
            self._history.crashes.append(f"stop of {node.name} with a bad disk")
            await self._stay_down(node, rng)

    async def reset(self, rng: random.Random) -> None:
        """Break one connection, of clients or between nodes."""
        self._world.network.reset_one()

    async def clock_jump(self, rng: random.Random) -> None:
        node = self._node(rng)
        if node is not None:
            jump = rng.choice((-1, 1)) * rng.choice((0.5, 10.0, 1000.0))
            # A broker whose clock is an hour behind rejects what clients write (message.timestamp.after.max.ms), as it should.
            if abs(node.clock_jumped_ms / 1000 + jump) <= FARTHEST_CLOCK_SECONDS:
                node.set_clock(jump)


KINDS = (
    "kill",
    "kill_in_write",
    "lose_power",
    "wipe",
    "stop",
    "pause",
    "cut",
    "isolate",
    "slow_way",
    "slow_disk",
    "reset",
    "clock_jump",
    "full_disk",
    "failing_disk",
    "short_writes",
)
OF_DIRECTORIES = ("fail_directory", "fail_directory", "replace_directory")
"""The faults of nodes with several `log.dirs`; one of them twice as often."""
OF_SEVERAL = frozenset({"cut", "isolate", "slow_way", "lose_power", "wipe"})
"""The faults that need two nodes, or a second copy of what one node forgets."""
