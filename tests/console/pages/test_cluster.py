"""The cluster."""

import pytest
from starlette.testclient import TestClient

import barnabas
from barnabas.client.admin import Admin
from barnabas.client.program import Program, SeenProgram
from tests.console.reading import html, printed, twin


def test_the_twin_is_what_the_commands_print(broker: barnabas.Broker, browser: TestClient) -> None:
    found = twin(browser, "cluster")
    assert found["info"].keys() == printed(broker.bootstrap_servers, "cluster", "info").keys()
    assert found["nodes"] == printed(broker.bootstrap_servers, "cluster", "nodes")
    assert found["quorum"].keys() == printed(broker.bootstrap_servers, "cluster", "quorum").keys()
    (directory,) = found["log_dirs"]
    (printed_directory,) = printed(broker.bootstrap_servers, "broker", "logdirs")
    assert directory.keys() == printed_directory.keys()
    assert directory["directory"] == printed_directory["directory"]


def test_the_program_of_each_node(browser: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def programs(_: Admin, controllers: object = None) -> dict[int, SeenProgram]:
        asked.append(controllers)
        return {1: SeenProgram(Program.KAFKA, supports=30)}

    monkeypatch.setattr(Admin, "describe_programs", programs)
    assert "Apache Kafka" in html(browser, "cluster")
    (node,) = twin(browser, "cluster")["nodes"]
    assert (node["program"], node["supports"]) == ("Apache Kafka", "4.3-IV0")
    assert asked == [{}, {}], "there is no controller alone"


def test_the_plan_of_a_rebalance(broker: barnabas.Broker, browser: TestClient) -> None:
    found = twin(browser, "cluster", plan="rebalance")
    assert found["plan"] == printed(broker.bootstrap_servers, "cluster", "rebalance", "--dry-run")
    assert found["moves"] == []
    page = html(browser, "cluster", plan="rebalance")
    assert "<code>barnabas cluster rebalance</code>" in page
    assert "Nothing would be moved." in page
    assert "The plan" not in html(browser, "cluster")


def test_the_plan_of_a_drain(browser: TestClient) -> None:
    for query, sentence in (
        ({"plan": "drain", "node": "7"}, "Broker 7 is not part of the cluster now"),
        ({"plan": "drain"}, "The broker to drain is missing."),
        ({"plan": "<b>"}, "The plan must be one of rebalance, drain."),
        ({"plan": "drain", "node": "1"}, "Broker 1 cannot be drained"),
    ):
        assert sentence in twin(browser, "cluster", **query)["plan"]["error"]
