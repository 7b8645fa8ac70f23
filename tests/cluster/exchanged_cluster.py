"""A cluster whose nodes change their program: in place, on the same directory with the same `server.properties`, ports and id, or beside,
where a new node of another id takes the place of the old one."""

from __future__ import annotations

import base64
import random
import subprocess
import uuid
from pathlib import Path

import apache_kafka
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from tests.cluster.cluster import Cluster
from tests.cluster.node_process import KINDS, NodeProcess
from tests.cluster.secured_nodes import SecuredNodes
from tests.cluster.typed_commands import ServiceManager, typed
from tests.cluster.waiting import wait_for
from tests.cluster.way_in import way_in

QUORUMS = ("static", "dynamic", "dedicated")
# On a busy machine six JVMs take longer to start than a broker waits for its controllers.
SETTINGS = {"initial.broker.registration.timeout.ms": "300000"}
WEEK_MS = 604_800_000
STOPPING_SECONDS = 2.0
STARTING_SECONDS = {"barnabas": 4.0, "apache-kafka": 12.0}
"""Within this time after the signal, or after the start, a node is killed."""
COMMAND_SECONDS, BESIDE_SECONDS = 8.0, 25.0
"""Within this time after it was typed, a command is killed; BESIDE_SECONDS with a node that comes beside another one."""
BESIDE = 10
"""What the id of a node that comes is more than that of the node whose place it takes."""


class ExchangedCluster(Cluster):
    """Three brokers, with as many controllers in them or beside them.

    Args:
        folder: everything is in it.
        quorum: `static` (kraft.version 0), `dynamic` (kraft.version 1), or `dedicated` (static, three controllers of their own).
        secured: what secures every listener; None for plain text.
    """

    def __init__(self, folder: Path, quorum: str, secured: SecuredNodes | None = None) -> None:
        self.quorum = quorum
        self._changes = 0
        self._retired: dict[int, NodeProcess] = {}
        super().__init__(
            "apache-kafka", folder, has_own_controller=quorum == "dedicated", controllers=3, settings=SETTINGS,
            secured=secured,
        )  # fmt: skip
        if quorum == "dynamic":
            voters = ",".join(
                f"{each.node_id}@{each.host}:{each.controller_port}:{_random_id()}" for each in self.controllers
            )
            for node in self.nodes.values():
                node.format_options = (*node.format_options, "--initial-controllers", voters)

    def properties(self, node: NodeProcess) -> dict[str, str]:
        found = super().properties(node)
        if self.quorum == "dynamic":
            del found["controller.quorum.voters"]
            servers = ",".join(f"{each.host}:{each.controller_port}" for each in self.controllers)
            found["controller.quorum.bootstrap.servers"] = servers
        return found

    def exchange(self, node_id: int, kind: str, kill: random.Random | None = None, *, by_command: bool = False) -> str:
        """Stop a node, start it as the other kind, and wait until all replicas are in sync; return what was done, in words.

        Args:
            kill: decides whether it is killed while it stops or while it starts, and when; None for neither.
            by_command: `barnabas adopt` is typed, and may be killed too; otherwise the node is stopped and started without it.
        """
        node = self[node_id]
        is_killed_first = kill is not None and kill.random() < 0.5
        done = [f"node {node_id} to {kind}"]
        changed = KINDS[kind].__new__(KINDS[kind])
        vars(changed).update(vars(node))

        def stop() -> None:
            if kill is not None and is_killed_first:
                done.append(f"{_killed(node, kill.uniform(0, STOPPING_SECONDS), is_asked=True)} while stopping")
            else:
                node.stop()
            changed.process = None
            self.nodes[node_id] = changed

        def start() -> None:
            if kill is not None and not is_killed_first:
                changed.launch()
                done.append(
                    f"{_killed(changed, kill.uniform(0, STARTING_SECONDS[kind]), is_asked=False)} while starting"
                )
            changed.start()

        if by_command:
            words = [*self._words(kind), "--config", str(node.config)]
            done.append(typed(words, ServiceManager(stop, start), _moment(kill, COMMAND_SECONDS)))
        else:
            stop()
            start()
        self.await_in_sync(sorted(self.all_topics()))
        self._change_something()
        return ", ".join(done)

    def replace(self, node_id: int, kind: str, kill: random.Random | None = None) -> str:
        """Let a node of another id, on another directory, take the place of a node by `barnabas adopt --beside`; return what was done.

        The id is `BESIDE` more, or on the way back `BESIDE` less; that node has its directory still, and starts on it.

        Args:
            kill: decides when the command is killed; None for never.
        """
        node = self[node_id]
        new_id = node_id - BESIDE if node_id > BESIDE else node_id + BESIDE
        coming = self._retired.pop(new_id, None) or KINDS[kind](self.folder / f"node-{new_id}", new_id, node.roles)
        self._retired[node_id] = node
        self.nodes[new_id] = coming
        coming.write_config(self.properties(coming))
        words = [*self._words(kind), "--config", str(coming.config), "--beside", str(node_id)]

        def start() -> None:
            # As a service manager, which starts nothing twice.
            if not coming.is_up:
                coming.launch()

        manager = ServiceManager(node.stop, start)
        done = typed(words, manager, _moment(kill, BESIDE_SECONDS))
        del self.nodes[node_id]
        coming.await_ready()
        self.await_in_sync(sorted(self.all_topics()))
        self._change_something()
        return f"node {node_id} replaced by node {new_id} of {kind}, {done}"

    def _words(self, kind: str) -> list[str]:
        """Return what is typed after `barnabas adopt`."""
        release = ".".join(apache_kafka.VERSION.split(".")[:2])
        verb = ["next"] if kind == "barnabas" else ["back", "--kafka-release", release]
        login = [] if self.secured is None else ["--command-config", str(self.secured.client)]
        return [*verb, "-b", self.bootstrap_servers, *login]

    def _change_something(self) -> None:
        """See that the quorum takes a change of metadata.

        This does not ask who leads it: brokers of Apache Kafka forward DescribeQuorum to the last controller they knew, which answers
        that it is none, and that does not let them look for another one. A change does.
        """
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0, **way_in.library})
        topic = min(each for each in self.all_topics() if not each.startswith("_"))
        self._changes += 1
        entry = ConfigEntry("retention.ms", str(WEEK_MS + self._changes), incremental_operation=AlterConfigOpType.SET)

        def is_taken() -> bool:
            asked = admin.incremental_alter_configs(
                [ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])], request_timeout=10
            )
            try:
                for each in asked.values():
                    each.result(15)
            except KafkaException:
                return False
            return True

        wait_for("the quorum takes a change", is_taken)


def _moment(kill: random.Random | None, within_seconds: float) -> float | None:
    return None if kill is None else kill.uniform(0, within_seconds)


def _killed(node: NodeProcess, seconds: float, *, is_asked: bool) -> str:
    """Kill a node after this time; return when that was, in words."""
    assert node.process is not None
    if is_asked:
        node.process.terminate()
    try:
        node.process.wait(seconds)
    except subprocess.TimeoutExpired:
        node.kill()
        return f"killed after {seconds:.1f} s"
    assert is_asked, f"{node} ended by itself:\n{node.last_lines()}"
    node.kill()
    return f"would be killed after {seconds:.1f} s, but had ended"


def _random_id() -> str:
    """Return an id of a directory, as Apache Kafka writes it; none begins with a dash."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
