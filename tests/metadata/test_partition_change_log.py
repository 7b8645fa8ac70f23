"""What a node logs about leaders and in-sync replicas: what changed, where, and why; few lines, however many partitions."""

from __future__ import annotations

import logging

import pytest

from barnabas.metadata import partition_change_log
from barnabas.metadata.partition_change_log import GROUPS_MAX, LINES_MAX, NAMED_MAX, PartitionChangeLog
from barnabas.repeated_lines import RepeatedLines
from tests.at_once import at_once
from tests.coordinator.virtual_loop import VirtualLoop
from tests.metadata.script import ScriptRunner


class Watched:
    """A controller of three brokers, and what a node would log."""

    def __init__(self, *, node_id: int = 1, is_active: bool = True) -> None:
        self.script = ScriptRunner()
        self.watch = PartitionChangeLog(node_id, lambda: is_active)
        self.do("register 1", "register 2", "register 3")
        assert self.lines() == []

    def do(self, *commands: str) -> None:
        for command in commands:
            self.script.command(command)

    def lines(self) -> list[str]:
        """Publish what was committed since, and report it."""
        self.publish()
        return self.watch.report()

    def publish(self) -> None:
        commits = self.script.harness.commits
        for delta, image in commits:
            published = self.watch.publish(delta, image)
            if published is not None:
                at_once(published)
        commits.clear()


@pytest.fixture
def watched() -> Watched:
    made = Watched()
    made.do("create a assign=1+2+3", "create b assign=2+3+1,3+1+2")
    assert made.lines() == [], "a new partition is no change"
    return made


def test_a_broker_that_is_fenced(watched: Watched) -> None:
    watched.do("heartbeat 1 fence")
    assert watched.lines() == [
        "a-0: broker 2 leads in place of broker 1; broker 1 left the ISR (broker 1 is fenced)",
        "b-0, b-1: broker 1 left the ISR (broker 1 is fenced)",
    ]
    assert watched.lines() == []
    assert repr(watched.watch) == "<PartitionChangeLog groups=0>"


def test_a_broker_that_shuts_down(watched: Watched) -> None:
    watched.do("heartbeat 2 shut-down")
    assert watched.lines() == [
        "a-0, b-1: broker 2 left the ISR (broker 2 shuts down)",
        "b-0: broker 3 leads in place of broker 2; broker 2 left the ISR (broker 2 shuts down)",
    ]


def test_a_broker_that_restarts_before_it_is_fenced(watched: Watched) -> None:
    watched.do("advance 20000", "register 1 incarnation=other after=crash")
    assert "a-0: broker 2 leads in place of broker 1; broker 1 left the ISR (broker 1 has restarted)" in watched.lines()


def test_a_broker_that_is_unregistered(watched: Watched) -> None:
    watched.do("unregister 1")
    said = "a-0: broker 2 leads in place of broker 1; broker 1 left the ISR (broker 1 is not registered any more)"
    assert watched.lines()[0] == said


def test_a_replica_falls_behind_and_catches_up(watched: Watched) -> None:
    watched.do("alter-isr a:0 isr=1,2")
    assert watched.lines() == [], "its broker may be about to be fenced"
    assert watched.lines() == ["a-0: broker 3 left the ISR (broker 3 fell behind)"]
    watched.do("alter-isr a:0 isr=1")
    watched.lines()
    watched.do("alter-isr a:0 isr=1,2,3")
    assert watched.lines() == [
        "a-0: broker 2 left the ISR (broker 2 fell behind)",
        "a-0: brokers 2, 3 joined the ISR (brokers 2, 3 caught up)",
    ]


def test_the_cause_is_that_of_the_record_which_comes_last(watched: Watched) -> None:
    """The record that fences a broker follows all batches of its partitions."""
    watched.do("heartbeat 1 fence")
    commits = watched.script.harness.commits
    fenced = commits[-1]
    assert fenced[0].cluster is not None
    fenced[0].cluster, cluster = None, fenced[0].cluster
    before = commits[-1][1]._replace(cluster=commits[-1][1].cluster._replace(brokers=cluster.image.brokers))
    commits[-1] = (fenced[0], before)
    assert watched.lines() == [
        "a-0: broker 2 leads in place of broker 1; broker 1 left the ISR (broker 1 is about to be fenced)",
        "b-0, b-1: broker 1 left the ISR (broker 1 is about to be fenced)",
    ]


def test_leaders_are_lost_and_come_back(watched: Watched) -> None:
    watched.do("create c assign=3")
    watched.do("heartbeat 3 fence")
    assert "c-0: no broker leads in place of broker 3; broker 3 left the ISR (broker 3 is fenced)" in watched.lines()
    watched.do("heartbeat 3")
    assert "c-0: broker 3 leads; broker 3 joined the ISR (broker 3 can lead again)" in watched.lines()


def test_the_preferred_leader_is_elected_again(watched: Watched) -> None:
    watched.do("heartbeat 1 fence", "heartbeat 1", "alter-isr a:0 isr=2,3,1")
    watched.lines()
    watched.do("elect preferred a:0")
    assert watched.lines() == ["a-0: broker 1 leads in place of broker 2 (the preferred leader is elected)"]


def test_an_unclean_election_says_so(watched: Watched) -> None:
    watched.do("create u assign=1+2 min.insync.replicas=1", "alter-isr u:0 isr=1")
    watched.lines(), watched.lines()
    watched.do("heartbeat 1 fence", "config topic u set unclean.leader.election.enable=true", "elect unclean u:0")
    assert any(
        line.startswith("u-0: broker 2 leads") and "(unclean election, records may be lost)" in line
        for line in watched.lines()
    )


def test_a_reassignment_says_so(watched: Watched) -> None:
    watched.do("create m assign=1", "reassign m:0 to=2", "alter-isr m:0 isr=1,2")
    lines = watched.lines()
    assert any(line.startswith("m-0: ") and line.endswith("(reassigned)") for line in lines), lines


def test_another_node_logs_the_partitions_that_it_leads() -> None:
    watched = Watched(node_id=2, is_active=False)
    watched.do("create a assign=1+2+3", "create b assign=2+3+1", "create c assign=3+1+2", "heartbeat 1 fence")
    assert watched.lines() == [
        "a-0: broker 2 leads in place of broker 1; broker 1 left the ISR (broker 1 is fenced)",
        "b-0: broker 1 left the ISR (broker 1 is fenced)",
    ]


def test_a_deleted_topic_is_no_change(watched: Watched) -> None:
    watched.do("delete a")
    assert watched.lines() == []


def test_many_partitions_are_few_lines(watched: Watched) -> None:
    watched.do("create many assign=" + ",".join(["1+2+3", "1+3+2"] * 500), "heartbeat 1 fence")
    lines = watched.lines()
    assert len(lines) == 3
    names = ", ".join(f"many-{index}" for index in range(1, 2 * NAMED_MAX, 2))
    more = f"and {500 - NAMED_MAX} more"
    assert f"{names} {more}: broker 3 leads in place of broker 1; broker 1 left the ISR (broker 1 is fenced)" in lines


def test_a_report_tells_so_many_groups_apart(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    assert GROUPS_MAX > 10
    monkeypatch.setattr(partition_change_log, "GROUPS_MAX", 1)
    watched.do("heartbeat 1 fence")
    assert watched.lines() == [
        "a-0: broker 2 leads in place of broker 1; broker 1 left the ISR (broker 1 is fenced)",
        "2 more partitions have another leader or other in-sync replicas",
    ]


def test_the_lines_of_a_minute_are_bounded(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    """A client may elect leaders as often as it likes."""
    caplog.set_level(logging.INFO, "barnabas.metadata")
    lines = RepeatedLines(VirtualLoop())
    for _ in range(LINES_MAX):
        watched.do("alter-isr a:0 isr=1,2", "alter-isr a:0 isr=1,2,3")
        watched.publish()
        watched.watch.log(lines)
    lines.close()
    assert len(caplog.records) == LINES_MAX + 1
    assert "lines about leaders and in-sync replicas in the last minute" in caplog.messages[-1]
