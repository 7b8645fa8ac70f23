"""The golden scripts against running brokers: Apache Kafka answers as they say, and so do we over sockets.

A script plays in real time, so those are left out that need settings, a failover, or an hour. Two more are left to ours alone:
where a leader is chosen among several members, Kafka takes the first of a hash map.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conform.brokers import broker
from tests.coordinator.scripts_of import SCRIPTS
from tests.coordinator.wire_coordinator import WireRunner, answers

PLAYED = (
    "offset_manager/commit_fencing",
    "rebalance/cooperative",
    "join_group/eager_join_of_three",
    "sync_group/follower_waits_for_sync",
    "sync_group/join_while_completing",
    "offset_manager/offset_delete",
    "join_group/pending_member_expires",
    "join_group/protocol_selection",
    "rebalance/rebalance_timeout",
    "group_membership/requests_of_strangers",
    "rebalance/session_timeout",
    "group_shard/simple_group",
    "group_membership/static_member_fenced",
    "join_group/static_member_restarts",
    "rebalance/static_members_keep_their_place",
)
TOPICS = ("t", "u", "x")

pytestmark = [pytest.mark.conform, pytest.mark.slow, pytest.mark.timeout(300)]


def play(name: str, address: tuple[str, int]) -> str:
    return WireRunner(address, f"{name.replace('/', '-')}-").run((SCRIPTS / f"{name}.txt").read_text())


@pytest.mark.parametrize("name", ["barnabas", "apache-kafka"])
def test_scripts(name: str, tmp_path: Path) -> None:
    """All at once, as they mostly wait."""
    with broker(name, tmp_path, {"group.initial.rebalance.delay.ms": "1000"}) as under_test:
        topics = [NewTopic(topic, 4, 1) for topic in TOPICS]
        admin = AdminClient({"bootstrap.servers": under_test.bootstrap_servers})
        for created in admin.create_topics(topics).values():
            created.result(30)
        host, _, port = under_test.bootstrap_servers.partition(":")
        with ThreadPoolExecutor(len(PLAYED)) as threads:
            played = list(threads.map(lambda script: play(script, (host, int(port))), PLAYED))
    for script, trace in zip(PLAYED, played, strict=True):
        assert (script, answers(trace)) == (script, answers((SCRIPTS / f"{script}.txt").read_text()))
