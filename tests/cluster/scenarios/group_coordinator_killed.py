"""The coordinator of a group dies: the members read on, and no committed offset goes back."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.cluster.cluster import Cluster
from tests.cluster.load import QUICK, Load
from tests.cluster.node_process import NodeProcess
from tests.cluster.topics import create_safe_topic
from tests.cluster.waiting import NeverCame, wait_for
from tests.conform.tool_process import ToolProcess

RECORDS = 100
ANSWER_SECONDS = 60.0


def play_classic(cluster: Cluster, _: ToolProcess) -> None:
    play(cluster, "classic-group", {"group.protocol": "classic", "session.timeout.ms": 10_000})


def play_consumer(cluster: Cluster, _: ToolProcess) -> None:
    play(cluster, "consumer-group", {"group.protocol": "consumer"})


class Members:
    """Two members of a group, polled in turn, which commit what they have read.

    Attributes:
        read: how often each record was read.
        committed: the last offset of each partition whose commit was acknowledged.
    """

    def __init__(self, cluster: Cluster, group: str, topic: str, protocol: dict[str, str | int]) -> None:
        self._topic = topic
        self.read: dict[int, int] = {}
        self.committed: dict[int, int] = {}
        self._members = [
            Consumer({
                "bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest",
                "enable.auto.commit": False, **protocol, **QUICK,
            })
            for _ in range(2)
        ]  # fmt: skip
        for member in self._members:
            member.subscribe([topic])

    def work(self) -> None:
        """Let each member read for a moment and commit."""
        for member in self._members:
            ends: dict[int, int] = {}
            for message in member.consume(500, timeout=0.2):
                if message.error() is None:
                    value, partition, offset = message.value(), message.partition(), message.offset()
                    assert value is not None
                    assert partition is not None
                    assert offset is not None
                    self.read[int(value)] = self.read.get(int(value), 0) + 1
                    ends[partition] = offset + 1
            if ends:
                self._commit(member, ends)

    def _commit(self, member: Consumer, ends: dict[int, int]) -> None:
        wanted = [TopicPartition(self._topic, index, offset) for index, offset in ends.items()]
        try:
            done = member.commit(offsets=wanted, asynchronous=False)
        except KafkaException:
            return
        for each in done:
            if each.error is None:
                self.committed[each.partition] = each.offset

    def describe(self) -> str:
        """Return what each member has, for a message."""
        found = []
        for member in self._members:
            positions = {each.partition: each.offset for each in member.position(member.assignment())}
            found.append(f"a member at {positions}")
        return f"{', '.join(found)}; committed {self.committed}; {len(self.read)} read"

    def close(self) -> None:
        for member in self._members:
            member.close()


def coordinator_of(cluster: Cluster, group: str) -> NodeProcess:
    """Return the coordinator of a group, waiting until that is a node that is up."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})

    def ask() -> NodeProcess | None:
        future = admin.describe_consumer_groups([group], request_timeout=10)[group]
        if future.exception(ANSWER_SECONDS) is not None:
            return None
        node = cluster.nodes.get(future.result().coordinator.id)
        return node if node is not None and node.is_up else None

    return wait_for(f"{group} has a coordinator", ask)


def committed_offsets(cluster: Cluster, group: str, topic: str) -> dict[int, int]:
    """Return the group's committed offsets, as a consumer outside the group is told."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, **QUICK})
    try:
        found = consumer.committed([TopicPartition(topic, index) for index in range(3)], timeout=ANSWER_SECONDS)
        return {each.partition: each.offset for each in found}
    finally:
        consumer.close()


def play(cluster: Cluster, name: str, protocol: dict[str, str | int]) -> None:
    create_safe_topic(cluster, name)
    members = Members(cluster, name, name, protocol)

    def read_on(load: Load) -> None:
        goal = len(members.committed and members.read) + RECORDS

        def has_read() -> bool:
            members.work()
            return len(members.read) >= goal and len(members.committed) == 3

        wait_for(f"{name} reads and commits {RECORDS} more", has_read)

    try:
        with Load(cluster.bootstrap_servers, name, 3, per_second=300) as load:
            read_on(load)
            coordinator = coordinator_of(cluster, name)
            before = dict(members.committed)
            # Otherwise no other replica may lead after it.
            cluster.await_in_sync([name, "__consumer_offsets"])
            coordinator.kill()
            read_on(load)
            assert coordinator_of(cluster, name) is not coordinator
            found = committed_offsets(cluster, name, name)
            back = {index: (offset, found[index]) for index, offset in before.items() if found[index] < offset}
            assert not back, f"committed offsets went back: {back}"
            cluster.start_again(coordinator)
            read_on(load)

        def all_is_read() -> bool:
            members.work()
            return len(members.read) == load.sent

        wait_for("the group has read all that was sent", all_is_read)
    except NeverCame as error:
        raise NeverCame(f"{error}; {members.describe()}") from None
    finally:
        members.close()
    assert committed_offsets(cluster, name, name) == members.committed
    cluster.await_in_sync([name])
