"""`consumer_test` of kafkatest: three members of a group read one partition, which is written meanwhile, while brokers and members bounce.

Bounces of brokers cause no rebalance. After clean ends of members no record is read twice. Bounces of static members revoke nothing. A
member with the `group.instance.id` of another is admitted or not, as its protocol says.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.kafkatest.bounces import bounce
from tests.cluster.kafkatest.groups import Group
from tests.cluster.kafkatest.verifiable import VerifiableProducer
from tests.cluster.node_process import KINDS
from tests.cluster.scenarios.transactions import partition_for
from tests.cluster.topics import create_topic
from tests.cluster.waiting import wait_for
from tests.conform.tool_process import ToolProcess

pytestmark = [
    pytest.mark.conform,
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.parametrize("has_own_controller", [False], ids=[""]),
    pytest.mark.parametrize("kind", list(KINDS)),
]

PER_SECOND = 200
SOME = 50
ROUNDS = 2
PROTOCOLS = ["classic", "consumer"]


class Stage:
    """A topic of one partition that is written all the time, and groups that read it."""

    def __init__(self, cluster: Cluster, tools: ToolProcess, folder: Path, topic: str, stack: ExitStack) -> None:
        self.cluster, self.tools, self.folder, self.topic = cluster, tools, folder, topic
        self._stack = stack
        create_topic(cluster, topic, [[1, 2, 3]], {"min.insync.replicas": "2"})
        self.producer = VerifiableProducer(cluster, folder, topic, per_second=PER_SECOND)
        stack.callback(self.producer.stop, is_clean=False)
        self.producer.start()

    def group(self, protocol: str, *, are_static: bool = False, tag: str = "member", count: int = 3) -> Group:
        """Return a group that has not started."""
        made = Group(
            self.cluster, self.folder, self.topic, protocol, name=f"{self.topic}-group", are_static=are_static, tag=tag,
            count=count,
        )  # fmt: skip
        self._stack.callback(made.close)
        if protocol == "consumer":
            made.keep_sessions(self.cluster, self.tools)
        return made

    def stable_group(self, protocol: str, *, are_static: bool = False) -> Group:
        """Return a group whose members have joined, and which reads."""
        made = self.group(protocol, are_static=are_static)
        made.start()
        made.await_joined()
        made.await_more(SOME)
        # A group that has just formed may still rebalance.
        before = -1
        while before != made.rebalances:
            before = made.rebalances
            made.await_more(2 * PER_SECOND)
        return made

    def roll(self, group: Group, *, is_clean: bool = True) -> None:
        """Bounce each broker, and see the group go on after each."""
        for node in self.cluster.brokers:
            bounce(self.cluster, node, is_clean=is_clean)
            group.await_joined()
            group.await_more(SOME)


@pytest.fixture
def stage(request: pytest.FixtureRequest, cluster: Cluster, tools: ToolProcess, tmp_path: Path) -> Iterator[Stage]:
    with ExitStack() as stack:
        topic = "".join(each if each.isalnum() else "-" for each in request.node.name)[:100]
        yield Stage(cluster, tools, tmp_path, topic, stack)


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "hard"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_roll_of_brokers_is_no_rebalance(stage: Stage, protocol: str, is_clean: bool) -> None:
    group = stage.stable_group(protocol)
    before = group.rebalances
    for _ in range(ROUNDS):
        stage.roll(group, is_clean=is_clean)
    assert group.rebalances == before, f"{group.rebalances - before} rebalances"
    group.stop()
    if is_clean:
        group.check_read_once()


@pytest.mark.parametrize("bounced", ["all", "rolling"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_bounce(stage: Stage, protocol: str, bounced: str) -> None:
    group = stage.stable_group(protocol)
    for _ in range(ROUNDS):
        bounce_members(group, bounced)
    group.stop()
    group.check_read_once()


def bounce_members(group: Group, bounced: str, *, kept: int = 0) -> None:
    """End members and start them again, one after the other or all at once; but for the first ones."""
    members = group.members[kept:]
    for chosen in [members] if bounced == "all" else [[each] for each in members]:
        for each in chosen:
            each.stop()
        for each in chosen:
            each.start()
        group.await_joined()
        group.await_more(SOME)


@pytest.mark.parametrize("bounced", ["all", "rolling"])
@pytest.mark.parametrize("are_static", [True, False], ids=["static", "dynamic"])
def test_a_static_member_that_returns_takes_nothing_from_the_others(
    stage: Stage, are_static: bool, bounced: str
) -> None:
    """With eager assignment: when a dynamic member leaves, all members lose all partitions for a moment."""
    group = stage.stable_group("classic", are_static=are_static)
    before = group.members[0].revoked_count
    for _ in range(ROUNDS):
        bounce_members(group, bounced, kept=1)
    revoked = group.members[0].revoked_count - before
    assert bool(revoked) is not are_static, f"{revoked} revocations"
    group.stop()
    group.check_read_once()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_static_members_new_id_outlives_its_coordinator(stage: Stage, protocol: str) -> None:
    group = stage.stable_group(protocol, are_static=True)
    bounce_members(group, "all")
    stage.roll(group)
    stage.roll(group, is_clean=False)
    group.stop()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_who_comes_with_the_instance_id_of_another(stage: Stage, protocol: str) -> None:
    """Classic: the newcomers take the ids, and the old members are fenced. Consumer: the newcomers end until the old members have left."""
    group = stage.stable_group(protocol, are_static=True)
    others = stage.group(protocol, are_static=True, tag="other", count=2)
    before = group.rebalances
    others.start()
    if protocol == "classic":
        wait_for("both newcomers are members", lambda: len(others.joined) == 2)
        wait_for("both whose ids they have are fenced", lambda: len(group.joined) == 1)
        ended, error = group.members[:2], "FencedInstanceIdException"
    else:
        ended, error = others.members, "UnreleasedInstanceIdException"
    for each in ended:
        each.await_end()
        assert error in each.last_lines(), f"{each} ended otherwise:\n{each.last_lines()}"
    if protocol == "consumer":
        group.await_more(SOME)
        assert not others.rebalances, f"{others} has joined"
        assert len(group.joined) == 3
        assert group.rebalances == before, f"{group.rebalances - before} rebalances"
        group.stop()
        others.start()
        wait_for("both newcomers are members", lambda: len(others.joined) == 2)


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "hard"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_broker_that_stays_away_is_no_rebalance(stage: Stage, protocol: str, is_clean: bool) -> None:
    """The broker is the group's coordinator."""
    group = stage.stable_group(protocol)
    before = group.rebalances
    coordinator = stage.cluster.leader_of(
        "__consumer_offsets", partition_for(group.name, len(stage.cluster.partitions("__consumer_offsets")))
    )
    coordinator.stop() if is_clean else coordinator.kill()
    group.await_more(5 * PER_SECOND)
    assert group.rebalances == before, f"{group.rebalances - before} rebalances"
    group.stop()
    group.check_read_once()
