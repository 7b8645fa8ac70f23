"""A quorum grows from one voter to three and shrinks to one, by Kafka's tools, with its data: the same on either kind.

So does it by `barnabas cluster voter`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from barnabas.main import command_group
from tests.cluster.growing_cluster import GrowingCluster
from tests.cluster.load import QUICK
from tests.cluster.node_process import KINDS
from tests.cluster.records import read_partition
from tests.cluster.tool_steps import neutral, quorum_line
from tests.cluster.topics import create_topic
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

NOBODY = "AAAAAAAAAAAAAAAAAAAAAw"
RECORDS = 500


class Story:
    """What happens to one cluster.

    Attributes:
        printed: what each call of the tool printed, both streams, with its exit code.
        values: the records of `orders` at the end.
    """

    def __init__(self, cluster: GrowingCluster, tools: ToolProcess, folder: Path) -> None:
        self.cluster, self.tools, self.folder = cluster, tools, folder
        self.printed: dict[str, str] = {}
        self.values: list[str] = []

    def call(self, name: str, *args: str, at_controller: bool = False, of_node: int | None = None) -> None:
        cluster = self.cluster
        up = ",".join(node.bootstrap_servers for node in cluster.brokers if node.is_up)
        to = ("--bootstrap-controller", cluster.controller_addresses) if at_controller else ("--bootstrap-server", up)
        own = () if of_node is None else ("--command-config", str(cluster[of_node].config))

        def ask() -> str | None:
            """A former leader may not know yet that it leads no more."""
            found = self.tools.run("metadata-quorum", *to, *own, *args)
            return None if "NotLeaderOrFollowerException" in found else found

        text = neutral(wait_for("the leader answers", ask) or "", cluster, self.folder)
        self.printed[name] = "\n".join(sorted(_same_words(line) for line in text.splitlines()))

    def remove(self, name: str, node_id: int, directory_id: str | None = None, *, at_controller: bool = False) -> None:
        self.call(
            name, "remove-controller", "--controller-id", str(node_id),
            "--controller-directory-id", directory_id or self.cluster.directory_id(node_id), at_controller=at_controller,
        )  # fmt: skip

    def play(self) -> None:
        cluster = self.cluster
        self._start(1)
        create_topic(cluster, "orders", [[1]])
        self._produce(range(RECORDS))
        self._start(2)
        self._start(3)
        cluster.await_quorum({1}, {2, 3})
        self.call("status of one", "describe", "--status")
        self.call("add", "add-controller", of_node=2)
        cluster.await_quorum({1, 2}, {3})
        self.call("add again", "add-controller", of_node=2)
        self.call("add at a controller", "add-controller", of_node=3, at_controller=True)
        cluster.await_quorum({1, 2, 3}, set())
        self.call("status of three", "describe", "--status")
        self.call("replication of three", "describe", "--replication", at_controller=True)
        self.remove("remove another directory", 2, NOBODY)
        self.remove("remove a node that is not there", 9, NOBODY)
        self.remove("remove the leader", cluster.await_quorum({1, 2, 3}, set()))
        two = set(cluster.nodes) - {1}
        leader = cluster.await_quorum(two, {1})
        self._produce(range(RECORDS, 2 * RECORDS))
        self.remove("remove the leader of two", leader, at_controller=True)
        last = cluster.await_quorum(two - {leader}, {1, leader})
        self.remove("remove the last", last)
        self.call("status of the last", "describe", "--status")
        create_topic(cluster, "later", [[1]])
        # A broker of Kafka's waits for the controller when it stops.
        for node in sorted(cluster.nodes.values(), key=lambda each: each.node_id == last):
            node.stop()
        for node in cluster.nodes.values():
            node.launch()
        for node in cluster.nodes.values():
            node.await_ready()
        assert cluster.await_quorum({last}, {1, 2, 3} - {last}) == last
        wait_for("the topics are there", lambda: cluster.all_topics() >= {"orders", "later"})
        self.values = [value.decode() for _, value in read_partition(cluster.bootstrap_servers, "orders", 0)]

    def _start(self, node_id: int) -> None:
        self.cluster.start_again(self.cluster[node_id])

    def _produce(self, numbers: range) -> None:
        failures: list[object] = []
        producer = Producer({"bootstrap.servers": self.cluster[1].bootstrap_servers, "acks": "all", **QUICK})
        for number in numbers:
            producer.produce("orders", b"%06d" % number, on_delivery=lambda error, _: error and failures.append(error))
        assert producer.flush(120) == 0
        assert not failures


def _same_words(line: str) -> str:
    """Return a line of output without what is chance: directories, the order of a set, which of several nodes led."""
    line = quorum_line(line)
    keys = sorted(re.findall(r"ReplicaKey\([^)]*\)", line))
    if len(keys) > 1:
        line = re.sub(r"ReplicaKey\([^)]*\)(, )?", "", line) + " ".join(keys)
    if "emoved" in line or "Cannot remove" in line or "CurrentVoters" in line or "CurrentObservers" in line:
        line = re.sub(r"\d+", "N", line)
    return line


Played = dict[str, Story]


@pytest.fixture(scope="module")
def played(tools: ToolProcess, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The story of each kind."""
    found = {}
    for kind in KINDS:
        folder = tmp_path_factory.mktemp(kind)
        cluster = GrowingCluster(kind, folder)
        try:
            found[kind] = Story(cluster, tools, folder)
            found[kind].play()
        finally:
            cluster.close()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_all_records_stay(kind: str, played: Played) -> None:
    assert played[kind].values == [f"{number:06}" for number in range(2 * RECORDS)]


def test_the_tool_prints_the_same(played: Played) -> None:
    assert played["barnabas"].printed == played["apache-kafka"].printed


@pytest.mark.parametrize("kind", KINDS)
def test_our_own_command_changes_the_voters(kind: str, tmp_path: Path) -> None:
    cluster = GrowingCluster(kind, tmp_path)

    def voter(*words: str) -> str:
        arguments = ["cluster", "voter", *words, "-b", cluster[1].bootstrap_servers]
        result = CliRunner().invoke(command_group(), arguments, prog_name="barnabas")
        return result.stdout if result.exit_code == 0 else result.stderr

    try:
        for node_id in (1, 2, 3):
            cluster.start_again(cluster[node_id])
        cluster.await_quorum({1}, {2, 3})
        assert "is the only voter" in voter("remove", "1")
        for node_id in (2, 3):
            node = cluster[node_id]
            assert f"{node_id}     follower" in voter(
                "add", str(node_id), "--at", f"{node.host}:{node.controller_port}"
            )
        leader = cluster.await_quorum({1, 2, 3}, set())
        assert "votes already" in voter("add", "3", "--at", "localhost:1")
        voter("remove", str(leader))
        cluster.await_quorum({1, 2, 3} - {leader}, {leader})
        create_topic(cluster, "later", [[1]])
    finally:
        cluster.close()
