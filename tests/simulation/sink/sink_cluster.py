"""The world of one run: nodes, queries that write to them through the sink, and what happens to both.

queries run, drivers, workers and nodes suffer ── all faults end, zombies go on ── the queries finish ── one more batch of each
── everything is read and judged
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

from barnabas.client import producer
from barnabas.simulation.node import EPOCH_MS
from barnabas.simulation.world import World, without_collections
from barnabas.spark.sink import decisions
from barnabas.spark.sink.decision_topic import TOPIC
from tests.simulation.aimed_faults import MOMENT_SECONDS, AimedFaults
from tests.simulation.cluster import BEGIN_SECONDS, SECONDS, TRANSACTION_TOPIC, SimulatedCluster
from tests.simulation.deliberate_bugs import replaced
from tests.simulation.history import Partition
from tests.simulation.judged_node import JudgedNode
from tests.simulation.result import Result, played
from tests.simulation.sink import checks
from tests.simulation.sink.deliberate_bugs_of_the_sink import BUGS
from tests.simulation.sink.plan import KILLS, SinkPlan
from tests.simulation.sink.process import Process, ProcessFault
from tests.simulation.sink.query import Query
from tests.simulation.sink.reading import read_everything
from tests.simulation.sink.sink_history import SinkHistory

FINISH_SECONDS = 240.0
"""How long everything may take after the faults."""
DECIDE_SECONDS = 10.0
"""How long a driver has for some batches, while one node is cut off."""
SINK = Partition(TOPIC, 0)


class SinkFaults(AimedFaults):
    """Disturbs the nodes of a cluster.

    Attributes:
        queries: whose drivers meet a deposed leader.
    """

    queries: list[Query]

    async def depose(self) -> None:
        """Cut the leader of the decisions off from the other nodes, but not from clients.

        A driver decides a batch at the next leader, and dies. Its successor asks the deposed one, which knows nothing of all this.
        """
        aim = self._pick([SINK])
        if aim is None:
            return
        others = [each.host for each in self.nodes if each is not aim.leader]
        self._world.network.part([aim.leader.host], others)
        if await self._until(lambda: not self._leads_by_others(aim.leader.node_id), MOMENT_SECONDS):
            self.queries[0].history.counts["deposed leaders"] += 1
            await asyncio.gather(*(self._repeat_elsewhere(query, aim.leader) for query in self.queries))
        self._heal()

    async def _repeat_elsewhere(self, query: Query, deposed: JudgedNode) -> None:
        query.last_address = "{}:{}".format(*deposed.address)
        driver = query.driver
        driver.process.aim(self._rng.choice(KILLS), "EndTxn", self._rng.randrange(4))
        if await self._until(lambda: not driver.process.is_up, DECIDE_SECONDS):
            query.first_address = query.last_address
            await asyncio.sleep(self._rng.choice((4.0, 8.0)))
        query.first_address = query.last_address = None

    def _leads_by_others(self, node_id: int) -> bool:
        known = self._image().topics.by_name.get(SINK.topic)
        return known is None or known.partitions[SINK.index].leader == node_id


@dataclass
class SinkResult(Result):
    """One run and its judgement."""

    sink: SinkHistory = field(default_factory=SinkHistory)

    def counts(self) -> Counter[str]:
        return self.sink.counts + Counter({"crashes": len(self.history.crashes)})

    def summary(self) -> str:
        outcome = "clean" if self.passed else f"VIOLATED {', '.join(self.violations)}"
        counts = ", ".join(f"{count} {what}" for what, count in sorted(self.sink.counts.items()))
        return f"seed {self.plan.seed}: {outcome}; {self.met}; {counts}"


class SinkCluster(SimulatedCluster):
    """The world of one run."""

    plan: SinkPlan

    def __init__(self, plan: SinkPlan) -> None:
        super().__init__(plan)
        self.sink = SinkHistory()
        addresses = ["{}:{}".format(*node.address) for node in self.brokers]
        self.queries = [Query(self.world, plan, number, addresses, self.sink) for number in range(len(plan.names))]
        self.reader = Process(self.world, "reader")
        self.faults: SinkFaults = SinkFaults(
            self.world,
            self.nodes,
            self.history,
            kinds=plan.fault_kinds,
            every_seconds=plan.fault_every_seconds,
            longest_seconds=plan.longest_fault_seconds,
            are_in_sync=self.are_in_sync,
        )
        self.faults.queries = self.queries
        self.faults.aimed = plan.aimed
        self.faults.coordinated = [Partition(TRANSACTION_TOPIC, each) for each in range(plan.internal_partitions)]

    async def story(self) -> None:
        observing = asyncio.ensure_future(self._observe())
        for node in self.nodes:
            node.begin(self.history)
        try:
            await asyncio.wait_for(self.clients.run(self._create_topics()), BEGIN_SECONDS)
        except TimeoutError:
            self._stalled(f"{BEGIN_SECONDS:g} s after the start the topics are not created")
            return
        lives = {asyncio.ensure_future(query.live()) for query in self.queries}
        disturbing = asyncio.ensure_future(self.faults.run())
        await asyncio.wait(lives, timeout=self.plan.fault_seconds)
        disturbing.cancel()
        await self.faults.end()
        self.world.timeline.note("faults", "have ended")
        for query in self.queries:
            query.calm_down()
        await self._finish(lives)
        if not self.history.stalls:
            await self._read()
        observing.cancel()

    async def _create_topics(self) -> None:
        client = self.connect("admin")
        for query in self.queries:
            await self._create_topic(client, query.topic, self.plan.partitions)

    async def _finish(self, lives: set[asyncio.Task[None]]) -> None:
        """Wait until all is written and zombies are done, then write one batch more, which ends what these left open."""
        deadline = self.world.loop.time() + FINISH_SECONDS
        await self._until_done(lives, deadline)
        while not self.history.stalls and not all(each.are_zombies_done for each in self.queries):
            if self.world.loop.time() > deadline:
                self._stalled("drivers or tasks do not end")
            await asyncio.sleep(0.25)
        await self._await_last_moves()
        if not self.history.stalls:
            for query in self.queries:
                query.look_at_zombies()
                query.available += self.plan.last_rows
            await self._until_done({asyncio.ensure_future(query.live()) for query in self.queries}, deadline)

    async def _until_done(self, lives: set[asyncio.Task[None]], deadline: float) -> None:
        done, still = await asyncio.wait(lives, timeout=deadline - self.world.loop.time())
        for each in done:
            each.result()
        if still or not all(query.has_written_all for query in self.queries):
            self._stalled(
                f"{FINISH_SECONDS:g} s after the faults, or after too many errors, not all is written: {self.queries}"
            )

    async def _read(self) -> None:
        for query in self.queries:
            query.write_down()
        reader = self.reader
        cluster = reader.cluster(self.queries[0].bootstrap(), "reader", 5_000)
        topics, sinks = [each.topic for each in self.queries], [each.sink for each in self.queries]
        await reader.node.run(reader.call(lambda: read_everything(cluster, topics, sinks, self.sink)))

    def unwind(self) -> None:
        """End the threads of all processes, when the world has ended."""
        for query in self.queries:
            for process in query.processes:
                process.unwind()
        self.reader.unwind()


@contextmanager
def _simulated(world: World, queued_bytes: int) -> Iterator[None]:
    """Give the sink's modules the world's clock where they have no seam for it, and let tasks send small requests."""
    clock = SimpleNamespace(time_ns=lambda: EPOCH_MS * 1_000_000 + int(world.loop.time() * 1e9))
    with replaced(decisions, "time", clock), replaced(producer, "_MAX_QUEUED_BYTES", queued_bytes):
        yield


def run(seed: int, bug: str | None = None, *, nodes: int = 3) -> SinkResult:
    """Play one seed, with one deliberate bug switched on if named, and judge it."""
    return play(SinkPlan.of(seed, nodes), bug)


def play(plan: SinkPlan, bug: str | None = None, *, first_faults: Sequence[ProcessFault] = ()) -> SinkResult:
    """Play a plan and judge it.

    Args:
        first_faults: of the first drivers of each query, in place of those that the plan draws.
    """
    with ExitStack() as stack:
        stack.enter_context(without_collections())
        if bug is not None:
            stack.enter_context(BUGS[bug].switch())
        cluster = SinkCluster(plan)
        for query in cluster.queries:
            query.first_faults += first_faults
        stack.enter_context(_simulated(cluster.world, plan.queued_bytes))
        met = ", ".join([plan.scenario, *([plan.aimed] if plan.aimed else []), *plan.fault_kinds])
        try:
            result = played(plan, cluster.world, cluster.story(), cluster.history, seconds=SECONDS, met=lambda: met)
        finally:
            cluster.unwind()
        checks.count(cluster.sink)
        found = {name: each for name, check in checks.ALL.items() if (each := check(cluster.sink))}
        return SinkResult(plan, result.history, result.timeline, met, {**result.violations, **found}, cluster.sink)
