"""Verdicts about groups on a real broker; what happens between two looks is done in the pause."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner

import barnabas
from barnabas.cli.group import group
from barnabas.cli.group_verdicts import GroupVerdict, verdicts
from barnabas.client.admin import Admin, NewTopic, TopicPartition
from barnabas.client.group_offsets import CommittedOffset
from barnabas.client.lag_verdicts import Verdict
from barnabas.client.partition_records import append_batch
from barnabas.records.builder import build_batch

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def admin() -> Iterator[Admin]:
    with barnabas.Broker() as broker, Admin(broker.bootstrap_servers) as found:
        found.create_topics([NewTopic("t", 2, 1)])
        for where in (T0, T1):
            produce(found, where, 10)
        yield found


def produce(admin: Admin, where: TopicPartition, count: int) -> None:
    append_batch(admin.cluster, where, build_batch([(0, None, b"v", ())] * count))


def commit(admin: Admin, name: str, **offsets: int) -> None:
    wanted = {TopicPartition("t", int(key[1:])): CommittedOffset(offset) for key, offset in offsets.items()}
    assert not any(admin.alter_group_offsets(name, wanted).values())


def judged(admin: Admin, pause: Callable[[int], None]) -> GroupVerdict:
    return verdicts(admin, ["g"], 3, pause)["g"]


def test_a_group_that_nobody_runs_stops(admin: Admin) -> None:
    commit(admin, "g", p0=4, p1=10)
    found = judged(admin, lambda number: None)
    assert found == GroupVerdict(Verdict.STOP, 6, {T0: Verdict.STOP, T1: Verdict.OK})
    assert found.worst == ["t-0"]


def test_a_group_that_goes_back_rewinds(admin: Admin) -> None:
    commit(admin, "g", p0=4)
    assert judged(admin, lambda number: commit(admin, "g", p0=4 - number)).verdict is Verdict.REWIND


def test_a_group_that_is_too_slow_is_warned_of_and_one_that_catches_up_is_not(admin: Admin) -> None:
    def slow(number: int) -> None:
        commit(admin, "g", p0=4 + number)
        produce(admin, T0, 3)

    commit(admin, "g", p0=4)
    assert judged(admin, slow).verdict is Verdict.WARN
    found = judged(admin, lambda number: commit(admin, "g", p0=6 + number))
    assert (found.verdict, found.worst) == (Verdict.OK, [])


def test_a_group_with_members_stalls(admin: Admin) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    commit(admin, "g", p0=4)
    settings = {"bootstrap.servers": ",".join(f"{host}:{port}" for host, port in admin.cluster.bootstrap)}
    consumer = confluent_kafka.Consumer({**settings, "group.id": "g", "enable.auto.commit": False})
    consumer.subscribe(["t"])
    assert consumer.poll(20) is not None
    assert judged(admin, lambda number: None).verdict is Verdict.STALL
    consumer.close()


def test_a_group_that_is_deleted_meanwhile_has_no_verdict(admin: Admin) -> None:
    commit(admin, "g", p0=4)
    commit(admin, "h", p0=10)
    found = verdicts(admin, ["g", "h"], 2, lambda number: admin.delete_groups(["g"]).clear())
    assert {name: each.verdict for name, each in found.items()} == {"h": Verdict.OK}


def test_the_command_shows_the_verdict_and_where(admin: Admin) -> None:
    commit(admin, "g", p0=4)
    address = ",".join(f"{host}:{port}" for host, port in admin.cluster.bootstrap)
    result = CliRunner().invoke(
        group, ["list", "--verdict", "--samples", "2", "--every", "1ms", "-b", address, "-o", "json"]
    )
    (row,) = json.loads(result.stdout)
    assert (row["group"], row["verdict"], row["lag"], row["partitions"]) == ("g", "STOP", 6, ["t-0"])
