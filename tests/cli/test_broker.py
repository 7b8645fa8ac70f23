"""`barnabas broker` in JSON, against a broker in memory and a real one. The screens show its tables."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from unittest import mock

from click.testing import CliRunner

import barnabas
from barnabas.cli.session import Session
from barnabas.client.admin import LogDir, ReplicaSize, TopicPartition
from barnabas.main import command_group
from tests.cli.made_up_cluster import MadeUpAdmin, pretend


def run(*arguments: str) -> Any:
    found = CliRunner().invoke(command_group(), ["broker", *arguments, "-o", "json"], prog_name="barnabas")
    assert found.exit_code == 0, found.stderr
    return json.loads(found.stdout)


def test_partitions_are_counted_per_broker() -> None:
    with pretend():
        rows = {each["broker"]: (each["state"], each["leaders"], each["replicas"]) for each in run("list")}
    assert rows == {1: ("serving", 17, 19), 2: ("serving", 0, 19), 3: ("fenced", 0, 19)}


def test_sizes_are_bytes_in_json_and_may_be_of_one_topic() -> None:
    with pretend():
        first, _, failed = run("logdirs", "--topic", "orders")
        (other, _) = run("logdirs", "2", "--topic", "payments")
    assert (first["size_bytes"], first["usable_bytes"]) == (6 * 1_073_741_824 + 15, 381_554_061_312)
    assert (failed["error"], failed["total_bytes"], failed["replicas"]) == ("KAFKA_STORAGE_ERROR", None, [])
    assert (other["broker"], other["replicas"], other["size_bytes"]) == (2, [], 0)


def test_a_fenced_broker_is_not_called_absent() -> None:
    with pretend():
        found = CliRunner().invoke(command_group(), ["broker", "logdirs", "3"], prog_name="barnabas")
    assert (found.exit_code, found.stderr) == (1, "error: broker 3 does not serve (start it, then ask again)\n")


def test_sizes_of_a_mistyped_topic_are_an_error_with_the_nearest_name() -> None:
    with pretend():
        found = CliRunner().invoke(command_group(), ["broker", "logdirs", "--topic", "ordes"], prog_name="barnabas")
    assert (found.exit_code, found.stdout) == (1, "")
    assert found.stderr.startswith("error: topic ordes does not exist; did you mean orders?")


def test_a_real_broker_describes_itself() -> None:
    # Of its own: a client of another test may make the shared one create an internal topic.
    with barnabas.Broker() as broker:
        broker.create_topic("t", partitions=2)
        (found,) = run("describe", "-b", broker.bootstrap_servers)
    assert (found["broker"], found["leaders"], found["replicas"]) == (1, 2, 2)
    assert {each["topic"] for each in found["log_dirs"][0]["replicas"]} == {"t"}
    assert "listeners" in {each["key"] for each in found["configs"]}


class Moving(MadeUpAdmin):
    """Broker 1 moves t-0 from /a to /b."""

    def describe_log_dirs(self, broker_ids: Iterable[int] | None = None, **_: object) -> dict[int, list[LogDir]]:
        at = TopicPartition("t", 0)
        moving = LogDir("/a", None, [ReplicaSize(at, 100, 0, False)], 1000, 500)
        target = LogDir("/b", None, [ReplicaSize(at, 40, 60, True)], 1000, 500)
        return {1: [moving, target]}


def test_the_copy_of_a_replica_that_moves_is_marked_and_is_no_replica() -> None:
    with mock.patch.object(Session, "admin", return_value=Moving()):
        there, target = run("logdirs", "1")
        shown = CliRunner().invoke(command_group(), ["broker", "logdirs", "1", "--partitions"], prog_name="barnabas")
    futures = [[each["is_future"] for each in found["replicas"]] for found in (there, target)]
    assert futures == [[False], [True]]
    brokers, replicas = shown.stdout.split("\n\n")
    assert [line.split()[1:3] for line in brokers.splitlines()[1:]] == [["/a", "1"], ["/b", "0"]]
    assert [line.split(maxsplit=6)[-1] for line in replicas.splitlines()[1:3]] == ["/a", "/b (copy)"]


def test_a_cordoned_directory_is_marked() -> None:
    with barnabas.Broker(config={"cordoned.log.dirs": "*"}) as running:
        where = ("-b", running.bootstrap_servers)
        (found,) = run("logdirs", *where)
        assert found["cordoned"]
        for words in (["broker", "logdirs"], ["broker", "describe", "1"]):
            shown = CliRunner().invoke(command_group(), [*words, *where], prog_name="barnabas").stdout
            assert f"{found['directory']} (cordoned)" in shown
