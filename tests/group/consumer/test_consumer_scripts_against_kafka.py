"""The golden scripts of consumer groups against running brokers: Apache Kafka answers as they say, and so do we over sockets.

A script plays in real time, so those are left out that need a broker's setting, a failover, a log that refuses, or a session's length.
Ids that the coordinator makes up for classic members are compared by the order in which they come.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conform.brokers import broker
from tests.group.consumer_wire import ConsumerWireRunner
from tests.group.real_time import assert_answers
from tests.group.wire_coordinator import answers as answers_of

PLAYED = (
    "consumer/group/commits_by_partition",
    "consumer/classic_members/rolling",
    "consumer/classic_members/static",
    "consumer/classic_members/timeouts",
    "consumer/heartbeat/fencing",
    "consumer/heartbeat/join_stay_leave",
    "consumer/heartbeat/other_groups",
    "consumer/rebalance/assignment_interval",
    "consumer/rebalance/topics_change",
    "consumer/timers/rebalance",
    "consumer/groups/administration",
    "consumer/migration/downgrade",
    "consumer/migration/downgrade_static",
    "consumer/migration/not_consumers",
    "consumer/migration/upgrade",
)

pytestmark = [pytest.mark.conform, pytest.mark.slow, pytest.mark.timeout(3600)]

_MADE_UP = re.compile(r"\b(?:[\w-]{22}|[a-z]+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[a-z]+\.\d+)(?![\w-])")


def answers(trace: str) -> dict[str, list[str]]:
    """The answers by command, with made-up ids numbered, members in the order of their ids, and without the history."""
    ids: dict[str, str] = {}
    trace = re.sub(r" metadata=\d+B", "", trace)  # It has the topics' names, prefixed.
    shown = _MADE_UP.sub(lambda match: ids.setdefault(match[0], f"#{len(ids) + 1}"), _without_log(trace))
    return answers_of(shown)


def _without_log(trace: str) -> str:
    return "\n".join(line for line in trace.splitlines() if not line.startswith(("log ", "  group ", "  epoch ")))


def test_scripts(tmp_path: Path) -> None:
    settings = {
        "group.consumer.min.session.timeout.ms": "6000",
        "group.consumer.regex.refresh.interval.ms": "10000",
        "group.initial.rebalance.delay.ms": "0",
    }
    with (
        broker("barnabas", tmp_path / "barnabas", settings) as ours,
        broker("apache-kafka", tmp_path / "apache-kafka", settings) as kafkas,
    ):
        assert_answers(PLAYED, (ours, kafkas), ConsumerWireRunner, answers)
