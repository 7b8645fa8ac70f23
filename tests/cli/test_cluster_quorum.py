"""`cluster quorum` in JSON, of a made-up cluster and of a real node. The screens show its tables."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

import barnabas
from barnabas.cli.cluster_quorum import controller_of, quorum, quorum_of
from barnabas.client.admin import ClusterDescription, Quorum
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from tests.cli.made_up_cluster import MadeUpAdmin, pretend


def run(*arguments: str) -> Any:
    found = CliRunner().invoke(quorum, [*arguments, "-o", "json"])
    assert found.exit_code == 0, found.stderr
    return json.loads(found.stdout)


def test_what_is_not_known_is_null() -> None:
    with pretend():
        found = run()
    assert [(each["node"], each["role"], each["lag"]) for each in found["replicas"]] == [
        (1, "leader", 0),
        (101, "follower", 2),
        (102, "follower", 17_204),
        (2, "observer", 0),
        (3, "observer", None),
    ]
    *_, silent, _, unknown = found["replicas"]
    assert (silent["last_fetch"], silent["last_caught_up"]) == ("2026-11-18T11:05:40.000Z", None)
    assert set(unknown.values()) == {3, "observer", None}


def test_without_a_leader_nobody_knows_the_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    electing = MadeUpAdmin().describe_quorum()._replace(leader=-1)
    monkeypatch.setattr(MadeUpAdmin, "describe_quorum", lambda _: electing)
    with pretend():
        found = run()
    assert found["leader"] is None
    assert {(each["role"], each["lag"]) for each in found["replicas"]} == {("follower", None), ("observer", None)}


def test_a_node_alone_leads_itself(barnabas: barnabas.Broker) -> None:
    found = run("-b", barnabas.bootstrap_servers)
    (only,) = found["replicas"]
    assert (found["leader"], only["node"], only["role"], only["lag"]) == (1, 1, "leader", 0)
    assert only["last_fetch"] == only["last_caught_up"] is not None


@pytest.mark.parametrize("code", [ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED])
def test_only_brokers_that_are_too_old_have_no_quorum(monkeypatch: pytest.MonkeyPatch, code: ErrorCode) -> None:
    def fail(_: object) -> Quorum:
        raise error_for(code)

    monkeypatch.setattr(MadeUpAdmin, "describe_quorum", fail)
    if code is ErrorCode.UNSUPPORTED_VERSION:
        assert quorum_of(MadeUpAdmin()) is None  # type: ignore[arg-type]
    else:
        with pytest.raises(KafkaError):
            quorum_of(MadeUpAdmin())  # type: ignore[arg-type]


def test_the_controller_is_the_leader_or_what_old_brokers_say() -> None:
    found = ClusterDescription("id", 4, [], [])
    assert controller_of(found, None) == 4
    assert controller_of(found, Quorum(-1, 1, 0, [])) is None
    assert controller_of(found._replace(controller_id=-1), None) is None
