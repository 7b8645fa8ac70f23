"""Faults that are each aimed at one weak moment: they watch the cluster, wait for the moment, and strike.

Chance alone seldom meets these moments, which last a few milliseconds, or need two or three faults in the right order. Each fault here
takes some seconds, begins when every replica is in sync, and stays within the promise of `cluster_faults`: no two nodes forget. Only
where `flush.messages` is 1 or `barnabas.flush.before.ack` is on, so that an acknowledged record is on a disk, all of them may; and all
but one, where all of them return. In a black-out all forget, and nobody judges what is left of the records.

| fault | the moment |
|---|---|
| `kill_at_join` | a follower has just joined the ISR over a slow way, and the leader dies |
| `leave_leader_alone` | the leader has only itself in the ISR, below min.insync.replicas, and dies |
| `cut_leader_from_controller` | a follower lags, and the leader cannot tell the controller, which elects just this follower |
| `crash_voter` | a voter has voted and crashes; another candidate stands in the same epoch |
| `move_coordinator_twice` | a coordinator's successor has records that are not committed, and dies before they are |
| `forget_in_short_isr` | of the last two in the ISR one loses its power, restarts, and the other is cut off |
| `move_coordinator_back` | a coordinator is cut off, another one works on, and the first one leads again |
| `kill_leader_with_a_new_end` | clients know an end that no follower knows to be committed, and the leader dies |
| `leave_controller_alone` | what the controller writes reaches no other voter, and these elect another one |
| `kill_the_others` | one replica loses its power, and the others are killed before their session ends |
| `cut_all_power` | all machines lose their power at once; `flush.messages` is 1, or with an odd seed `barnabas.flush.before.ack` is on |
| `spare_one_disk` | all machines lose their power together, and only one disk has all that was written to it |
| `kill_leader_in_transactions` | clients are silent for seconds in open transactions, and the leader dies that has their records |
| `elect_uncleanly` | a leader has written alone, and dies; only with `unclean.leader.election.enable` another one leads, without that |
| `black_out` | all machines lose their power at once, and no setting has kept anything: only that all goes on is promised |

They see all nodes at once, as no real observer can, but only to choose the moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.simulation.broker_node import PORT
from barnabas.simulation.cluster_node import CONTROLLER_PORT
from barnabas.simulation.node import Node
from tests.simulation.cluster_faults import Faults
from tests.simulation.end_watcher import WATCHER
from tests.simulation.history import Partition
from tests.simulation.judged_node import JudgedNode

POLL_SECONDS = 0.02
SETTLE_SECONDS = 20.0
"""Within which every replica is in sync again, mostly."""
MOMENT_SECONDS = 20.0
"""How long a fault waits for its moment: longer than the longest session, lag time and election together."""


class Aim(NamedTuple):
    """A partition and its three replicas.

    Attributes:
        next: the follower that the controller elects when the leader is gone.
        last: the other one.
    """

    topic: str
    index: int  # type: ignore[assignment]  # nobody looks for a place in the tuple
    leader: JudgedNode
    next: JudgedNode
    last: JudgedNode


class AimedFaults(Faults):
    """Disturbs the nodes of a cluster.

    Attributes:
        aimed: the name of the fault that happens over and over, None for none.
        written: the partitions that clients write to.
        risky: those that may elect a leader which lacks records.
        coordinated: the partitions of internal topics that hold the clients' groups and transactional ids.
    """

    aimed: str | None = None
    written: Sequence[Partition] = ()
    coordinated: Sequence[Partition] = ()
    risky: Sequence[Partition] = ()

    async def run(self) -> None:
        if self.aimed is not None:
            aiming = asyncio.ensure_future(self._aim())
            self._under_way[aiming] = None
            aiming.add_done_callback(self._under_way.pop)
        if self._kinds:
            await super().run()
        await asyncio.sleep(float("inf"))

    async def _aim(self) -> None:
        strike: Callable[[], asyncio.Future[None]] = getattr(self, self.aimed or "")
        while True:
            await asyncio.sleep(1.0 + self._rng.random())
            if await self._until(self._are_in_sync, SETTLE_SECONDS):
                await strike()
                self._heal()
                self._start(*self.nodes)

    def _heal(self) -> None:
        self._world.network.heal_all()

    # What it sees

    def _image(self) -> MetadataImage:
        """Return the newest image of any node."""
        images = [image for node in self.nodes if node.serves and (image := node.image) is not None]
        return max(images, key=lambda image: image.provenance.offset, default=MetadataImage())

    def _partition(self, aim: Aim) -> PartitionRegistration | None:
        topic = self._image().topics.by_name.get(aim.topic)
        return None if topic is None else topic.partitions.get(aim.index)

    def _leads(self, aim: Aim, node: JudgedNode) -> bool:
        partition = self._partition(aim)
        return partition is not None and partition.leader == node.node_id

    def _isr(self, aim: Aim) -> set[int]:
        partition = self._partition(aim)
        return set() if partition is None else set(partition.isr)

    def _aims(self, partitions: Iterable[Partition]) -> Iterator[Aim]:
        """Yield those of these partitions with three replicas that are in sync, and whose brokers run."""
        nodes = {node.node_id: node for node in self.nodes if node.serves and not node.loop.is_paused}
        by_name = self._image().topics.by_name
        for name, index in partitions:
            each = by_name[name].partitions.get(index) if name in by_name else None
            others = [] if each is None else [replica for replica in each.replicas if replica != each.leader]
            if each is not None and len(others) == 2 and set(each.isr) == set(each.replicas) <= nodes.keys():
                yield Aim(name, index, nodes[each.leader], *(nodes[other] for other in others))

    def _pick(self, partitions: Iterable[Partition]) -> Aim | None:
        aims = list(self._aims(partitions))
        return self._rng.choice(aims) if aims else None

    def _pick_any(self) -> Aim | None:
        return self._pick([*self.written, *self.coordinated])

    def _controller(self) -> JudgedNode | None:
        """Return the node that leads the quorum, as it says itself; None if none or several do."""
        leading = [node for node in self.nodes if node.serves and node.image is not None and node.raft.is_leader]
        return leading[0] if len(leading) == 1 else None

    async def _until(self, condition: Callable[[], bool], seconds: float = MOMENT_SECONDS) -> bool:
        """Wait for a moment; return whether it came."""
        ends_at = self._world.loop.time() + seconds
        while not condition():
            if self._world.loop.time() > ends_at:
                return False
            await asyncio.sleep(POLL_SECONDS)
        return True

    # What it does

    def _starve(self, leader: JudgedNode, *followers: JudgedNode) -> None:
        """Let followers receive nothing from a broker, while the quorum goes on."""
        for follower in followers:
            self._world.network.cut(leader.host, follower.host, PORT)

    def _crash(self, node: JudgedNode) -> bool:
        """Kill a node if it runs; return whether it did."""
        if not node.serves:
            return False
        node.kill()
        self._history.crashes.append(f"kill of {node.name}")
        return True

    def _start(self, *nodes: JudgedNode) -> None:
        for node in nodes:
            if not node.is_up:
                node.begin(self._history)

    # Faults

    async def kill_at_join(self) -> None:
        aim = self._pick_any()
        if aim is None:
            return
        joining, network = self._rng.choice((aim.next, aim.next, aim.last)), self._world.network
        self._starve(aim.leader, joining)
        if not await self._until(lambda: joining.node_id not in self._isr(aim)):
            return
        await asyncio.sleep(2.0 * self._rng.random())
        network.slow_down(aim.leader.host, joining.host, self._rng.choice((0.5, 2.0)), PORT)
        network.heal(aim.leader.host, joining.host, PORT)
        await self._until(lambda: joining.node_id in self._isr(aim))
        if self._crash(aim.leader):
            await self._until(lambda: not self._leads(aim, aim.leader))
            await asyncio.sleep(self._rng.random())
            self._start(aim.leader)

    async def leave_leader_alone(self) -> None:
        aim = self._pick_any()
        if aim is None:
            return
        self._starve(aim.leader, aim.next, aim.last)
        if await self._until(lambda: self._isr(aim) == {aim.leader.node_id}):
            await asyncio.sleep(1.5 * self._rng.random())
            if self._crash(aim.leader):
                await self._until(lambda: not self._leads(aim, aim.leader))
                await asyncio.sleep(2.0)
                self._heal()
                self._start(aim.leader)

    async def elect_uncleanly(self) -> None:
        aim = self._pick(self.risky)
        if aim is None:
            return
        self._starve(aim.leader, aim.next, aim.last)
        if await self._until(lambda: self._isr(aim) == {aim.leader.node_id}):
            await asyncio.sleep(1.5 * self._rng.random())
            if self._crash(aim.leader):
                await self._until(lambda: self._leads(aim, aim.next) or self._leads(aim, aim.last))
                self._heal()
                await asyncio.sleep(2.0 * self._rng.random())
                self._start(aim.leader)

    async def cut_leader_from_controller(self) -> None:
        controller = self._controller()
        aims = [aim for aim in self._aims([*self.written, *self.coordinated]) if aim.leader is not controller]
        if controller is None or not aims:
            return
        aim = self._rng.choice(aims)
        self._starve(aim.leader, aim.next)
        others = [other.host for other in self.nodes if other is not aim.leader]
        self._world.network.part([aim.leader.host], others, CONTROLLER_PORT)
        await self._until(lambda: not self._leads(aim, aim.leader))
        await asyncio.sleep(self._rng.choice((0.2, 3.0)) * self._rng.random())

    async def crash_voter(self) -> None:
        controller, network = self._controller(), self._world.network
        voters = [node for node in self.nodes if node.is_controller and node is not controller]
        if controller is None or len(voters) < 2:
            return
        epoch = controller.raft.epoch
        network.part([controller.host], [voter.host for voter in voters], CONTROLLER_PORT)
        if not await self._until(lambda: any(self._voted_for(voter, epoch) is not None for voter in voters)):
            return
        voter = next(voter for voter in voters if self._voted_for(voter, epoch) is not None)
        await asyncio.sleep(self._rng.choice((0.0, 0.03, 0.1)) * self._rng.random())
        forgets = self._rng.random() < 0.5
        if forgets and self._may_forget(voter):
            self._cut_power(voter)
        elif not self._crash(voter):
            return
        network.heal(controller.host, voter.host, CONTROLLER_PORT)
        network.heal(voter.host, controller.host, CONTROLLER_PORT)
        # The candidate stays cut off from both others for a while: it may have won, and they do not know.
        candidate = next(each for each in voters if each is not voter)
        network.cut(candidate.host, voter.host, CONTROLLER_PORT)
        await asyncio.sleep(0.2 * self._rng.random())
        self._start(voter)
        await asyncio.sleep(8.0)

    def _voted_for(self, voter: JudgedNode, epoch: int) -> int | None:
        """Return for which other node a voter has voted since an epoch."""
        if not voter.serves or voter.image is None:
            return None
        voted = voter.raft.quorum.election.voted
        return voted.id if voter.raft.epoch > epoch and voted is not None and voted.id != voter.node_id else None

    async def move_coordinator_twice(self) -> None:
        aim = self._pick(self.coordinated)
        if aim is None:
            return
        first, second, third = aim.leader, aim.next, aim.last
        self._starve(first, third)
        self._starve(second, first, third)
        await asyncio.sleep(0.3 + 0.7 * self._rng.random())
        if not self._crash(first):
            return
        await asyncio.sleep(0.5 * self._rng.random())
        if not await self._until(lambda: self._leads(aim, second)):
            return
        self._start(first)
        await self._until(lambda: first.serves)
        await asyncio.sleep(1.5 * self._rng.random())
        if self._crash(second):
            await self._until(lambda: not self._leads(aim, second))
            self._heal()
            await asyncio.sleep(self._rng.random())
            self._start(second)

    async def move_coordinator_back(self) -> None:
        aim = self._pick(self.coordinated)
        if aim is None:
            return
        # A request that waits for its commit when the coordinator resigns would make it read its log again.
        self._part(aim.leader, also_from_clients=self._rng.random() < 0.7)
        if not await self._until(lambda: not self._leads(aim, aim.leader)):
            return
        # The second one must have written something that the first one has not.
        before = self._commits()
        await self._until(lambda: self._commits() > before + 1)
        await asyncio.sleep(self._rng.random())
        self._heal()
        if await self._until(lambda: self._isr(aim) >= {aim.leader.node_id, aim.next.node_id}):
            self._part(aim.next, also_from_clients=self._rng.random() < 0.7)
            await self._until(lambda: self._leads(aim, aim.leader))
            await asyncio.sleep(2.0 + 2.0 * self._rng.random())

    def _part(self, node: JudgedNode, *, also_from_clients: bool) -> None:
        others: Sequence[Node] = self._world.nodes if also_from_clients else self.nodes
        self._world.network.part([node.host], [other.host for other in others if other is not node])

    def _commits(self) -> int:
        """Return how many commits and transactions were acknowledged so far."""
        commits = sum(each.acknowledged for each in self._history.commits)
        return commits + sum(each.acknowledged for each in self._history.transactions)

    async def kill_leader_with_a_new_end(self) -> None:
        ends_seen, network = self._history.ends_seen, self._world.network
        aim = self._pick(each for each in self.written if (WATCHER, each) in ends_seen)
        if aim is None:
            return
        partition = Partition(aim.topic, aim.index)
        told = ends_seen[WATCHER, partition]
        for follower in (aim.next, aim.last):
            # What the leader sends arrives late, and the follower's answer at once: the leader knows the new end long before the follower.
            network.slow_down(aim.leader.host, follower.host, 0.2, PORT)

        def is_new() -> bool:
            known = [node.high_watermark(partition) for node in (aim.next, aim.last)]
            return None not in known and told[-1] > max(each or 0 for each in known)

        if not await self._until(is_new) or not self._leads(aim, aim.leader):
            return
        # What is on its way to the followers must not arrive.
        self._starve(aim.leader, aim.next, aim.last)
        if self._crash(aim.leader):
            # The new leader learns what is committed when a follower has fetched all of it.
            network.part([aim.next.host], [aim.last.host], PORT)
            await self._until(lambda: not self._leads(aim, aim.leader))
            await asyncio.sleep(0.5 + 1.5 * self._rng.random())
            self._heal()
            self._start(aim.leader)

    async def leave_controller_alone(self) -> None:
        controller, network = self._controller(), self._world.network
        others = [node for node in self.nodes if node is not controller and node.is_controller]
        if controller is None or not others:
            return
        epoch = controller.raft.epoch
        for other in others:
            network.cut(controller.host, other.host, CONTROLLER_PORT)
        await self._until(lambda: any(self._leads_quorum_since(other, epoch) for other in others))
        await asyncio.sleep(self._rng.random())

    def _leads_quorum_since(self, node: JudgedNode, epoch: int) -> bool:
        has_joined = node.serves and node.image is not None
        return has_joined and node.raft.is_leader and node.raft.epoch > epoch

    async def forget_in_short_isr(self) -> None:
        aim = self._pick_any()
        if aim is None:
            return
        forgetful = aim.next
        self._starve(aim.leader, aim.last)
        if not await self._until(lambda: aim.last.node_id not in self._isr(aim)):
            return
        await asyncio.sleep(2.0 * self._rng.random())
        if not self._may_forget(forgetful):
            return
        self._cut_power(forgetful)
        await asyncio.sleep(self._rng.choice((0.1, 2.0, 12.0)))
        self._start(forgetful)
        await asyncio.sleep(1.0)
        self._world.network.part([aim.leader.host], [aim.next.host, aim.last.host])
        await self._until(lambda: self._leads(aim, forgetful))
        await asyncio.sleep(self._rng.random())

    async def kill_the_others(self) -> None:
        aim = self._pick_any()
        if aim is None:
            return
        forgetful, *others = self._rng.sample((aim.leader, aim.next, aim.last), 3)
        if not self._may_forget(forgetful):
            return
        self._cut_power(forgetful)
        for other in others:
            await asyncio.sleep(3.0 * self._rng.random())
            self._crash(other)
        for node in self._rng.sample(list(self.nodes), len(self.nodes)):
            await asyncio.sleep(self._rng.choice((0.1, 3.0, 15.0)) * self._rng.random())
            self._start(node)

    async def cut_all_power(self) -> None:
        for node in self.nodes:
            if node.serves:
                self._cut_power(node)
        for node in self._rng.sample(list(self.nodes), len(self.nodes)):
            await asyncio.sleep(self._rng.choice((0.1, 3.0, 15.0)) * self._rng.random())
            self._start(node)

    async def kill_leader_in_transactions(self) -> None:
        aim = self._pick(each for each in self.written if each.topic == "x")
        transactions = self._history.transactions
        if aim is None or not await self._until(lambda: any(each.is_commit is None for each in transactions[-2:])):
            return
        if self._crash(aim.leader):
            await self._until(lambda: not self._leads(aim, aim.leader))
            await asyncio.sleep(4.0 * self._rng.random())

    async def black_out(self) -> None:
        self._history.power_cut(flushed=False)
        await self.cut_all_power()

    async def spare_one_disk(self) -> None:
        brokers = [node for node in self.nodes if node.is_broker]
        # A later one would find records that a disk has lost meanwhile.
        if not all(node.serves for node in self.nodes) or not all(self._may_forget(node) for node in brokers):
            return
        self._rng.choice(brokers).disk.write_back()
        await self.cut_all_power()

    async def lose_directory_of_the_last_follower(self) -> None:
        """Leave a leader one follower in sync, let that return from a kill with an empty directory, and kill the leader."""
        aim = self._pick_any()
        if aim is None:
            return
        follower, partition = aim.last, Partition(aim.topic, aim.index)
        root = follower.root_of(partition)
        if root is None or root == follower.config.metadata_dir:
            return  # A voter that loses the metadata log may lose what is committed.
        self._starve(aim.leader, aim.next)
        if not await self._until(lambda: self._isr(aim) == {aim.leader.node_id, follower.node_id}):
            return
        await asyncio.sleep(self._rng.random())
        if not self._may_forget(follower) or not self._crash(follower):
            return
        self._forgetful = follower
        follower.replace_directory(root)
        self._starve(aim.leader, follower)
        await self._until(lambda: self._isr(aim) == {aim.leader.node_id})
        self._start(follower)
        await self._until(lambda: follower.serves)
        await asyncio.sleep(self._rng.random())
        if self._crash(aim.leader):
            await self._until(lambda: not self._leads(aim, aim.leader))
            await asyncio.sleep(2.0 * self._rng.random())


UNCLEAN = "elect_uncleanly"
SPARING = "spare_one_disk"
BLACK_OUT = "black_out"
IN_TRANSACTIONS = "kill_leader_in_transactions"
LOST_DIRECTORY = "lose_directory_of_the_last_follower"
"""These five have their own share of the seeds: one more in the list would give other faults to all seeds with an aimed one."""
AIMED = (
    "kill_at_join",
    "leave_leader_alone",
    "cut_leader_from_controller",
    "crash_voter",
    "move_coordinator_twice",
    "move_coordinator_back",
    "forget_in_short_isr",
    "kill_leader_with_a_new_end",
    "leave_controller_alone",
    "kill_the_others",
    "cut_all_power",
)
