"""Who leads a partition that has neither in-sync nor eligible replicas."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.metadata.controller_view import ControllerView
from barnabas.metadata.partition_change_builder import Election
from barnabas.metadata.partition_leaders import Elections, Hosted
from barnabas.metadata.partition_registration import LEADER_RECOVERING, PartitionRegistration
from barnabas.protocol.messages import BrokerHeartbeatRequest
from tests.metadata.test_partition_leaders import TOPIC_ID, view

MINUTES = 300_000


def lost(*, fenced: tuple[int, ...] = (), last: tuple[int, ...] = (2,), **settings: Any) -> ControllerView:
    """A partition on the brokers 1 to 3, and on 4, which is not registered; its last known leader is 2."""
    made = view(-1, (), fenced=fenced, last_known_elr=last)
    clock = SimpleNamespace(now_ms=0)
    clock.monotonic_ms = lambda: clock.now_ms
    return made._replace(clock=clock, settings=made.settings._replace(**settings))  # type: ignore[arg-type]


def say(one: ControllerView, **ends: tuple[int, int]) -> None:
    """Note last epoch and end of the logs of brokers: b1=(3, 10)."""
    for name, (epoch, end) in ends.items():
        log = BrokerHeartbeatRequest.ReplicaLog(
            topic_id=TOPIC_ID, partition=0, current_leader_epoch=0, last_written_leader_epoch=epoch, log_end_offset=end
        )
        one.sessions.logs.note(int(name[1:]), 1, [log])


def later(one: ControllerView, ms: int) -> None:
    one.clock.now_ms += ms  # type: ignore[attr-defined]


def leader(one: ControllerView, election: Election | None = None) -> int:
    topic = one.image.topics.by_id[TOPIC_ID]
    at = Hosted(topic, 0, topic.partitions[0])
    record = Elections(one).builder(at, election).build(TOPIC_ID, 0)
    after: PartitionRegistration = at.partition if record is None else at.partition.changed_by(record)
    assert after.leader < 0 or (after.isr, after.leader_recovery_state) == ((after.leader,), LEADER_RECOVERING)
    return after.leader


@pytest.mark.parametrize(
    ("ends", "elected"),
    [
        ({"b1": (3, 10), "b2": (3, 9), "b3": (3, 8)}, 1),
        ({"b1": (3, 99), "b2": (3, 9), "b3": (4, 1)}, 3),
        # Of equal logs that of the last known leader, then that of the first replica.
        ({"b1": (3, 9), "b2": (3, 9), "b3": (3, 9)}, 2),
        ({"b1": (3, 9), "b2": (3, 8), "b3": (3, 9)}, 1),
        ({"b1": (-1, 0), "b2": (-1, 0), "b3": (-1, 0)}, 2),
    ],
)
def test_the_longest_log_leads_when_all_have_said_what_they_have(
    ends: dict[str, tuple[int, int]], elected: int
) -> None:
    one = lost()
    say(one, **ends)
    assert leader(one) == elected


def test_it_waits_for_every_replica_for_a_time() -> None:
    one = lost(unclean_recovery_timeout_ms=MINUTES)
    say(one, b1=(3, 10), b2=(3, 9))
    assert leader(one) == -1
    later(one, MINUTES - 1)
    assert leader(one) == -1
    later(one, 1)
    assert leader(one) == 1


def test_the_last_known_leader_is_waited_for_without_end() -> None:
    for one in (lost(), lost(fenced=(2,))):
        say(one, b1=(3, 10), b3=(3, 9))
        assert leader(one) == -1
        later(one, MINUTES + 1)
        assert leader(one) == -1
        assert leader(one, Election.UNCLEAN) == 1, "an operator waits for nobody"


def test_a_longer_log_that_cannot_lead_now_is_waited_for() -> None:
    one = lost(fenced=(1,))
    say(one, b1=(3, 10), b2=(3, 9), b3=(3, 8))
    assert leader(one) == -1
    later(one, MINUTES)
    assert leader(one) == 2


def test_beside_a_broker_that_does_not_speak_of_logs_the_last_known_leader_leads() -> None:
    one = lost()
    say(one, b1=(3, 10), b2=(3, 9))
    one.sessions.logs.note(3, 1, None)
    assert leader(one) == 2


def test_an_operators_election_takes_the_longest_log_that_is_known() -> None:
    one = lost()
    assert leader(one, Election.UNCLEAN) == 2, "no log is known"
    say(one, b3=(3, 8))
    assert leader(one, Election.UNCLEAN) == 3
    assert leader(lost(last=()), Election.UNCLEAN) == 1


def test_without_a_last_known_leader_it_waits_for_an_operator() -> None:
    one = lost(last=())
    say(one, b1=(3, 10), b2=(3, 9), b3=(3, 8))
    later(one, MINUTES + 1)
    assert leader(one) == -1
    assert leader(one, Election.UNCLEAN) == 1


def test_strategies() -> None:
    ends = {"b1": (3, 10), "b2": (3, 9), "b3": (3, 8)}
    nobody = lost(unclean_recovery_strategy="None")
    say(nobody, **ends)
    assert leader(nobody) == -1
    aggressive = lost(unclean_recovery_strategy="Aggressive")
    say(aggressive, b3=(3, 8))
    assert leader(aggressive) == 3


def test_a_replica_that_is_alone_waits_for_nobody() -> None:
    one = lost()
    topic = one.image.topics.by_id[TOPIC_ID]
    sole = topic.partitions[0]._replace(replicas=(4, 2))
    at = Hosted(topic, 0, sole)
    record = Elections(one).builder(at).build(TOPIC_ID, 0)
    assert record is not None
    assert record.leader == 2
