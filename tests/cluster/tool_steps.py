"""Calls of Kafka's tools on a cluster, with what happens to the cluster between them; what a call prints must not depend on the kind.

Which node leads the quorum and how far its log is do depend on it, as do ports, ids and times: `neutral` and `view` take them out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess

TOPICS = ("orders", "alone")


@dataclass(frozen=True)
class Step:
    """One call, or a change of the cluster that is no call and prints nothing.

    Attributes:
        tool, args: of the call; `{folder}` in an argument is where `files` are written.
        compare: how `view` looks at the output.
        change: done to the cluster, in place of a call.
    """

    name: str
    tool: str = ""
    args: tuple[str, ...] = ()
    compare: str = "lines"
    files: dict[str, str] = field(default_factory=dict)
    change: Callable[[Cluster], None] | None = None


def call(name: str, tool: str, args: str, **more: object) -> Step:
    return Step(name, tool, tuple(args.split()), **more)  # type: ignore[arg-type]


def change(name: str, what: Callable[[Cluster], None]) -> Step:
    return Step(name, change=what)


def kill_third(cluster: Cluster) -> None:
    """End node 3, and wait until the others have gone on without it."""
    cluster[3].kill()
    wait_for(
        "node 3 has left the in-sync replicas of orders, and alone has no leader",
        lambda: (
            all(3 not in each.isr for each in cluster.partitions("orders")) and cluster.partition("alone", 0).leader < 0
        ),
    )
    cluster.active_controller()
    cluster.await_brokers()


def start_third(cluster: Cluster) -> None:
    cluster.start_again(cluster[3])
    cluster.await_brokers()
    cluster.await_in_sync(TOPICS)


def await_leader(topic: str, index: int, leader: int) -> Callable[[Cluster], None]:
    """Wait until every broker knows the leader of a partition: the controller answers an election before the brokers know of it."""
    return lambda cluster: cluster.await_partition(topic, index, lambda found: found.leader == leader)


def await_moved(topic: str, index: int, replicas: list[int]) -> Callable[[Cluster], None]:
    """Wait until a partition has these replicas, all in sync."""
    return lambda cluster: cluster.await_partition(
        topic, index, lambda found: found.replicas == replicas and set(found.isr) == set(replicas)
    )


def reassignment(*moves: tuple[str, int, list[int]]) -> str:
    wanted = [{"topic": topic, "partition": index, "replicas": replicas} for topic, index, replicas in moves]
    return json.dumps({"version": 1, "partitions": wanted})


MOVES = {"move.json": reassignment(("orders", 0, [3, 2, 1]), ("alone", 0, [1]))}
THROTTLED = {"throttled.json": reassignment(("alone", 0, [2, 1]))}
THROTTLED_FILE = "--reassignment-json-file {folder}/throttled.json"
BAD = {"bad.json": reassignment(("orders", 0, [1, 2, 9]))}
LOOKS = (
    ("describe", "topics", "--describe --topic orders"),
    ("describe alone", "topics", "--describe --topic alone"),
    ("under replicated", "topics", "--describe --under-replicated-partitions"),
    ("unavailable", "topics", "--describe --unavailable-partitions"),
    ("under min isr", "topics", "--describe --under-min-isr-partitions"),
    ("at min isr", "topics", "--describe --at-min-isr-partitions"),
    ("quorum status", "metadata-quorum", "describe --status"),
    ("quorum replication", "metadata-quorum", "describe --replication"),
)


def looks(when: str) -> list[Step]:
    """Return the calls that change nothing."""
    compare = {"metadata-quorum": "quorum"}
    return [call(f"{name} {when}", tool, args, compare=compare.get(tool, "lines")) for name, tool, args in LOOKS]


STEPS = (
    call("create", "topics", "--create --topic orders --replica-assignment 1:2:3,2:3:1,3:1:2 --config min.insync.replicas=2"),
    call("create alone", "topics", "--create --topic alone --replica-assignment 3"),
    call("create with too many copies", "topics", "--create --topic many --partitions 1 --replication-factor 4"),
    call("create on a node that is not there", "topics", "--create --topic nowhere --replica-assignment 1:9"),
    change("settle", lambda cluster: cluster.await_in_sync(TOPICS)),
    *looks("at first"),
    call("cluster id", "cluster", "cluster-id", compare="words"),
    call("endpoints", "cluster", "list-endpoints", compare="sorted"),
    call("elect where nothing is to do", "leader-election", "--election-type preferred --topic orders --partition 0"),
    change("kill", kill_third),
    *looks("without node 3"),
    call("elect a dead node", "leader-election", "--election-type preferred --topic orders --partition 2"),
    call("elect uncleanly", "leader-election", "--election-type unclean --topic alone --partition 0"),
    change("start", start_third),
    *looks("when node 3 is back"),
    call("elect", "leader-election", "--election-type preferred --topic orders --partition 2"),
    change("elected", await_leader("orders", 2, 3)),
    call("elect again", "leader-election", "--election-type preferred --topic orders --partition 2"),
    call("elect all", "leader-election", "--election-type preferred --all-topic-partitions"),
    call("elect what is not there", "leader-election", "--election-type preferred --topic missing --partition 0"),
    call("describe after the election", "topics", "--describe --topic orders"),
    call("reassign", "reassign-partitions", "--execute --reassignment-json-file {folder}/move.json", files=MOVES),
    change("moved", await_moved("orders", 0, [3, 2, 1])),
    change("moved alone", await_moved("alone", 0, [1])),
    call("reassigned", "reassign-partitions", "--verify --reassignment-json-file {folder}/move.json"),
    call("reassignments", "reassign-partitions", "--list"),
    call("describe after the reassignment", "topics", "--describe --topic orders"),
    call("describe alone after the reassignment", "topics", "--describe --topic alone"),
    call("reassign with a throttle", "reassign-partitions", f"--execute --throttle 1000000 {THROTTLED_FILE}", files=THROTTLED),
    change("moved with a throttle", await_moved("alone", 0, [2, 1])),
    call("throttles", "configs", "--describe --entity-type topics --entity-name alone"),
    call("throttle of a broker", "configs", "--describe --entity-type brokers --entity-name 1", compare="sorted"),
    call("reassigned with a throttle", "reassign-partitions", f"--verify {THROTTLED_FILE}"),
    call("throttles are gone", "configs", "--describe --entity-type topics --entity-name alone"),
    call("cancel nothing", "reassign-partitions", f"--cancel {THROTTLED_FILE}"),
    call("reassign to a node that is not there", "reassign-partitions", "--execute --reassignment-json-file {folder}/bad.json", files=BAD),
    call("features", "features", "describe", compare="features"),
    call("offsets", "get-offsets", "--topic orders"),
    call("delete", "topics", "--delete --topic alone"),
    call("list", "topics", "--list", compare="sorted"),
)  # fmt: skip


def play(cluster: Cluster, tools: ToolProcess, folder: Path) -> dict[str, str]:
    """Run every step in order; return what each call printed, both streams, with its exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    printed = {}
    for step in STEPS:
        if step.change is not None:
            step.change(cluster)
            continue
        for name, text in step.files.items():
            (folder / name).write_text(text)
        args = [each.format(folder=folder) for each in step.args]
        address = ("--bootstrap-server", cluster.bootstrap_servers)
        # This tool wants its action first.
        text = (
            tools.run(step.tool, *args, *address) if step.tool == "cluster" else tools.run(step.tool, *address, *args)
        )
        printed[step.name] = neutral(text, cluster, folder)
    return printed


def neutral(text: str, cluster: Cluster, folder: Path) -> str:
    """Take out what must differ between two clusters: ports, folders, identities, times, and what the tools themselves log."""
    text = (
        text.replace(str(folder), "FOLDER").replace(str(cluster.folder), "NODES").replace(cluster.cluster_id, "CLUSTER")
    )
    for node in cluster.nodes.values():
        for port, what in ((node.port, "PORT"), (node.controller_port, "CONTROLLER")):
            if port is not None:
                text = re.sub(rf"\b{port}\b", f"{what}{node.node_id}", text)
    text = re.sub(r"TopicId: \S+", "TopicId: ID", text)
    # Which one is active is chance.
    text = re.sub(r"Local controller \d+", "Local controller N", text)
    text = re.sub(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+\]", "[T]", text)
    noise = r"OpenJDK|\[T\] (WARN|INFO)|\tat (java\.base/)?(java\.lang\.reflect|jdk\.internal\.reflect|Tools)\."
    return "\n".join(line.rstrip() for line in text.splitlines() if not re.match(noise, line))


def view(text: str, how: str) -> object:
    """Return what of an output is compared."""
    if how == "sorted":
        return sorted(re.sub(r"\s+", " ", line).strip() for line in text.splitlines())
    if how == "words":
        return re.sub(r"-?\d+", "N", text).split()
    if how == "quorum":
        return sorted(quorum_line(line) for line in text.splitlines())
    if how == "features":
        rows = re.findall(r"Feature: (\S+)\s+SupportedMinVersion: (\S+)\s.*FinalizedVersionLevel: (\S+)", text)
        assert rows, text
        # A newer release finalizes newer versions of these; the rest has the same level.
        newer = ("metadata.version", "share.version")
        return {(name, least, "" if name in newer else level) for name, least, level in rows}
    return text


def quorum_line(line: str) -> str:
    """Return a line of metadata-quorum with figures made equal, but for the ids of nodes; who leads is not compared."""
    row = re.match(r"(\d+)\s+(\S+)\s+(?:-?\d+\s+){4}(\w+)\s*$", line)
    if row:
        is_voter = row[3] in ("Leader", "Follower")
        return (
            f"node {row[1]}, directory {'none' if set(row[2]) == {'A'} else 'known'}, {'voter' if is_voter else row[3]}"
        )
    named = re.match(r"(LeaderId|LeaderEpoch|HighWatermark|MaxFollowerLag|MaxFollowerLagTimeMs):\s+-?\d+$", line)
    if named:
        return f"{named[1]}: a number"
    # Directory ids are random, but whether one is known is not.
    return re.sub(r"\b(?!A{22}\b)[-\w]{22}\b", "DIRECTORY", re.sub(r"\s+", " ", line).strip())


def why_different(step: Step, ours: str, theirs: str) -> str:
    """Return both sides of what differs; "" if nothing does."""
    first, second = view(ours, step.compare), view(theirs, step.compare)
    return "" if first == second else f"barnabas:\n{first}\nApache Kafka:\n{second}"
