"""Every route, of a cluster of three processes."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import pytest

import barnabas
from barnabas.client.cluster import Cluster
from barnabas.embedded.fault_api import ROUTES, FaultApi, Reply
from barnabas.protocol.messages import ListGroupsRequest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster")]


class Asked:
    """An API, and its answers."""

    def __init__(self, cluster: barnabas.Cluster) -> None:
        self.cluster = cluster
        self.api = FaultApi(cluster, "127.0.0.1:9900")

    def reply(self, request: str, body: object = None, **query: str) -> Reply:
        method, path = request.split()
        return self.api.answer(method, path, query, body)

    def __call__(self, request: str, body: object = None, **query: str) -> Any:
        reply = self.reply(request, body, **query)
        assert reply.status in (HTTPStatus.OK, HTTPStatus.CREATED), reply
        return reply.value


@pytest.fixture
def ask(barnabas_cluster: barnabas.Cluster) -> Asked:
    return Asked(barnabas_cluster)


def list_groups(address: str, client_id: str = "shop") -> int:
    with Cluster(address, client_id=client_id) as cluster:
        code: int = cluster.any_connection().request(ListGroupsRequest()).error_code
        return code


def test_a_fault_is_ordered_seen_and_removed(ask: Asked) -> None:
    fault = {"kind": "fail", "api": "ListGroups", "error": "COORDINATOR_NOT_AVAILABLE", "client_id": "shop", "nth": 2}
    made = ask.reply("POST /faults", fault)
    assert made.status is HTTPStatus.CREATED
    number = made.value["id"]
    assert made.value == {"id": number, **fault, "times": 1, "hits": 0}
    # Counted over all nodes.
    codes = [
        list_groups(ask.cluster.address(node), client)
        for node, client in ((1, "other"), (1, "shop"), (2, "shop"), (3, "shop"))
    ]
    assert codes == [0, 0, 15, 0]
    assert ask(f"GET /faults/{number}")["hits"] == 1
    asked = ask("GET /requests", api="ListGroups", client_id="shop")
    assert [(each["node"], each["faults"]) for each in asked] == [(1, []), (2, [number]), (3, [])]
    assert ask("DELETE /requests") == {}
    assert ask("GET /requests", api="ListGroups") == []
    assert ask(f"DELETE /faults/{number}")["hits"] == 1
    gone = ask.reply(f"DELETE /faults/{number}")
    assert gone == (HTTPStatus.NOT_FOUND, {"error": f"there is no fault {number}: GET /faults lists them"}, ())


def test_the_network_the_disk_and_the_clock(ask: Asked) -> None:
    assert ask("POST /topics", {"name": "orders", "config": {"retention.ms": 60000}}) == {}
    ask("POST /faults", {"kind": "cut", "from": [1], "to": [2, 3]})
    ask("POST /faults", {"kind": "disk_slow", "node": 3, "seconds": 0.001})
    ask("POST /faults", {"kind": "clock", "seconds": 3600, "nodes": 2})
    list_groups(ask.cluster.address(2))
    list_groups(ask.cluster.address(1))
    times = {each["node"]: each["time_ms"] for each in ask("GET /requests", api="ListGroups")}
    assert 3_590_000 < times[2] - times[1] < 3_610_000
    kinds = {each["kind"]: each["hits"] for each in ask("GET /faults")}
    assert kinds.keys() == {"cut", "disk_slow", "clock"}
    assert kinds["clock"] == 1
    assert len(ask("DELETE /faults")) == 3
    assert ask("GET /faults") == []
    assert ask("POST /in-sync", {"timeout": 30}) == {}


def test_nodes_and_leaders(ask: Asked) -> None:
    ask("POST /topics", {"name": "orders"})
    found = ask("GET /leader", topic="orders")
    assert sorted(found["in_sync"]) == [1, 2, 3]
    to = next(node for node in (1, 2, 3) if node != found["leader"])
    assert ask("POST /leader", {"topic": "orders", "to": to})["leader"] == to
    controller = ask("GET /controller")["controller"]
    other = next(node for node in (1, 2, 3) if node not in (controller, to))
    states = [ask(f"POST /nodes/{other}/{verb}")["state"] for verb in ("pause", "resume", "wipe", "restart")]
    assert states == ["paused", "running", "down", "running"]
    assert ask(f"GET /nodes/{other}")["address"] == ask.cluster.address(other)
    ask("POST /in-sync")
    ask("POST /reset")
    assert {each["state"] for each in ask("GET /nodes")} == {"running"}


def test_it_documents_itself(ask: Asked) -> None:
    page = ask("GET /")
    assert page["cluster"]["bootstrap_servers"] == ask.cluster.bootstrap_servers
    assert [each["request"] for each in page["routes"]] == [f"{route.method} {route.path}" for route in ROUTES]
    assert {"fail", "partition", "disk_full", "clock"} <= page["kinds of faults"].keys()


@pytest.mark.parametrize(
    ("request_line", "body", "status", "sentence"),
    [
        ("GET /fault", None, 404, "there is nothing at /fault; did you mean /faults?"),
        ("GET /nodes/1/kill", None, 405, "/nodes/1/kill has no GET: it has POST"),
        ("POST /nodes/9/kill", None, 404, "there is no node 9: the nodes are 1 to 3"),
        ("POST /faults", {"kind": "cut", "from": 1, "to": 1}, 400, "node 1 is on both sides: a node always reaches itself"),
        ("POST /faults", {"kind": "fail", "api": "Fetsh", "error": -1}, 400, "api='Fetsh': brokers serve no such API; did you mean Fetch?"),
        ("POST /topics", {}, 400, "POST /topics needs the field name: its name"),
        ("POST /topics", {"name": "a", "replicas": 9}, 409, "INVALID_REPLICATION_FACTOR"),
        ("GET /leader", None, 400, "GET /leader needs the field topic: the topic"),
    ],
)  # fmt: skip
def test_mistakes_are_sentences(ask: Asked, request_line: str, body: object, status: int, sentence: str) -> None:
    reply = ask.reply(request_line, body)
    assert reply.status == status
    assert sentence in reply.value["error"]


def test_a_wait_in_vain_is_said(ask: Asked) -> None:
    late = ask.reply("GET /leader", topic="nothing", timeout="0")
    assert late[:2] == (HTTPStatus.GATEWAY_TIMEOUT, {"error": "after 0 s nothing-0 has no leader that runs"})
