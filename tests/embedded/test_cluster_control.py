"""What a cluster asks of a node, asked of a node in this process."""

from __future__ import annotations

from typing import Any

import pytest

import barnabas as package
from barnabas.client.cluster import Cluster
from barnabas.embedded.cluster_control import ClusterControl
from barnabas.embedded.fault_plan import NO_FAULTS, FaultKind, FaultPlan, RequestFault
from barnabas.embedded.link_faults import LinkFaults
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ListGroupsRequest


class Asked:
    """A node's control, and its answers."""

    def __init__(self, broker: package.Broker) -> None:
        self.broker = broker
        assert broker._node is not None
        assert broker._loop is not None
        self.control = ClusterControl(broker._node, LinkFaults(1, {}, broker._loop))

    def __call__(self, verb: str, argument: object) -> dict[str, Any]:
        return self.broker._call(lambda: self.control.answer({verb: argument}))


@pytest.fixture
def ask(barnabas: package.Broker) -> Asked:
    return Asked(barnabas)


def list_groups(broker: package.Broker) -> int:
    cluster = Cluster(broker.bootstrap_servers)
    code: int = cluster.any_connection().request(ListGroupsRequest()).error_code
    cluster.close()
    return code


def test_a_look(ask: Asked) -> None:
    assert ask("create", ["orders", 2, 1, {"retention.ms": "60000"}]) == {}
    found = ask("look", ["orders", 1])
    assert found["partition"] == [1, (1,), (1,)]
    assert (found["brokers"], found["leads"], found["behind"]) == ([1], True, [])
    assert ask("look", ["orders", 2])["partition"] is None
    assert ask("look", None)["offset"] >= found["offset"]


def test_the_controllers_error_is_the_answer(ask: Asked) -> None:
    assert ask("create", ["orders", 1, 1, {}]) == {}
    assert ask("create", ["orders", 1, 1, {}])["error"] == ErrorCode.TOPIC_ALREADY_EXISTS
    answer = ask("move", ["nothing", 0, [1]])
    assert answer["error"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask("move", ["orders", 0, [1]]) == {}


def test_a_reset_in_two_steps(ask: Asked) -> None:
    assert ask("create", ["orders", 1, 1, {}]) == {}
    offset = ask("clear", None)["offset"]
    assert ask("look", ["orders", 0])["partition"] is None
    assert ask("forget", offset) == {}


def test_a_plan_replaces_the_one_before(ask: Asked, barnabas: package.Broker, tmp_path: Any) -> None:
    fails = RequestFault(
        FaultKind.FAIL, 16, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, times=-1, tickets=str(tmp_path / "tickets")
    )
    assert ask("plan", FaultPlan(requests={1: (fails,)}).to_json(1)) == {}
    assert list_groups(barnabas) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert ask("plan", NO_FAULTS.to_json(1)) == {}
    assert list_groups(barnabas) == 0


def test_what_clients_have_asked(ask: Asked, barnabas: package.Broker) -> None:
    list_groups(barnabas)
    ((name, *_),) = ask("requests", [16, [None, None, None, None]])["requests"]
    assert name == "ListGroups"
    assert ask("requests", [16, ["orders", None, None, None]]) == {"requests": []}
    assert ask("forget_requests", None) == {}
    assert ask("requests", [16, [None, None, None, None]]) == {"requests": []}
