"""A server.properties and a directory change hands: Apache Kafka, barnabas, Apache Kafka again. Nothing is lost, all read the same.

Apache Kafka formats the directory with its defaults and lives a made-up week on it (`same_directory/week.py`). Barnabas starts with the
same file, reads everything (`same_directory/observed.py`), and lives another day. Apache Kafka reads what is there then. Each program
stops in order, or is killed with everything that clients had been told was done.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conform.brokers import await_leaders
from tests.conform.same_directory.nodes import Barnabas, Kafka, image_in
from tests.conform.same_directory.observed import observe
from tests.conform.same_directory.week import TOPICS, admin, live_a_week, live_another_day

# Both write down once a minute where DeleteRecords has moved a log's start to; a kill before that brings the records back.
NOT_SYNCED = "trimmed-"
pytestmark = [pytest.mark.conform, pytest.mark.timeout(600)]


@pytest.mark.parametrize("end", ["stopped", pytest.param("killed", marks=pytest.mark.long)])
def test_a_directory_changes_hands_and_back(end: str, tmp_path: Path) -> None:
    kafka = Kafka(tmp_path, heap="512m")
    barnabas = Barnabas(tmp_path, port=kafka.port)
    try:
        kafka.start()
        paying = live_a_week(kafka.bootstrap_servers)
        await_leaders(kafka.bootstrap_servers, {name: count for name, (count, _) in TOPICS.items()})
        week = observe(kafka.bootstrap_servers)
        _end(kafka, end)
        barnabas.start()
        _same(observe(barnabas.bootstrap_servers), week, end)
        live_another_day(barnabas.bootstrap_servers)
        day = observe(barnabas.bootstrap_servers)
        assert day != week
        _end(barnabas, end)
        kafka.start()
        await_leaders(kafka.bootstrap_servers, {name: count for name, (count, _) in TOPICS.items() if name != "again"})
        _same(observe(kafka.bootstrap_servers), day, end)
        _end(kafka, "stopped")
        _assert_stopped_in_order(tmp_path / "data")
        del paying
    finally:
        barnabas.kill()
        kafka.kill()


def _end(node: Kafka | Barnabas, end: str) -> None:
    # An administrator of librdkafka does not always find its coordinator again.
    admin.cache_clear()
    if end == "killed":
        node.kill()
    else:
        node.stop()
        _assert_stopped_in_order(node.data_dir)


def _assert_stopped_in_order(data_dir: Path) -> None:
    """Both leave the same: a fenced broker, and partitions that wait for it as eligible leader replica (KIP-966)."""
    image = image_in(data_dir)
    assert [broker.fenced for broker in image.cluster.brokers.values()] == [True]
    states = {
        (partition.leader, partition.isr, partition.elr, partition.last_known_elr)
        for topic in image.topics.by_name.values()
        for partition in topic.partitions.values()
    }
    assert states == {(-1, (), (1,), (1,))}


def _same(found: dict[str, Any], expected: dict[str, Any], end: str) -> None:
    """Compare part by part: a difference shows where it is."""
    different = {}
    for part in expected:
        ours, theirs = found[part], expected[part]
        if not isinstance(theirs, dict):
            ours, theirs = {part: ours}, {part: theirs}
        for name in theirs | ours:
            if end == "killed" and name.startswith(NOT_SYNCED):
                continue
            if theirs.get(name) != ours.get(name):
                different[part, name] = theirs.get(name), ours.get(name)
    assert different == {}
