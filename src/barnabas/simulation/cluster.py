"""The cluster that a scenario gets: nodes in virtual time, with the faults of `barnabas.Cluster`, and the processes of its clients.

A scenario is a coroutine of a process of its own, `scenario`. It calls the methods here between the steps of its clients:

- `kill`, `stop`, `restart`, `pause`, `resume`, `lose_power` and `move_clock` act on machines.
- `partition`, `cut` and `delay` act on the network. They name nodes by their ids, and clients' processes by their names.
- `fail`, `drop_response_after_write` and others act on the answers to clients (`embedded.faults_in_answers`). `heal` ends these and the
  network's.

What differs from `barnabas.Cluster`: methods that wait are coroutines, and their seconds are virtual. Timeouts are Kafka's own, because
they take no real time. Clients are in the network too, so that it can be cut for them.

The nodes are those of `barnabas start --nodes N`: the first three are brokers and controllers, any others only brokers.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from barnabas.config.cannot_start import CannotStart
from barnabas.embedded.broker_arguments import topic_request
from barnabas.embedded.cluster_control import ClusterControl
from barnabas.embedded.fault_arguments import api_key, checked_seconds, checked_where
from barnabas.embedded.fault_plan import EVERY_API, RequestFault
from barnabas.embedded.fault_tickets import InjectedFault, OwnTickets
from barnabas.embedded.faults_in_answers import FaultsInAnswers, request_settings
from barnabas.embedded.link_faults import LinkFaults
from barnabas.embedded.request_faults import OrderedFault
from barnabas.embedded.request_log import ObservedRequest
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_registration import PartitionRegistration
from barnabas.protocol.errors import KafkaError
from barnabas.simulation.broker_node import PORT
from barnabas.simulation.cluster_node import CLUSTER_ID, ClusterNode
from barnabas.simulation.node import Node, NodeDied
from barnabas.simulation.process import Process, raise_unseen, running
from barnabas.simulation.world import World

__all__ = ["Cluster", "play", "waiting"]

__tracebackhide__ = True  # pytest's reports end at the caller's line

SCENARIO = "scenario"
_VOTERS_MAX = 3
_COPIES_MAX = 3
_START_S = 120.0
_PATIENCE_S = 60.0
_LOOK_S = 0.05

_Who = int | str | Process
_Several = _Who | Iterable[_Who]
T = TypeVar("T")


class Cluster(FaultsInAnswers):
    """A cluster in virtual time; `run` makes it, starts it, and passes it to the scenario.

    Attributes:
        random: chance for the scenario's own choices, from the seed.
    """

    def __init__(self, world: World, size: int, settings: Mapping[str, str]) -> None:
        self.random: random.Random = world.random(SCENARIO)
        self._world = world
        voters = [(node_id, world.hosts.format(node_id)) for node_id in range(1, size + 1)][:_VOTERS_MAX]
        self._nodes: dict[int, ClusterNode] = {}
        for node_id in range(1, size + 1):
            roles = ("broker", "controller") if node_id <= _VOTERS_MAX else ("broker",)
            node = ClusterNode(world, node_id, world.next_host(), roles, voters, dict(settings))
            self._nodes[node_id] = world.add(node)
            node.format()
        self._processes: dict[str, Process] = {}
        self._controls: dict[int, ClusterControl] = {}
        self._ordered: dict[int, tuple[frozenset[int], OrderedFault]] = {}
        self._numbers = 0
        self._slow: dict[int, float] = {}
        self._over: asyncio.Future[Any] = world.loop.create_future()

    def __repr__(self) -> str:
        return f"<barnabas.simulation.Cluster seed={self._world.seed} at={self._world.loop.time():.3f} s>"

    # The cluster

    @property
    def nodes(self) -> tuple[int, ...]:
        """The ids of all nodes, running or not."""
        return tuple(self._nodes)

    @property
    def running_nodes(self) -> tuple[int, ...]:
        """The ids of the nodes that serve and are not paused."""
        return tuple(node_id for node_id, node in self._nodes.items() if _answers(node))

    @property
    def bootstrap_servers(self) -> str:
        """`host:port,host:port,…` of every node. The hosts exist only in the simulation."""
        return ",".join(self.address(node_id) for node_id in self._nodes)

    @property
    def cluster_id(self) -> str:
        """The id that its nodes were formatted with."""
        return CLUSTER_ID

    def address(self, node: int) -> str:
        """Return `host:port` of one node."""
        return f"{self._node(node).host}:{PORT}"

    def state(self, node: int) -> str:
        """Return whether a node is `running`, `paused` or `down`."""
        machine = self._node(node)
        return "down" if not machine.is_up else "paused" if machine.loop.is_paused else "running"

    def process(self, name: str) -> Process:
        """Return a client's process on a machine of its own, which is made when it is first named."""
        if not isinstance(name, str) or not name:
            raise TypeError(f"{name!r} is not the name of a process: pass text")
        found = self._processes.get(name)
        if found is None:
            found = self._processes[name] = Process(self._world.add_node(name), self._end_with)
            for node_id, seconds in self._slow.items():
                self._world.network.slow_down(found.node.host, self._nodes[node_id].host, seconds)
        return found

    async def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replicas: int | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """Create a topic, and return when every running node knows it.

        Args:
            replicas: of each partition; None for three, or as many as there are nodes.

        Raises:
            KafkaError: the controller rejects it, for example with TOPIC_ALREADY_EXISTS.
        """
        request = topic_request(name, partitions, config)
        settings = {each.name: each.value for each in request.topics[0].configs}
        copies = min(len(self._nodes), _COPIES_MAX) if replicas is None else replicas
        await self._ask_controller("create", [name, partitions, copies, settings])
        await self._wait(
            lambda: f"not every running node knows topic {name}",
            lambda: all(node.registration((name, 0)) for node in self._answering()),
            _PATIENCE_S,
        )

    # Its state

    async def leader(self, topic: str, partition: int = 0, *, timeout: float = 30.0) -> int:
        """Return the node that leads a partition; wait until a running node does."""

        def find() -> int | None:
            found = self._partition(topic, partition)
            return found.leader if found is not None and found.leader in self.running_nodes else None

        return await self._wait(lambda: f"{topic}-{partition} has no leader that runs", find, timeout)

    def in_sync(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Return the nodes whose replicas of a partition are in sync now; empty if there is no such partition."""
        found = self._partition(topic, partition)
        return () if found is None else tuple(found.isr)

    async def controller(self, *, timeout: float = 30.0) -> int:
        """Return the node whose controller is active; wait until that is a running node."""
        return await self._wait(lambda: "no controller is active", self._controller, timeout)

    async def wait_until_in_sync(self, *, timeout: float = 30.0) -> None:
        """Wait until every node knows that every replica of every partition is in sync.

        Raises:
            RuntimeError: a node is down or paused, so the wait would never end.
            TimeoutError: the time is over; the text names a partition that is behind.
        """

        def are_in_sync() -> bool:
            for node_id, node in self._nodes.items():
                if not _answers(node):
                    state = "stands still: call resume" if node.is_up and node.has_started else "is down: call restart"
                    raise RuntimeError(f"node {node_id} {state}({node_id}) first")
            return self._knows_all() and not self._behind()

        await self._wait(
            lambda: f"not every replica is in sync: {self._behind() or 'a node is not in the cluster'}",
            are_in_sync,
            timeout,
        )

    # Faults of a machine

    def kill(self, node: int) -> None:
        """Kill a node (SIGKILL): its connections end, and its disk keeps what was written."""
        self._node(node).kill()

    def lose_power(self, node: int) -> None:
        """Take a node's power: its connections do not end, and its disk loses some bytes that were not synced."""
        self._node(node).lose_power()

    async def stop(self, node: int) -> None:
        """Stop one node cleanly (SIGTERM), as an operator would."""
        machine = self._node(node)
        self.resume(node)
        if machine.serves:
            await machine.stop()
        else:
            machine.kill()

    async def restart(self, node: int) -> None:
        """Start a node that is down, or stop and start one that runs; return when it serves.

        Raises:
            CannotStart: mostly because it finds no quorum within a minute: a majority of the controllers must run.
            TimeoutError: it does not serve within two minutes, and goes on trying.
        """
        machine = self._node(node)
        if machine.is_up:
            await self.stop(node)
        started = self._begin(machine)
        done, _ = await asyncio.wait([started], timeout=_START_S)
        if not done:
            raise TimeoutError(f"after {_START_S:g} s node {node} does not serve")
        started.result()

    def pause(self, node: int) -> None:
        """Pause a node (SIGSTOP): its connections stay open, and nothing answers."""
        machine = self._node(node)
        if not machine.is_up:
            raise RuntimeError(f"node {node} is down: call restart({node}) first")
        if not machine.loop.is_paused:
            machine.pause()

    def resume(self, node: int) -> None:
        """Let a paused node continue (SIGCONT)."""
        machine = self._node(node)
        if machine.is_up and machine.loop.is_paused:
            machine.go_on()

    def move_clock(self, seconds: float, of: _Several | None = None) -> None:
        """Let wall clocks jump by so many seconds, back if negative; timers do not notice.

        Args:
            of: nodes and processes; None for every machine, as if so much time had passed in which nothing happened.
        """
        for machine in self._world.nodes if of is None else self._machines(of):
            machine.set_clock(seconds)

    # Faults of the network

    def partition(self, left: _Several, right: _Several) -> None:
        """Cut the network between two sets of nodes and processes, both ways; none may be in both."""
        one, other = self._apart(left, right)
        self._world.network.part([each.host for each in one], [each.host for each in other])

    def cut(self, source: _Several, target: _Several) -> None:
        """Cut one way: nothing that the first ones send reaches the second ones."""
        for one, other in self._pairs(source, target):
            self._world.network.cut(one.host, other.host)

    def delay(self, between: _Who | tuple[_Who, _Who], seconds: float) -> None:
        """Slow the network down: everything that two machines send each other takes so much longer.

        Args:
            between: two nodes or processes. One node means everything between it and all other nodes, and each request of a client to
                it; one process means everything between it and all nodes.
            seconds: 0 ends the delay.
        """
        seconds, network = checked_seconds(seconds), self._world.network
        if isinstance(between, tuple):
            for one, other in self._pairs(*between):
                network.slow_down(one.host, other.host, seconds)
                network.slow_down(other.host, one.host, seconds)
            return
        (machine,) = self._machines(between)
        for node in self._nodes.values():
            if node is not machine:
                network.slow_down(machine.host, node.host, seconds)
                network.slow_down(node.host, machine.host, seconds)
        if isinstance(between, int):
            self._slow[between] = seconds
            for process in self._processes.values():
                network.slow_down(process.node.host, machine.host, seconds)

    def heal(self) -> None:
        """End every cut, delay and fault in answers. Nodes that are down or paused stay so."""
        self._world.network.heal_all()
        self._slow.clear()
        self._ordered.clear()
        self._apply_ordered()

    # Faults in the answers to clients

    def _inject(self, fault: RequestFault, node: int | None) -> InjectedFault:
        where = frozenset(self._nodes if node is None else [self._node(node).node_id])
        self._numbers += 1
        number, tickets = self._numbers, OwnTickets(fault.times, fault.nth)
        self._ordered[number] = (where, OrderedFault(fault._replace(number=number), tickets))
        self._apply_ordered()
        return InjectedFault(number, request_settings(fault, node), tickets, lambda: self._remove(number))

    def _remove(self, number: int) -> None:
        if self._ordered.pop(number, None) is not None:
            self._apply_ordered()

    def _apply_ordered(self) -> None:
        for node_id, control in self._controls.items():
            control.requests.apply(fault for where, fault in self._ordered.values() if node_id in where)

    # Requests

    def requests(
        self,
        api: str | int | None = None,
        *,
        node: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        client_id: str | None = None,
        group: str | None = None,
    ) -> list[ObservedRequest]:
        """Return what clients have asked each node since its start, the oldest first; the last 10,000 requests of a node are kept.

        Args:
            api: Kafka's name, such as `Produce`, or its key; None for every API.
            node, topic, partition, client_id, group: only requests to this node, and that name these.
        """
        key = EVERY_API if api is None else api_key(api)
        where = checked_where(topic, partition, client_id, group)
        nodes = self._controls if node is None else [self._node(node).node_id]
        asked = [each for node_id in nodes for each in self._controls[node_id].requests.log.found(key, where)]
        return sorted(asked, key=lambda request: request.time_ms)

    def forget_requests(self) -> None:
        """Let `requests` return only what clients ask from now on."""
        for control in self._controls.values():
            control.requests.log.clear()

    # Leaders

    async def move_leader(self, topic: str, partition: int = 0, to: int | None = None, *, timeout: float = 30.0) -> int:
        """Let another replica lead a partition, without a failure; return its node when every running node knows it.

        Args:
            to: a node with an in-sync replica; None for any that runs and does not lead.

        Raises:
            KafkaError: PREFERRED_LEADER_NOT_AVAILABLE if the replica is not in sync, or another error of the controller.
            ValueError: the node has no replica, or there is no other replica.
        """
        leader = await self.leader(topic, partition, timeout=timeout)
        found = self._partition(topic, partition)
        assert found is not None, "a partition with a leader exists"
        replicas = list(found.replicas)
        if to is None:
            others = [each for each in found.isr if each != leader and each in self.running_nodes]
            if not others:
                raise ValueError(f"no other replica of {topic}-{partition} is in sync: it is on nodes {replicas}")
            to = others[0]
        elif to not in replicas:
            raise ValueError(f"node {to} has no replica of {topic}-{partition}: it is on nodes {replicas}")
        chosen = to
        await self._ask_controller("move", [topic, partition, [to, *(each for each in replicas if each != to)]])

        def all_know() -> bool:
            known = [node.registration((topic, partition)) for node in self._answering()]
            return all(each is not None and each.leader == chosen for each in known)

        await self._wait(lambda: f"not every node knows that node {to} leads {topic}-{partition}", all_know, timeout)
        return to

    # Helpers

    def _ended(self, main: asyncio.Future[Any]) -> None:
        for process in self._processes.values():
            raise_unseen(process)
        if main.cancelled():
            self._end_with(asyncio.CancelledError())
        elif (error := main.exception()) is not None:
            self._end_with(error)
        elif not self._over.done():
            self._over.set_result(main.result())

    def _end_with(self, error: BaseException) -> None:
        if not self._over.done():
            self._over.set_exception(error)

    def _begin(self, node: ClusterNode) -> asyncio.Task[None]:
        return asyncio.ensure_future(self._start(node))

    async def _start(self, node: ClusterNode) -> None:
        try:
            await node.start()
        except NodeDied:
            return  # The scenario has killed it meanwhile.
        except CannotStart:
            node.kill("cannot start")
            raise
        server = node.server
        self._controls[node.node_id] = ClusterControl(server, LinkFaults(node.node_id, {}, node.loop))
        self._apply_ordered()

    def _node(self, node: int) -> ClusterNode:
        found = self._nodes.get(node)
        if found is None:
            raise ValueError(f"there is no node {node!r}: the nodes are 1 to {len(self._nodes)}")
        return found

    def _machines(self, who: _Several) -> list[Node]:
        found: dict[Node, None] = {}
        for each in [who] if isinstance(who, int | str | Process) else who:
            if isinstance(each, int):
                found[self._node(each)] = None
                continue
            name = each.name if isinstance(each, Process) else each
            if name not in self._processes:
                known = ", ".join(self._processes)
                raise ValueError(f"there is no process {name!r}: the processes are {known}, and nodes are numbers")
            found[self._processes[name].node] = None
        return list(found)

    def _apart(self, left: _Several, right: _Several) -> tuple[list[Node], list[Node]]:
        one, other = self._machines(left), self._machines(right)
        if not one or not other:
            raise ValueError("one side is empty: name nodes or processes on both sides")
        for each in one:
            if each in other:
                raise ValueError(f"{each.name} is on both sides: a machine always reaches itself")
        return one, other

    def _pairs(self, left: _Several, right: _Several) -> list[tuple[Node, Node]]:
        ones, others = self._apart(left, right)
        return [(one, other) for one in ones for other in others]

    def _answering(self) -> list[ClusterNode]:
        return [self._nodes[node_id] for node_id in self.running_nodes]

    def _images(self) -> dict[int, MetadataImage]:
        """Return what each running node knows; the newest last."""
        known = [(node.node_id, node.image) for node in self._answering()]
        found = {node_id: image for node_id, image in known if image is not None}
        return dict(sorted(found.items(), key=lambda each: each[1].provenance.offset))

    def _partition(self, topic: str, partition: int) -> PartitionRegistration | None:
        images = list(self._images().values())
        return images[-1].topics.partition(topic, partition) if images else None

    def _controller(self) -> int | None:
        # A controller that was cut off may not know that another one is active.
        leads = [
            node_id
            for node_id in self._images()
            if (local := self._nodes[node_id].server.quorum.local_controller) is not None and local.is_active
        ]
        return leads[-1] if leads else None

    def _knows_all(self) -> bool:
        images = self._images().values()
        size = len(self._nodes)
        return len(images) == size and all(len(list(each.cluster.live_brokers())) == size for each in images)

    def _behind(self) -> str:
        """Return a partition that is behind, as a running node knows it; empty if there is none."""
        for image in self._images().values():
            for topic in image.topics.by_name.values():
                for index, each in topic.partitions.items():
                    if each.leader < 0 or len(each.isr) < len(each.replicas) or each.is_reassigning:
                        state = f"leader {each.leader}, in sync {list(each.isr)} of {list(each.replicas)}"
                        return f"{topic.name}-{index}: {state}"
        return ""

    async def _ask_controller(self, command: str, argument: object) -> None:
        node_id = await self.controller(timeout=_PATIENCE_S)
        answer = await self._nodes[node_id].run(self._controls[node_id].answer({command: argument}))
        if "error" in answer:
            raise KafkaError(answer["error"], answer["message"])

    async def _wait(self, so_far: Callable[[], str], ask: Callable[[], T | None], seconds: float) -> T:
        """Ask until the answer is true.

        Args:
            so_far: returns the state while the answer is not true, for the error.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not (answer := ask()):
            if loop.time() > deadline:
                raise TimeoutError(f"after {seconds:g} s {so_far()}")
            await asyncio.sleep(_LOOK_S)
        return answer


def _answers(node: ClusterNode) -> bool:
    return node.serves and not node.loop.is_paused


async def play(cluster: Cluster, scenario: Callable[[Cluster], Coroutine[Any, Any, Any]]) -> Any:
    """Start every node, run the scenario, and return what it returns; in the world's loop."""
    await asyncio.gather(*(cluster._begin(node) for node in cluster._nodes.values()))
    await cluster._wait(lambda: "not every node knows all nodes", cluster._knows_all, _PATIENCE_S)
    main = cluster.process(SCENARIO).run(scenario(cluster))
    main.add_done_callback(cluster._ended)
    return await cluster._over


def waiting(cluster: Cluster) -> dict[str, list[Coroutine[Any, Any, Any]]]:
    """Return what runs in each process: its coroutines."""
    return {name: running(process) for name, process in cluster._processes.items()}
