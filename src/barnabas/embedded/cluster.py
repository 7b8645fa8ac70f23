"""A cluster of several nodes for tests, each node a process of its own, and faults for it.

    with barnabas.Cluster(brokers=3) as cluster:
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
        cluster.kill(cluster.leader("orders"))

The nodes are those of `barnabas start --nodes N`: the first three are brokers and controllers, any others only brokers. They listen on
free ports of the loopback address and keep their data in a temporary folder that `stop` deletes.

- `kill`, `stop` and `pause` send a signal to a node's process; `restart` and `resume` undo them.
- `partition`, `cut` and `delay` are faults in the network between nodes (`link_faults`). Clients reach every node.
- `fail`, `drop_response_after_write` and others are faults in the answers to clients (`request_faults`); there are faults of disks
  (`faulty_disk`) and clocks (`moved_clock`) too. `heal` ends all of these, and the method `remove` of a fault that one.
- `requests` returns what clients have asked.
- A cluster sends faults to its nodes over sockets that they inherit (`cluster_node`). Nodes that were started otherwise have none.
- `security`, `users` and `acls` are as for `barnabas.Broker`; links between nodes, controllers' too, have the same protocol.
- Methods return when the fault is in effect, and may be called from any thread. A method that waits for a condition raises
  `TimeoutError` if the condition does not come true in time.
- The nodes end when the process of the cluster ends, even if it is killed.
- On Linux the cluster holds its ports for its whole life, so a node that is down finds its port again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeVar

from barnabas.config.cannot_start import CannotStart, check_system
from barnabas.embedded.broker_arguments import checked_path, checked_port, topic_request
from barnabas.embedded.cluster_arguments import checked_brokers, cluster_settings
from barnabas.embedded.cluster_faults import ClusterFaults, Nodes
from barnabas.embedded.cluster_folder import PORT_TAKEN, Held, empty_disk, open_held, secured_listeners
from barnabas.embedded.cluster_process import ClusterProcess
from barnabas.embedded.fault_arguments import api_key, checked_where
from barnabas.embedded.fault_plan import EVERY_API, FaultPlan
from barnabas.embedded.request_log import ObservedRequest
from barnabas.embedded.secured_clients import SecuredClients, make_security
from barnabas.embedded.users_and_acls import UsersAndAcls
from barnabas.embedded.with_statement import StartedByWith
from barnabas.process.local_cluster import HOST, LocalNode

__all__ = ["Cluster"]

__tracebackhide__ = True  # pytest's reports end at the caller's line

_START_S = 120.0
_PATIENCE_S = 60.0
_COMMAND_S = 90.0
_LOOK_S = 0.01
_COPIES_MAX = 3
_ATTEMPTS = 3

T = TypeVar("T")


class Cluster(SecuredClients, ClusterFaults, StartedByWith):
    """A cluster of processes on this machine.

    Args:
        brokers: how many nodes; they are 1, 2, 3, …
        data_dir: the cluster's folder; None for a temporary one that `stop` deletes.
        config: settings of every node, by Kafka's names, over the defaults of such a cluster.
        port: the first port; others that are in use are passed over. 0 for free ones, or those that the folder's cluster has.
        security, users, acls: as for `barnabas.Broker`.

    `start` raises `barnabas.CannotStart` if a node cannot start; the text has the last lines of its log. `Cluster()` itself raises
    `barnabas.ConfigError` if a setting is unknown or not valid, and `TypeError` or `ValueError` for another argument. A method that
    needs a running cluster raises `RuntimeError` without one, and `ValueError` for a node that does not exist.
    """

    def __init__(
        self,
        brokers: int = 3,
        data_dir: str | PathLike[str] | None = None,
        *,
        config: Mapping[str, object] | None = None,
        port: int = 0,
        security: str | None = None,
        users: Mapping[str, str] | None = None,
        acls: Iterable[str] | None = None,
    ) -> None:
        check_system()
        super().__init__()
        self._port = checked_port(port)
        self._security = made = make_security("barnabas.Cluster", security, users, acls)
        self._size = checked_brokers(brokers)
        self._data_dir = checked_path(data_dir)
        listener = None if made is None else {"listeners": f"{made.protocol}://{HOST}:0"}
        secured = None if made is None or listener is None else listener | made.node_settings(1, 1, is_alone=True)
        self._settings = cluster_settings(config, secured)
        self._processes: dict[int, ClusterProcess] = {}
        self._pid = 0
        self._release: Callable[[], object] | None = None

    def __repr__(self) -> str:
        state = self.bootstrap_servers if self.is_running else "stopped"
        return f"<barnabas.Cluster {state}>"

    # The cluster

    @property
    def is_running(self) -> bool:
        """Whether the cluster has started; its nodes may be down."""
        return bool(self._processes)

    @property
    def nodes(self) -> tuple[int, ...]:
        """The ids of all nodes, running or not."""
        return tuple(range(1, self._size + 1))

    @property
    def running_nodes(self) -> tuple[int, ...]:
        """The ids of the nodes that run and are not paused."""
        return tuple(node_id for node_id, each in self._all().items() if each.answers)

    @property
    def bootstrap_servers(self) -> str:
        """`host:port,host:port,…` of every node, the value of a client's `bootstrap.servers`."""
        return ",".join(each.address for each in self._all().values())

    @property
    def cluster_id(self) -> str:
        """The id that its nodes were formatted with."""
        return next(iter(self._all().values())).cluster_id

    @property
    def data_dir(self) -> str:
        """The cluster's folder; `node-1/node.log` in it is the log of node 1."""
        self._all()
        return str(self._folder)

    def address(self, node: int) -> str:
        """Return `host:port` of one node."""
        return self._process(node).address

    def state(self, node: int) -> str:
        """Return whether a node is `running`, `paused` or `down`."""
        process = self._process(node)
        return "down" if not process.is_up else "paused" if process.is_paused else "running"

    def start(self) -> Self:
        """Start every node, and return when each of them serves and knows the others."""
        with self._lock:
            if self._processes:
                raise CannotStart(
                    f"this cluster already runs on {self.bootstrap_servers}: call stop() first, or make another Cluster()"
                )
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    self._start()
                    break
                except CannotStart as mistake:
                    self.stop()
                    # Another process may have taken a port in the moment before it was held.
                    if PORT_TAKEN not in str(mistake) or self._data_dir is not None or attempt == _ATTEMPTS:
                        raise mistake.with_traceback(None) from None
                except BaseException:
                    self.stop()
                    raise
        return self

    def _start(self) -> None:
        is_temporary = self._data_dir is None
        folder = self._folder = Path(self._data_dir or tempfile.mkdtemp(prefix="barnabas-cluster-")).absolute()
        held = Held(folder if is_temporary else None)
        # Without a call of `stop`, the cluster is released when the interpreter exits.
        self._release = weakref.finalize(self, held.release, os.getpid())
        cluster = open_held(folder, self._size, held, self._port)
        self._forget_faults(folder)
        self._pid = os.getpid()
        self._processes = held.processes = {node.node_id: ClusterProcess(node) for node in cluster.nodes}
        self._launch(self._processes.values())
        self._await_all()
        self._make_users()

    def _make_users(self) -> None:
        if self._security is not None:
            offset = self._ask_controller("secure", UsersAndAcls.of(self._security).to_json())["offset"]
            self._wait(
                "not every node knows the users and ACLs",
                lambda: all(look["offset"] >= offset for look in self._looks()),
                _PATIENCE_S,
            )

    def _client_folder(self) -> Path:
        self._all()
        if self._data_dir is None:
            folder = self._folder / "clients"
            folder.mkdir(0o700)
            return folder
        folder = Path(tempfile.mkdtemp(prefix="barnabas-clients-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    def stop(self, node: int | None = None) -> None:
        """Stop one node cleanly (SIGTERM), as an operator would; without a node stop the cluster, and delete its temporary folder."""
        if node is not None:
            with self._lock:
                process = self._process(node)
                if process.is_paused:
                    process.resume()
                process.terminate()
                process.wait_for_end()
            return
        with self._lock:
            if self._release is None or (self._processes and self._pid != os.getpid()):
                return
            if self._data_dir is not None:
                for process in self._processes.values():
                    if process.is_paused:
                        process.resume()
                    process.end()
                for process in self._processes.values():
                    process.wait_for_end()
            self._release()
            self._release = None
            if self._security is not None and self._data_dir is None:
                self._security.forget_folder()
            self._processes = {}

    def reset(self) -> None:
        """Make the cluster as new: end all faults, start stopped nodes, delete everything that clients created.

        Topics with their records, groups, transactions, settings, quotas, credentials and ACLs are deleted; a secured cluster has again
        the users and ACLs that it began with. Ports and the cluster id stay, and so do the connections to nodes that were up.
        """
        with self._lock:
            self.heal()
            for process in self._all().values():
                if process.is_paused:
                    self._resume(process)
            self._launch([process for process in self._processes.values() if not process.is_up])
            self._await_all()
            offset = self._ask_controller("clear", None)["offset"]
            for process in self._processes.values():
                process.ask("forget", offset, _PATIENCE_S)
            self._make_users()

    def create_topic(
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
        copies = min(self._size, _COPIES_MAX) if replicas is None else replicas
        self._ask_controller("create", [name, partitions, copies, settings])
        self._wait(
            f"not every running node knows topic {name}",
            lambda: all(look["partition"] is not None for look in self._looks([name, 0])),
            _PATIENCE_S,
        )

    # Its state

    def leader(self, topic: str, partition: int = 0, *, timeout: float = 30.0) -> int:
        """Return the node that leads a partition; wait until a running node does."""

        def find() -> int | None:
            found = self._partition(topic, partition)
            return found[0] if found is not None and found[0] in self.running_nodes else None

        return self._wait(f"{topic}-{partition} has no leader that runs", find, timeout)

    def in_sync(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Return the nodes whose replicas of a partition are in sync now; empty if there is no such partition."""
        found = self._partition(topic, partition)
        return () if found is None else tuple(found[1])

    def controller(self, *, timeout: float = 30.0) -> int:
        """Return the node whose controller is active; wait until that is a running node."""
        return self._wait("no controller is active", self._controller, timeout)

    def wait_until_in_sync(self, *, timeout: float = 30.0) -> None:
        """Wait until every node knows that every replica of every partition is in sync.

        Raises:
            RuntimeError: a node is down or paused, so the wait would never end.
            TimeoutError: the time is over; the text names partitions that are behind.
        """
        seen: list[str] = []

        def are_in_sync() -> bool:
            for node_id, process in self._all().items():
                if not process.answers:
                    state = "stands still: call resume" if process.is_paused else "is down: call restart"
                    raise RuntimeError(f"node {node_id} {state}({node_id}) first")
            looks = self._looks()
            seen[:] = [text for look in looks for text in look["behind"]][:1]
            return not seen and self._knows_all(looks)

        try:
            self._wait("not every replica is in sync", are_in_sync, timeout)
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {', '.join(seen) or 'a node is not in the cluster'}") from None

    # Faults of a process

    def kill(self, node: int) -> None:
        """Kill a node (SIGKILL)."""
        with self._lock:
            self._process(node).kill()

    def restart(self, node: int) -> None:
        """Start a stopped node, or stop and start a running one; return when it serves."""
        with self._lock:
            if self._process(node).is_up:
                self.stop(node)
            self._launch([self._process(node)])

    def pause(self, node: int) -> None:
        """Pause a node (SIGSTOP): its connections stay open, and nothing answers."""
        with self._lock:
            process = self._process(node)
            if not process.is_up:
                raise RuntimeError(f"node {node} is down: call restart({node}) first")
            process.pause()

    def resume(self, node: int) -> None:
        """Let a paused node continue (SIGCONT)."""
        with self._lock:
            self._resume(self._process(node))

    def _resume(self, process: ClusterProcess) -> None:
        if process.is_paused:
            process.resume()
            process.ask("plan", self._plan.to_json(process.node.node_id), _COMMAND_S)

    def wipe(self, node: int) -> None:
        """Kill a node and take its disk away: the next `restart` begins with an empty one, as after a repair."""
        with self._lock:
            process = self._process(node)
            process.kill()
            empty_disk(process.node, process.cluster_id)

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
        """Return what clients have asked the running nodes since their start or the last reset, the oldest first.

        A node keeps its last 10,000 requests, and forgets them when it ends.

        Args:
            api: Kafka's name, such as `Produce`, or its key; None for every API.
            node, topic, partition, client_id, group: only requests to this node, and that name these.
        """
        wanted = [EVERY_API if api is None else api_key(api), checked_where(topic, partition, client_id, group)]
        nodes = self._all() if node is None else self._set(node)
        found: list[ObservedRequest] = []
        with self._lock:
            for process in (self._processes[each] for each in nodes):
                if process.answers:
                    with suppress(OSError):
                        answer = process.ask("requests", wanted, _COMMAND_S)
                        found += (ObservedRequest(*each) for each in answer["requests"])
        return sorted(found, key=lambda request: request.time_ms)

    def forget_requests(self) -> None:
        """Let `requests` return only what clients ask from now on."""
        with self._lock:
            for process in self._all().values():
                if process.answers:
                    with suppress(OSError):
                        process.ask("forget_requests", None, _COMMAND_S)

    # Leaders

    def move_leader(self, topic: str, partition: int = 0, to: int | None = None, *, timeout: float = 30.0) -> int:
        """Let another replica lead a partition, without a failure; return its node when every running node knows it.

        Args:
            to: a node with an in-sync replica; None for any that runs and does not lead.

        Raises:
            KafkaError: PREFERRED_LEADER_NOT_AVAILABLE if the replica is not in sync, or another error of the controller.
            ValueError: the node has no replica, or there is no other replica.
        """
        leader = self.leader(topic, partition, timeout=timeout)
        found = self._partition(topic, partition)
        assert found is not None, "a partition with a leader exists"
        _, isr, replicas = found
        if to is None:
            others = [each for each in isr if each != leader and each in self.running_nodes]
            if not others:
                raise ValueError(f"no other replica of {topic}-{partition} is in sync: it is on nodes {replicas}")
            to = others[0]
        elif to not in replicas:
            raise ValueError(f"node {to} has no replica of {topic}-{partition}: it is on nodes {replicas}")
        self._ask_controller("move", [topic, partition, [to, *(each for each in replicas if each != to)]])
        self._wait(
            f"not every node knows that node {to} leads {topic}-{partition}",
            lambda: all(look["partition"] and look["partition"][0] == to for look in self._looks([topic, partition])),
            timeout,
        )
        return to

    # Helpers

    def _node_ids(self) -> Collection[int]:
        return self._all().keys()

    def _all(self) -> dict[int, ClusterProcess]:
        if not self._processes:
            raise RuntimeError("this cluster does not run: call start(), or use it in a with statement")
        if self._pid != os.getpid():
            raise RuntimeError(
                f"this cluster belongs to process {self._pid}, and this is a fork of it: use its bootstrap_servers there"
            )
        return self._processes

    def _process(self, node: int) -> ClusterProcess:
        found = self._all().get(node)
        if found is None:
            raise ValueError(f"there is no node {node!r}: the nodes are 1 to {self._size}")
        return found

    def _set(self, nodes: Nodes) -> set[int]:
        found = {nodes} if isinstance(nodes, int) else set(nodes)
        for node in found:
            self._process(node)
        return found

    def _launch(self, processes: Iterable[ClusterProcess]) -> None:
        """Start nodes together, and wait until all serve."""
        launched = list(processes)
        peers = [[HOST, int(port), each.node.node_id] for each in self._processes.values() for port in each.node.ports]
        for process in launched:
            node_id = process.node.node_id
            process.launch(
                {
                    "settings": {**self._secured(process.node), **self._settings},
                    "peers": [peer for peer in peers if peer[2] != node_id],
                    "plan": self._plan.to_json(node_id),
                    "temporary": self._data_dir is None,
                }
            )
        deadline = time.monotonic() + _START_S
        for process in launched:
            process.await_ready(deadline, self._active_faults())

    def _secured(self, node: LocalNode) -> dict[str, str]:
        if self._security is None:
            return {}
        listeners = {"listeners": secured_listeners(node, self._security.protocol)}
        return listeners | self._security.node_settings(node.node_id, self._size, is_alone=False)

    def _await_all(self) -> None:
        self._wait("not every node knows all nodes", lambda: self._knows_all(self._looks()), _PATIENCE_S)

    def _knows_all(self, looks: Sequence[dict[str, Any]]) -> bool:
        return len(looks) == self._size and all(len(look["brokers"]) == self._size for look in looks)

    def _looks(self, partition: Sequence[object] | None = None) -> list[dict[str, Any]]:
        """Return what each running node knows; the newest last."""
        looks = []
        for node_id, process in self._all().items():
            if process.answers:
                with suppress(OSError):
                    looks.append({**process.ask("look", partition, _COMMAND_S), "node": node_id})
        return sorted(looks, key=lambda look: look["offset"])

    def _partition(self, topic: str, partition: int) -> Sequence[Any] | None:
        """Return leader, in-sync replicas and replicas of a partition, as the node with the newest metadata knows them."""
        looks = self._looks([topic, partition])
        found: Sequence[Any] | None = looks[-1]["partition"] if looks else None
        return found

    def _controller(self) -> int | None:
        # A controller that was cut off may not know that another one is active.
        leads = [look["node"] for look in self._looks() if look["leads"]]
        return leads[-1] if leads else None

    def _ask_controller(self, command: str, argument: object) -> dict[str, Any]:
        node = self._wait("no controller is active", self._controller, _PATIENCE_S)
        return self._process(node).ask(command, argument, _COMMAND_S)

    def _change(self, plan: FaultPlan) -> None:
        """Tell every node of a new plan; nodes that are down or paused hear of it when they run again."""
        before, self._plan = self._plan, plan
        told = [process for process in self._all().values() if process.answers and plan != before]
        for process in told:
            with suppress(OSError):
                process.ask("plan", plan.to_json(process.node.node_id), _COMMAND_S)

    def _active_faults(self) -> str:
        """Return the active faults, as an addition to the text of an error that they may explain."""
        faults = self._plan.in_words()
        return f" ({faults}: heal() ends the faults)" if faults else ""

    def _wait(self, so_far: str, ask: Callable[[], T | None], seconds: float) -> T:
        """Ask until the answer is true.

        Args:
            so_far: the state while the answer is not true, for the error.
        """
        deadline = time.monotonic() + seconds
        while not (answer := ask()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {seconds:g} s {so_far}{self._active_faults()}")
            time.sleep(_LOOK_S)
        return answer
