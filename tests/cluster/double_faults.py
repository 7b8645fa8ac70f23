"""Faults that meet: two nodes at once, a node that dies while replicas move, a voter that leaves.

    two killed                  both at once, and they return one after the other: until the first is back there is no majority
    wiped beside a paused one   one is paused while another loses its disk: of three replicas only the third has everything
    killed while moved          replicas are on their way to a node, or away from it, when it is killed
    voter removed               a controller, often the leader, is removed from the voters; it adds itself again

The second fault would break what a quorum and in-sync replicas promise if the third node lacked something at that moment. So, after
the pause, it waits until the other nodes have the same metadata log and are in sync in every partition of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.client.admin import Admin
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.reassignments import alter_reassignments
from barnabas.client.wire import BlockingConnection
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import RemoveRaftVoterRequest
from tests.cluster import views
from tests.cluster.nemesis import SESSION_SECONDS, Nemesis
from tests.cluster.node_process import NodeProcess
from tests.cluster.topics import REPLICAS
from tests.cluster.waiting import wait_for
from tests.cluster.way_in import way_in

MOVED_PARTITIONS = 6


class DoubleFaults:
    """More faults for a `Nemesis`, which chooses them and waits after each.

    Args:
        has_changing_voters: controllers join the quorum by themselves, so that one may be removed.
    """

    def __init__(self, nemesis: Nemesis, *, has_changing_voters: bool) -> None:
        self._nemesis, self._cluster, self._rng = nemesis, nemesis.cluster, nemesis.rng
        nemesis.faults |= {
            "two killed": self._two_killed,
            "wiped beside a paused one": self._wiped_beside_paused,
            "killed while moved": self._killed_while_moved,
        }
        if has_changing_voters:
            nemesis.faults["voter removed"] = self._voter_removed

    def _two(self) -> list[NodeProcess]:
        return self._rng.sample(list(self._cluster.nodes.values()), 2)

    def _two_killed(self) -> str:
        nodes = self._two()
        for node in nodes:
            node.kill()
        seconds = self._nemesis.hold(0, SESSION_SECONDS)
        self._rng.shuffle(nodes)
        for node in nodes:
            self._cluster.start_again(node)
            seconds += self._nemesis.hold(0, SESSION_SECONDS)
        return f"nodes {', '.join(str(each.node_id) for each in nodes)}, {seconds:.1f} s"

    def _wiped_beside_paused(self) -> str:
        paused, wiped = self._two()
        others = [each for each in self._cluster.nodes.values() if each is not paused]
        paused.pause()
        wait_for("the others have everything", lambda: self._are_alike(others))
        wiped.kill()
        wiped.wipe()
        self._nemesis.hold(0, SESSION_SECONDS)
        wiped.format(self._cluster.cluster_id)
        wiped.launch()
        seconds = self._nemesis.hold(0, 2 * SESSION_SECONDS)
        # With its new directory the node may not be a voter any more. Then it needs the paused node to become one.
        paused.go_on()
        wiped.await_ready()
        return f"node {wiped.node_id}, node {paused.node_id} paused, {seconds:.1f} s"

    def _are_alike(self, nodes: Sequence[NodeProcess]) -> bool:
        """Return whether these have the same metadata log, one of them leads it, and all are in sync in every partition of theirs."""
        ids = {each.node_id for each in nodes}
        found = views.quorum(nodes[0].address)
        if found is None or found.leader_id not in ids:
            return False
        ends = {each.replica_id: each.log_end_offset for each in found.current_voters if each.replica_id in ids}
        topics = views.metadata(nodes[0].address, *views.all_topics(nodes[0].address)).topics.values()
        partitions = [each for topic in topics for each in topic.partitions]
        return len(set(ends.values())) == 1 and all(
            ids & set(each.replicas) <= set(each.isr) and each.leader in ids for each in partitions
        )

    def _killed_while_moved(self) -> str:
        node = self._nemesis.anyone()
        ids = sorted(self._cluster.nodes)
        others = [each for each in ids if each != node.node_id]
        with Admin(self._cluster.bootstrap_servers, security=way_in.security) as admin:
            topics = [each for each in sorted(self._cluster.all_topics()) if not each.startswith("__")]
            partitions = self._rng.sample(
                [
                    TopicPartition(each, index)
                    for each in topics
                    for index in range(len(self._cluster.partitions(each)))
                ],
                MOVED_PARTITIONS,
            )
            away, back = partitions[::2], partitions[1::2]
            admin.reassign(self._orders(back, others), at_once=MOVED_PARTITIONS)
            alter_reassignments(admin.cluster, self._orders(away, others) | self._orders(back, ids))
            node.kill()
            seconds = self._nemesis.hold(0, 2 * SESSION_SECONDS)
            self._cluster.start_again(node)
            wait_for("no replica moves", lambda: not admin.list_reassignments())
            found = admin.reassign(self._orders(partitions, ids), at_once=MOVED_PARTITIONS)
            failed = {each: error for each, error in found.items() if error is not None}
            assert not failed, f"replicas are not moved: {failed}"
        return f"node {node.node_id}, {seconds:.1f} s"

    def _orders(self, partitions: list[TopicPartition], ids: list[int]) -> dict[TopicPartition, list[int]]:
        return {each: self._rng.sample(ids, min(REPLICAS, len(ids))) for each in partitions}

    def _voter_removed(self) -> str:
        node = self._nemesis.anyone()
        wait_for(f"voter {node.node_id} is removed", lambda: self._remove(node.node_id))
        return f"node {node.node_id}"

    def _remove(self, node_id: int) -> bool:
        address = self._cluster.any_address()
        found = views.quorum(address)
        voter = found and next((each for each in found.current_voters if each.replica_id == node_id), None)
        if not voter:
            return False
        request = RemoveRaftVoterRequest(
            cluster_id=self._cluster.cluster_id, voter_id=node_id, voter_directory_id=voter.replica_directory_id
        )
        with BlockingConnection(*address, timeout_ms=views.ANSWER_MS, security=way_in.security) as connection:
            answer = connection.request(request)
        # A change may be under way, and the leader may have changed.
        return bool(answer.error_code == ErrorCode.NONE)
