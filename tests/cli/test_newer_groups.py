"""Share and streams groups in `barnabas group`: described like the others, and a share group's offsets are not committed ones."""

import json
import time
import uuid
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.cli.group import group
from barnabas.client.admin import Admin, CommittedOffset, NewTopic, TopicPartition
from barnabas.client.cluster import Cluster
from barnabas.protocol import messages

PATIENCE_SECONDS = 60
SETTINGS = {"group.share.assignment.interval.ms": "0", "group.streams.assignment.interval.ms": "0"}

pytestmark = pytest.mark.slow


@pytest.fixture
def address() -> Iterator[str]:
    with barnabas.Broker(config=SETTINGS) as running, Admin(running.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("t", 2, 1)])
        yield running.bootstrap_servers


def run(address: str, *arguments: str) -> Result:
    return CliRunner().invoke(group, [*arguments, "-b", address])


def join_share_group(address: str, member: str) -> None:
    """Joins group q and goes on until it shares both partitions of topic t."""
    with Cluster(address) as cluster:
        connection = cluster.connection(cluster.coordinator("q"))
        epoch, held = 0, 0
        deadline = time.monotonic() + PATIENCE_SECONDS
        while held < 2:
            assert time.monotonic() < deadline, "the member is given nothing"
            answer = connection.request(
                messages.ShareGroupHeartbeatRequest(
                    group_id="q", member_id=member, member_epoch=epoch, subscribed_topic_names=None if epoch else ["t"]
                )
            )
            assert not answer.error_code, answer.error_message
            epoch = answer.member_epoch
            if answer.assignment is not None:
                held = sum(len(topic.partitions) for topic in answer.assignment.topic_partitions)


def join_streams_group(address: str, member: str) -> None:
    """Joins group app, of one subtopology that reads topic t, and goes on until it has both tasks."""
    request_class = messages.StreamsGroupHeartbeatRequest
    with Cluster(address) as cluster:
        connection = cluster.connection(cluster.coordinator("app"))
        epoch, tasks = 0, 0
        deadline = time.monotonic() + PATIENCE_SECONDS
        while tasks < 2:
            assert time.monotonic() < deadline, "the member is given nothing"
            request = request_class(group_id="app", member_id=member, member_epoch=epoch)
            if not epoch:
                request.rebalance_timeout_ms = 60_000
                request.process_id = member
                request.client_tags = []
                request.topology = request_class.Topology(
                    epoch=1, subtopologies=[request_class.Subtopology(subtopology_id="0", source_topics=["t"])]
                )
                request.active_tasks = request.standby_tasks = request.warmup_tasks = []
            answer = connection.request(request)
            assert not answer.error_code, answer.error_message
            epoch = answer.member_epoch
            if answer.active_tasks is not None:
                tasks = sum(len(each.partitions) for each in answer.active_tasks)


def test_a_share_group(address: str) -> None:
    member = str(uuid.UUID(int=1))
    join_share_group(address, member)
    found = json.loads(run(address, "describe", "q", "--output", "json").stdout)[0]
    assert (found["type"], found["state"], found["balancer"], found["members"]) == ("share", "Stable", "simple", 1)
    assert [(row["topic"], row["partition"], row["log_end_offset"]) for row in found["partitions"]] == [
        ("t", 0, 0),
        ("t", 1, 0),
    ]
    assert {row["member_id"] for row in found["partitions"]} == {member}
    shown = run(address, "describe", "q", "--members").stdout
    assert member in shown
    assert "t-0,t-1" in shown
    refused = run(address, "reset-offsets", "q", "--topic", "t", "--to-earliest", "--execute")
    assert refused.exit_code == 1
    assert "is a share group, which commits no offsets" in refused.stderr


def test_a_streams_group(address: str) -> None:
    member = str(uuid.UUID(int=1))
    join_streams_group(address, member)
    found = json.loads(run(address, "describe", "app", "--output", "json").stdout)[0]
    assert (found["type"], found["state"], found["members"]) == ("streams", "Stable", 1)
    assert [(row["topic"], row["partition"], row["member_id"]) for row in found["partitions"]] == [
        ("t", 0, member),
        ("t", 1, member),
    ]
    refused = run(address, "reset-offsets", "app", "--topic", "t", "--to-latest", "--execute")
    assert refused.exit_code == 1
    assert "with 1 member" in refused.stderr


def test_what_nobody_knows_stays_unknown_beside_what_is_known(address: str) -> None:
    with Admin(address) as admin:
        admin.alter_group_offsets("c", {TopicPartition("t", 0): CommittedOffset(0)})
    both = run(address, "describe", "nope", "c", "-s")
    assert both.exit_code == 1
    assert "GROUP        c" in both.stdout
    assert both.stderr == "error: group nope does not exist (`barnabas group list` shows which exist)\n"
