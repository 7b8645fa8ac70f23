"""A cluster and its clients: a run drawn from a seed and played to its end.

    clients work, faults begin and end ── the faults end ── everything must go on ─┬─────────────────────────────► clients stop
                                                                                   └ a lasting cut: writes go on ┘     │
                                                                                 everything is read and judged ◄──────┘

The cluster is three nodes that are both broker and controller, or a controller and three brokers, or a single node. Clients know all
addresses and find leaders and coordinators as real ones do. The history records what clients were told, and what the nodes believed: the
leaders and images that each has had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.partition_for import partition_for
from barnabas.simulation.broker_node import PORT
from barnabas.simulation.cluster_node import CLUSTER_ID
from barnabas.simulation.node import NodeDied
from barnabas.simulation.world import World, without_collections
from tests.simulation import end_watcher, offset_watcher, recreator
from tests.simulation.aging import AgingTopic
from tests.simulation.aimed_faults import UNCLEAN, AimedFaults
from tests.simulation.classic_member import CLASSIC_GROUP, ClassicMember
from tests.simulation.cluster_client import TIMEOUT_SECONDS, Address, ClusterClient
from tests.simulation.cluster_plan import ClusterPlan
from tests.simulation.creator import CREATED, Creator, create_topic
from tests.simulation.deliberate_bugs import BUGS as OF_ONE_BROKER
from tests.simulation.deliberate_bugs_of_clusters import BUGS as OF_CLUSTERS
from tests.simulation.deliberate_bugs_of_upgrades import BUGS as OF_UPGRADES
from tests.simulation.end_watcher import EndWatcher
from tests.simulation.far_reader import FarReader
from tests.simulation.final_reading import FinalReading
from tests.simulation.history import History, Partition
from tests.simulation.judged_node import JudgedNode
from tests.simulation.keyed import KeyedTopic
from tests.simulation.limited_producer import NAME as LIMITED
from tests.simulation.member import MEMBERS_GROUP, Member
from tests.simulation.mover import Mover
from tests.simulation.offset_watcher import OffsetWatcher
from tests.simulation.older_node import OLDER_ID, OlderNode, OlderPackage, plan_with
from tests.simulation.recreator import Recreator
from tests.simulation.registrar import Registrar
from tests.simulation.result import Result, played
from tests.simulation.risky import CarefulTopic, RiskyTopic
from tests.simulation.share_drain import ShareDrain, read_from_the_start
from tests.simulation.share_member import SHARE_GROUP, ShareMember
from tests.simulation.side_topic import SideTopic, View
from tests.simulation.straggler import Straggler
from tests.simulation.transactions import CommittedReader, Transactor
from tests.simulation.trimmer import Trimmer
from tests.simulation.tuning import TUNED, Tuning
from tests.simulation.voter_mover import VoterMover
from tests.simulation.wide_producer import WideProducer
from tests.simulation.workload import LOST, NOT_YET, Committer, Producer, Reader

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_TOPIC = "__transaction_state"
SHARE_TOPIC = "__share_group_state"
SECONDS = 600.0
"""Far more than any run takes, unless it hangs."""
BEGIN_SECONDS = 60.0
"""How long new nodes may take to find each other and to create topics."""
PROGRESS_SECONDS = 90.0
"""How long it may take until everything goes on after the faults: a session, an election, the longest pauses of clients, and the timeouts
of those that wait for them."""
WATCHERS = (end_watcher.WATCHER, offset_watcher.WATCHER)
WATCH_SECONDS = 1.0
"""How long a watcher waits for an answer. It then asks another broker, before other clients write to a new leader or coordinator."""
COMMIT_PATIENCE_SECONDS = 1.5
"""How long a group of a small world waits for the answer to a commit. Then it finds the coordinator again and sends the next commit."""
CUT_SECONDS = 3.0
"""How long to wait after a cut until everything sent before it is answered."""
OBSERVE_SECONDS = 0.1
READ_EVERY_SECONDS = 1.0
"""How often all committed records are read: seldom, because there are more each time."""


class SimulatedCluster:
    """The world of one run: the nodes, the clients, and what happens to them."""

    def __init__(self, plan: ClusterPlan, older: OlderPackage | None = None) -> None:
        self.plan, self._older = plan, older
        self.history = History()
        self.world = World(plan.seed)
        self.nodes = self._add_nodes()
        self.brokers = [node for node in self.nodes if node.is_broker]
        for node in self.nodes:
            node.slow_threads(plan.executor_seconds)
            node.format()
        self.clients = self.world.add_node("clients")
        self.partitions = [Partition("t", index) for index in range(plan.partitions)]
        self.transacted = [Partition("x", index) for index in range(2)]
        self._add_workers()
        self.faults = AimedFaults(
            self.world,
            self.nodes,
            self.history,
            kinds=plan.fault_kinds,
            every_seconds=plan.fault_every_seconds,
            longest_seconds=plan.longest_fault_seconds,
            are_in_sync=self.are_in_sync,
        )
        self.faults.aimed = plan.aimed
        wide = [partition for each in self.wide_producers for partition in each.partitions]
        of_sides = [partition for side in self.side_topics for partition in side.partitions]
        self.faults.written = [*self.partitions, *self.transacted, *wide, *of_sides]
        self.faults.risky = self.history.unclean.partitions
        count = plan.internal_partitions
        groups = [Partition(OFFSETS_TOPIC, partition_for(each.group, count)) for each in self.committers]
        of_members = {MEMBERS_GROUP: self.members, CLASSIC_GROUP: self.classic_members, SHARE_GROUP: self.share_members}
        named = [group for group, members in of_members.items() if members]
        groups += [Partition(OFFSETS_TOPIC, partition_for(each, count)) for each in named]
        ids = [Partition(TRANSACTION_TOPIC, partition_for(each.name, count)) for each in self.transactors]
        states = [Partition(SHARE_TOPIC, index) for index in range(count if self.share_members else 0)]
        self.faults.coordinated = list(dict.fromkeys([*groups, *ids, *states]))

    def _add_nodes(self) -> list[JudgedNode]:
        both: tuple[str, ...] = ("broker", "controller")
        roles = dict.fromkeys(range(1, self.plan.nodes + 1), both)
        if self.plan.has_own_controller:
            one: tuple[str, ...] = ("broker",)
            roles = {100: ("controller",), **dict.fromkeys(roles, one)}
        hosts = {node_id: f"127.0.0.{place}" for place, node_id in enumerate(roles, 1)}
        voters = [(each, hosts[each]) for each, of in roles.items() if "controller" in of]
        properties, moving = self.plan.properties(), self.plan.has_moving_voters
        settings = {each: {**properties, **self.plan.own(each)} for each in roles}
        nodes = []
        for each, of in roles.items():
            kind = partial(OlderNode, self._older) if self._older is not None and each == OLDER_ID else JudgedNode
            node = kind(self.world, each, hosts[each], of, voters, settings[each], has_moving_voters=moving)
            nodes.append(self.world.add(node))
        return nodes

    def _add_workers(self) -> None:
        plan, history, rng = self.plan, self.history, self.world.random
        self.producers = [
            Producer(f"p{n}", self.partitions[n % plan.partitions], history, rng(f"p{n}"), plan.pause_seconds)
            for n in range(plan.producers)
        ]
        self.committers = [
            Committer(f"g{n}", self.partitions[0], history, rng(f"g{n}"), plan.commit_seconds)
            for n in range(plan.committers)
        ]
        self.transactors = [
            Transactor(
                f"x{n}",
                n % 2 + 1,
                self.transacted,
                history,
                rng(f"x{n}"),
                plan.pause_seconds,
                do_clocks_jump="clock_jump" in plan.fault_kinds,
                are_nodes_cut_off=plan.cuts_nodes_off,
                coordinator_of=partial(self._coordinator_of, TRANSACTION_TOPIC),
                linger_seconds=plan.linger_seconds,
            )
            for n in range(plan.transactors)
        ]
        self._group_coordinator_of = partial(self._coordinator_of, OFFSETS_TOPIC)
        self.members = [
            Member(f"m{n}", ["t", "x"], history, rng(f"m{n}"), self._group_coordinator_of) for n in range(plan.members)
        ]
        self.classic_members = [
            ClassicMember(
                f"c{n}", [*self.partitions, *self.transacted], history, rng(f"c{n}"), self._group_coordinator_of
            )
            for n in range(plan.classic_members)
        ]
        self.share_members = [
            ShareMember(f"s{n}", "t", history, rng(f"s{n}"), self._leader_of) for n in range(plan.share_members)
        ]
        wide = plan.wide_partitions
        self.wide_producers = [WideProducer("w0", wide, plan.replicas, history, rng("w0"))] if wide else []
        self.trimmer = Trimmer(
            self.partitions,
            self.brokers,
            history,
            rng("trimmer"),
            newest=self._newest,
            leader_of=self._leader_of,
            are_in_sync=self.are_in_sync,
        )
        self.registrars = [
            Registrar(f"registrar {n}", history.topic_operations, rng(f"registrar {n}"), plan.replicas)
            for n in range(plan.registrars)
        ]
        self.tuning = (
            [Tuning(self.brokers, self.partitions[0], history, rng, plan.pause_seconds)] if plan.is_tuned else []
        )
        self.producers += [each.producer for each in self.tuning]
        self.creator = Creator(history, rng("creator"), plan.replicas, plan.create_every_seconds)
        view = View(self.brokers, self._newest, self._leader_of, self.clients.now_ms)
        self.side_topics: list[SideTopic] = []
        if plan.retention:
            aging = AgingTopic(plan.retention, history, view, rng, plan.pause_seconds)
            self.producers.append(aging.producer)
            self.side_topics.append(aging)
        if plan.compacts:
            self.side_topics.append(KeyedTopic(history, view, rng, plan.pause_seconds))
        if plan.aimed == UNCLEAN:
            careful = CarefulTopic(history, rng, plan.pause_seconds)
            self.producers += careful.producers
            self.side_topics += [RiskyTopic(history, view, rng, plan.pause_seconds), careful]

    def connect(self, client_id: str) -> ClusterClient:
        addresses = [node.address for node in self.brokers]
        return ClusterClient(addresses, client_id, self.world.random(f"client {client_id}"), self._patience(client_id))

    def _patience(self, client_id: str) -> float:
        """Return how many seconds a client waits for an answer."""
        if client_id in WATCHERS:
            return WATCH_SECONDS
        is_committer = client_id in (each.group for each in self.committers)
        return COMMIT_PATIENCE_SECONDS if is_committer and not self.plan.is_large else TIMEOUT_SECONDS

    # The story

    async def story(self) -> None:
        observing = asyncio.ensure_future(self._observe())
        for node in self.nodes:
            node.begin(self.history)
        try:
            await asyncio.wait_for(self.clients.run(self._create_topics()), BEGIN_SECONDS)
        except TimeoutError:
            self._stalled(f"{BEGIN_SECONDS:g} s after the start the topics are not created")
            return
        work = self.clients.run(self._work())
        disturbing = asyncio.ensure_future(self.faults.run())
        await asyncio.wait({work, disturbing}, timeout=self.plan.fault_seconds)
        disturbing.cancel()
        await self.faults.end()
        self.world.timeline.note("faults", "have ended")
        await self._await_progress(work)
        if self.plan.has_lasting_cut and not self.history.stalls:
            await self._go_on_despite_a_cut(work)
        self._check_workers(work)
        self.clients.kill("ends its work")
        self.clients.boot()
        # A broker that is behind does not know the newest topics.
        await self._await_last_moves()
        await self.clients.run(self._read_everything())
        await self._await_last_moves()
        self._read_replicas()
        if observing.done():
            observing.result()
        observing.cancel()
        for node in self.nodes if self.plan.stops_in_order else ():
            with suppress(NodeDied):  # The history has the fault that ended it.
                await node.stop()

    async def _observe(self) -> None:
        while True:
            for node in self.nodes:
                node.observe(self.history)
            self.trimmer.observe()
            for side in self.side_topics:
                side.observe()
            await asyncio.sleep(OBSERVE_SECONDS)

    async def _create_topics(self) -> None:
        client = self.connect("admin")
        for name, partitions in (("t", self.plan.partitions), ("x", len(self.transacted))):
            await self._create_topic(client, name, partitions)
        for side in self.side_topics:
            await self._create_topic(client, side.name, len(side.partitions), side.settings)
        if self.tuning:
            await self._create_topic(client, TUNED.topic, 1)
        while self.share_members:
            with suppress(*LOST):
                if await read_from_the_start(client):
                    return
            await asyncio.sleep(0.1)

    async def _create_topic(
        self, client: ClusterClient, name: str, partitions: int, settings: Mapping[str, str] | None = None
    ) -> None:
        while True:
            try:
                error = await create_topic(client, name, partitions, self.plan.replicas, settings)
            except LOST:
                error = int(ErrorCode.NOT_CONTROLLER)
            if error in CREATED:
                return
            if error not in NOT_YET and error != ErrorCode.INVALID_REPLICATION_FACTOR:
                raise AssertionError(f"the topic could not be created: {ErrorCode(error).name}")
            await asyncio.sleep(0.1)

    async def _work(self) -> None:
        """Run in the clients' process."""
        workers: list[Any] = [
            *self.producers,
            *self.committers,
            *self.transactors,
            *self.members,
            *self.classic_members,
            *self.share_members,
            *self.registrars,
            *self.wide_producers,
            self.creator,
        ]
        workers += [worker for side in self.side_topics for worker in side.workers()]
        workers += [worker for each in self.tuning for worker in each.workers()]
        if not self.plan.forgets:
            workers += [Reader(partition, self.history) for partition in self.partitions]
            watched = [*self.partitions, *(partition for side in self.side_topics for partition in side.watched)]
            workers.append(EndWatcher(watched, self.history, self.plan.watch_seconds))
        if self.plan.has_racks:
            rng, addresses = self.world.random(FarReader.name), {node.node_id: node.address for node in self.brokers}
            workers.append(FarReader(self.partitions, addresses, self.history, rng, self._leader_of, self._committed))
        if self.plan.has_recreator:
            workers.append(Recreator(self.history, self.world.random("recreator"), self.plan.replicas))
        if self.plan.has_trimmer:
            workers.append(self.trimmer)
        if self.plan.has_mover:
            workers.append(self._mover())
        if self.plan.has_moving_voters:
            workers.append(VoterMover(CLUSTER_ID, self.history, self.world.random("mover of voters")))
        workers.append(
            OffsetWatcher(self.committers, self.history, self._group_coordinator_of, self.plan.watch_seconds)
        )
        if self.members or self.classic_members:
            workers.append(Straggler(self.history, self.world.random("straggler")))
        if self.transactors:
            workers.append(CommittedReader(self.transacted, self.history, READ_EVERY_SECONDS))
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(worker.run(self.connect, loop) for worker in workers))

    def _coordinator_of(self, topic: str, key: str) -> tuple[Address, int] | None:
        """Return the broker that leads a key's partition of a coordinator's topic in its newest epoch and knows it, and this epoch."""
        return self._leader_of(Partition(topic, partition_for(key, self.plan.internal_partitions)))

    def _committed(self, partition: Partition) -> int | None:
        """Return the highest high watermark that a broker knows; None while one of them does not say."""
        known = [node.high_watermark(partition) for node in self.brokers]
        return None if None in known else max(each or 0 for each in known)

    def _newest(self, partition: Partition) -> PartitionRegistration | None:
        known = (node.registration(partition) for node in self.brokers)
        newest = (found for found in known if found is not None)
        return max(newest, key=lambda found: (found.leader_epoch, found.partition_epoch), default=None)

    def _leader_of(self, partition: Partition) -> tuple[Address, int] | None:
        """Return the broker that leads a partition in its newest epoch and knows it, and this epoch."""
        known = {node: found for node in self.brokers if (found := node.registration(partition)) is not None}
        newest = max(known.values(), key=lambda found: found.leader_epoch, default=None)
        for node, found in known.items():
            if newest is not None and node.node_id == newest.leader and found.leader_epoch == newest.leader_epoch:
                return node.address, newest.leader_epoch
        return None

    def _mover(self) -> Mover:
        least = self.plan.replicas - 1
        brokers = [node.node_id for node in self.brokers]
        moved = [*self.partitions, *self.transacted]
        return Mover(moved, brokers, (least, len(brokers)), self.history, self.world.random("mover"))

    def _check_workers(self, work: asyncio.Future[None]) -> None:
        if work.done():
            work.result()  # Workers only end by an assertion of theirs.

    # When the faults have ended

    async def _await_progress(self, work: asyncio.Future[None]) -> None:
        """Wait until each worker has got further and every replica is in sync; write down what does not."""
        wanted = self._further(self._counts())
        wanted["not every replica is in sync"] = self.are_in_sync
        wanted["not every controller is a voter"] = self._are_all_voters
        await self._await_all(wanted, "after the faults", work)

    def _further(self, names: Iterable[str]) -> dict[str, Callable[[], bool]]:
        """Return, by what is said if not, whether each worker has got further than it is now."""
        return {
            f"{name} gets no further than {count}": partial(self._is_beyond, name, count)
            for name, count in self._counts().items()
            if name in names
        }

    def _is_beyond(self, name: str, count: int) -> bool:
        return self._counts()[name] > count

    async def _await_all(self, wanted: dict[str, Callable[[], bool]], since: str, work: asyncio.Future[None]) -> None:
        deadline = self.world.loop.time() + PROGRESS_SECONDS
        while wanted and not work.done():
            wanted = {what: is_so for what, is_so in wanted.items() if not is_so()}
            if self.world.loop.time() > deadline:
                self._stalled(*(f"{PROGRESS_SECONDS:g} s {since} {what}" for what in wanted))
                return
            await asyncio.sleep(0.25)

    async def _go_on_despite_a_cut(self, work: asyncio.Future[None]) -> None:
        """Cut the way from one broker to another for good: writes must go on without it, and everything goes on when the way heals.

        The controller hears everybody. Transactions may stand still: their coordinator may have to reach just this broker.
        """
        source, target = self.world.random("lasting cut").sample(self.brokers, 2)
        self.world.network.cut(source.host, target.host, PORT)
        await asyncio.sleep(CUT_SECONDS)
        names = [*(each.name for each in self.producers), *(each.group for each in self.committers)]
        await self._await_all(self._further(names), "after a cut of one way", work)
        self.world.network.heal(source.host, target.host, PORT)
        await self._await_progress(work)

    def _stalled(self, *what: str) -> None:
        """Write down what does not go on, with the state of each node."""
        self.history.stalls += what
        for node in self.nodes:
            state = repr(node.server) if node.serves else "not started" if node.is_up else "down"
            self.history.stalls.append(f"{node.name}: {state}")

    def _counts(self) -> dict[str, int]:
        history = self.history
        found = (
            {each.name: 0 for each in self.producers}
            | {each.name: 0 for each in self.wide_producers}
            | {each.name: 0 for each in self.transactors}
        )
        found |= {each.group: 0 for each in self.committers}
        members: list[Any] = [*self.members, *self.classic_members, *self.share_members]
        found |= {each.name: history.heartbeats[each.name] for each in members}
        for batch in history.batches:
            found[batch.producer] += batch.acknowledged_at is not None
        for transaction in history.transactions:
            found[transaction.producer] += transaction.acknowledged
        for commit in history.commits:
            found[commit.group] += commit.acknowledged
        for side in self.side_topics:
            found |= side.counts()
        for tuning in self.tuning:
            found |= tuning.counts()
        found["the creator of topics"] = len(history.created_topics)
        if self.share_members:
            found["the share group"] = len(history.shared.finished)
        if self.plan.has_mover:
            found[Mover.name] = history.moves
        if self.plan.has_moving_voters:
            found[VoterMover.name] = history.removed_voters
        if self.plan.has_recreator:
            found[Recreator.name] = len(history.deleted_ids)
        return found

    def are_in_sync(self) -> bool:
        """Whether every node runs, all have the same metadata, and every replica of every partition is in sync."""
        images = [node.image if node.serves else None for node in self.nodes]
        if len({None if image is None else image.provenance.offset for image in images}) > 1:
            return False
        for image in images:
            if image is None or not image.topics.by_name:
                return False
            for topic in image.topics.by_name.values():
                for each in topic.partitions.values():
                    is_moving = each.adding_replicas or each.removing_replicas
                    if each.leader < 0 or is_moving or set(each.isr) != set(each.replicas):
                        return False
        return True

    def _are_all_voters(self) -> bool:
        """Return whether every controller knows all controllers for voters."""
        controllers = [node for node in self.nodes if node.is_controller]
        ids = {node.node_id for node in controllers}
        return all(node.image is not None and set(node.raft.voters.ids()) == ids for node in controllers)

    # The end

    async def _read_everything(self) -> None:
        reading = FinalReading(self.connect("final"), self.history)
        wide = [partition for each in self.wide_producers for partition in each.partitions]
        await reading.read([*self.partitions, *wide], self.committers, self.transactors, self.transacted)
        if self.plan.has_recreator:
            await reading.read_recreated(recreator.PARTITION)
        for side in self.side_topics:
            await side.read_at_the_end(self.connect("final"))
        for tuning in self.tuning:
            await tuning.read_at_the_end(self.connect(LIMITED))
        for registrar in self.registrars[:1]:
            await registrar.read_at_the_end(self.connect("final"))
        if self.share_members:
            drain = ShareDrain(self.connect("drain"), self.history, self.world.random("drain"), self._leader_of)
            await drain.read(self.partitions)

    async def _await_last_moves(self) -> None:
        """Wait until every replica is in sync, because the movers may have asked for changes just before they ended."""
        deadline = self.world.loop.time() + PROGRESS_SECONDS
        while not self.history.stalls and not self.are_in_sync():
            if self.world.loop.time() > deadline:
                self._stalled(f"{PROGRESS_SECONDS:g} s after the clients' work not every replica is in sync")
                return
            await asyncio.sleep(0.25)

    def _read_replicas(self) -> None:
        """Read the replicas of the topics that nobody compacts, from the nodes' disks, from where nobody has asked to delete them.

        A leader may have deleted records before it lost its leadership, and its followers not: nobody was promised that they are gone.
        """
        for partition in self.history.final_bounds:
            image = self.brokers[0].image
            topic = image.topics.by_name.get(partition.topic) if image is not None else None
            if topic is None:
                continue
            replicas = [node for node in self.brokers if node.node_id in topic.partitions[partition.index].replicas]
            start, end = self.history.final_bounds[partition]
            starts = [log.log_start_offset for node in replicas if (log := node.log(partition)) is not None]
            start = max([start, *starts]) if partition in self.history.retention.partitions else start
            bounds = max(start, min(end, self.history.trims_asked.get(partition, 0))), end
            self.history.final_replicas[partition] = {node.name: node.batches(partition, *bounds) for node in replicas}


def run(seed: int, bug: str | None = None, *, nodes: int = 3, older: OlderPackage | None = None) -> Result:
    """Play one seed, with one deliberate bug switched on if named, and judge it.

    Args:
        older: what one of the nodes runs in place of the present barnabas.
    """
    with ExitStack() as stack:
        stack.enter_context(without_collections())
        if bug is not None:
            of_cluster = OF_CLUSTERS.get(bug) or OF_UPGRADES.get(bug)
            stack.enter_context(OF_ONE_BROKER[bug]() if of_cluster is None else of_cluster.switch())
        drawn = ClusterPlan.draw(seed, nodes)
        cluster = SimulatedCluster(drawn if older is None else plan_with(drawn), older)
        plan = cluster.plan
        faults = ", ".join([*([plan.aimed] if plan.aimed else []), *plan.fault_kinds])
        return played(
            plan,
            cluster.world,
            cluster.story(),
            cluster.history,
            seconds=SECONDS,
            met=lambda: faults,
            may_forget_producers=plan.forgets,
        )
