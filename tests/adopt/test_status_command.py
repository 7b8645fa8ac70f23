"""`adopt status`: the program of each node, and the order of the next ones."""

from __future__ import annotations

import json

from click.testing import CliRunner

import barnabas
from barnabas.adopt.status_command import table_of
from barnabas.main import command_group
from tests.adopt.sights import KAFKA, OURS, STOPPED, seen


def test_a_cluster_on_its_way() -> None:
    data = table_of(seen(KAFKA, OURS, KAFKA)).data
    assert (data["apache_kafka"], data["barnabas"], data["others"], data["next"]) == (2, 1, 0, [3, 1])
    assert [each["program"] for each in data["nodes"]] == ["Apache Kafka", "barnabas", "Apache Kafka"]


def test_the_release_of_each_node() -> None:
    data = table_of(seen(KAFKA, OURS, STOPPED, supports=33)).data
    assert [each["supports"] for each in data["nodes"]] == [None, "4.4-IV2", None]


def test_a_node_that_is_away() -> None:
    data = table_of(seen(KAFKA, STOPPED, KAFKA, why="cannot reach it", leader=-1)).data
    assert (data["others"], data["active_controller"]) == (1, None)
    assert (data["nodes"][1]["state"], data["nodes"][1]["why"]) == ("down", "cannot reach it")


def test_the_command(broker: barnabas.Broker) -> None:
    words = ["adopt", "status", "-b", broker.bootstrap_servers, "-o", "json"]
    found = CliRunner().invoke(command_group(), words, prog_name="barnabas")
    data = json.loads(found.stdout)
    assert (found.exit_code, data["barnabas"], data["next"]) == (0, 1, [])
