"""The golden scripts against running brokers: Apache Kafka answers as they say, and so do we over sockets.

A script plays in real time, so those are left out that need settings, a failover, or an hour. Two more are left to ours alone:
where a leader is chosen among several members, Kafka takes the first of a hash map.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conform.brokers import broker
from tests.group.real_time import assert_answers
from tests.group.wire_coordinator import WireRunner, answers

PLAYED = (
    "offset_manager/commit_fencing",
    "classic/rebalance/cooperative",
    "classic/join_group/eager_join_of_three",
    "classic/sync_group/follower_waits_for_sync",
    "classic/sync_group/join_while_completing",
    "offset_manager/offset_delete",
    "classic/join_group/pending_member_expires",
    "classic/join_group/protocol_selection",
    "classic/rebalance/rebalance_timeout",
    "classic/heartbeat/requests_of_strangers",
    "classic/rebalance/session_timeout",
    "group_shard/simple_group",
    "classic/heartbeat/static_member_fenced",
    "classic/join_group/static_member_restarts",
    "classic/rebalance/static_members_keep_their_place",
)
TOPICS = ("t", "u", "x")

pytestmark = [pytest.mark.conform, pytest.mark.slow, pytest.mark.timeout(3600)]


def test_scripts(tmp_path: Path) -> None:
    settings = {"group.initial.rebalance.delay.ms": "1000"}
    with (
        broker("barnabas", tmp_path / "barnabas", settings) as ours,
        broker("apache-kafka", tmp_path / "apache-kafka", settings) as kafkas,
    ):
        for under_test in (ours, kafkas):
            topics = [NewTopic(topic, 4, 1) for topic in TOPICS]
            admin = AdminClient({"bootstrap.servers": under_test.bootstrap_servers})
            for created in admin.create_topics(topics).values():
                created.result(30)
        assert_answers(PLAYED, (ours, kafkas), WireRunner, answers)
