"""Elections at an interval: the first replica leads again, and settings that change while nobody leads."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.metadata import periodic_elections
from barnabas.metadata.controller_view import ControllerResult
from barnabas.metadata.quorum_controller import _change
from barnabas.protocol import messages
from tests.metadata.controller_harness import ControllerHarness
from tests.metadata.script import ScriptRunner


def run(runner: ScriptRunner, *commands: str) -> list[str]:
    """The trace of some commands."""
    return [line for command in commands for line in runner.command(command)]


def quiet(**settings: Any) -> ScriptRunner:
    runner = ScriptRunner()
    runner.harness = ControllerHarness(broker_session_timeout_ms=10**9, **settings)
    run(runner, "register 1", "register 2")
    return runner


def test_the_first_replica_leads_again_after_the_interval() -> None:
    runner = quiet(leader_imbalance_check_interval_ms=5000)
    run(runner, "create a assign=1+2,2+1", "heartbeat 1 fence", "heartbeat 1", "write-change a:0 isr=2,1", "advance 1")
    assert run(runner, "advance 4999") == []
    assert run(runner, "advance 1") == ["log PartitionChangeRecord partition_id=0 topic_id=#4 leader=1"]
    assert run(runner, "advance 5000") == []


def test_a_broker_that_must_not_balance_does_not() -> None:
    runner = quiet(leader_imbalance_check_interval_ms=5000, auto_leader_rebalance_enable=False)
    run(runner, "create a assign=1+2", "heartbeat 1 fence", "heartbeat 1", "write-change a:0 isr=2,1", "advance 1")
    assert run(runner, "advance 9000") == []


def test_a_topic_that_accepts_losses_later_gets_a_leader_then() -> None:
    runner = quiet(unclean_leader_election_interval_ms=7000)
    run(runner, "create a assign=1+2", "create b assign=1+2", "heartbeat 2 fence", "heartbeat 2", "heartbeat 1 fence")
    run(runner, "config topic a set unclean.leader.election.enable=true", "advance 1")
    assert run(runner, "advance 6999") == []
    assert run(runner, "advance 1") == [
        "log PartitionChangeRecord partition_id=0 topic_id=#4 isr=[2] leader=2 leader_recovery_state=1 "
        "eligible_leader_replicas=[] last_known_elr=[]"
    ]
    assert runner.harness.controller.counts.unclean_elections == 1
    assert run(runner, "advance 7000") == []
    assert runner.harness.controller.counts.unclean_elections == 1


def test_a_look_that_finds_much_is_continued_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic_elections, "ELECTIONS_MAX", 2)
    runner = quiet(leader_imbalance_check_interval_ms=5000, unclean_leader_election_interval_ms=5000)
    run(runner, "create a assign=1+2,1+2,1+2,1+2,1+2 unclean.leader.election.enable=true", "advance 1")
    harness = runner.harness
    topic_id = harness.controller.image.topics.by_name["a"].topic_id
    record = messages.PartitionChangeRecord
    for index in range(5):
        change = record(partition_id=index, topic_id=topic_id, leader=2)
        controller = harness.active
        controller._append(_change(controller._view(), ControllerResult(None, [change])), None)
    harness.commits.clear()
    run(runner, "advance 5000")
    ends = [len(delta.topics.changed[topic_id].partition_changes) for delta, _ in harness.commits]
    assert ends == [2, 2, 1]
    assert repr(harness.active._elections) == "<PeriodicElections balance=1010001 unclean=1010001>"


def test_at_most_so_many_unclean_elections_in_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic_elections, "ELECTIONS_MAX", 2)
    runner = quiet(unclean_leader_election_interval_ms=5000)
    run(runner, "create a assign=1+2,1+2,1+2", "heartbeat 2 fence", "heartbeat 2", "heartbeat 1 fence")
    run(runner, "config topic a set unclean.leader.election.enable=true", "advance 1")
    runner.harness.commits.clear()
    runner.harness.now_ms += 5000
    runner.harness.controller.tick()
    assert len(runner.harness.commits) == 2
