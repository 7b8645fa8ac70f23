"""The observer at a broker of barnabas, and where no broker knows the quorum."""

from __future__ import annotations

from unittest import mock

import pytest

import barnabas
from barnabas.adopt.observer import Observer, _of_voter
from barnabas.client.admin import Admin, Quorum, QuorumReplica
from barnabas.client.errors import ConnectionRefused
from barnabas.client.program import Program
from barnabas.client.wire import BlockingConnection
from barnabas.metadata.metadata_version import LATEST_PRODUCTION
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for


def test_a_cluster_of_one(broker: barnabas.Broker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        observer = Observer(admin)
        found = observer.look()
        (node,) = found.nodes.values()
        assert (node.id, node.roles, node.program) == (1, ("broker", "controller"), Program.BARNABAS)
        assert node.supports == LATEST_PRODUCTION
        assert (node.is_down, node.behind, node.voter_lag, found.leader) == (False, 0, 0, 1)
        assert observer.look(only=(7,)).nodes[1].program == Program.SILENT


def test_nobody_says_who_leads(broker: barnabas.Broker) -> None:
    not_leader = error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER, "another one leads")
    with Admin(broker.bootstrap_servers) as admin:
        observer = Observer(admin)
        observer.look()
        with mock.patch("barnabas.adopt.observer.quorum_at", side_effect=not_leader):
            found = observer.look()
    assert (found.leader, found.nodes[1].roles) == (-1, ("broker", "controller")), "the voters are remembered"


def test_a_node_that_listens_no_more(broker: barnabas.Broker) -> None:
    def refuse(*_: object, **__: object) -> BlockingConnection:
        raise ConnectionRefused("refused")

    with Admin(broker.bootstrap_servers) as admin:
        assert Observer(admin, refuse).look().nodes[1].program == Program.STOPPED


def test_no_broker_answers() -> None:
    with Admin("127.0.0.1:1", timeout_ms=100) as admin, pytest.raises(KafkaError):
        Observer(admin).look()


def test_how_far_a_voter_is() -> None:
    leader, late = QuorumReplica(1, 90, True, None, 5_000, 5_000), QuorumReplica(2, 80, True, None, 4_900, 4_000)
    quorum = Quorum(1, 3, 80, [leader, late])
    assert _of_voter(quorum, leader) == (0, 0)
    assert _of_voter(quorum, late) == (10, 1_000)
    assert _of_voter(quorum, late._replace(last_caught_up_ms=-1)) == (10, None)
    assert _of_voter(None, late) == _of_voter(quorum._replace(leader=-1), late) == (None, None)
