"""`cluster nodes` in JSON, of a made-up cluster and of a real node. The screens show its table."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

import barnabas
from barnabas.cli.cluster_nodes import nodes
from barnabas.protocol.errors import ErrorCode, error_for
from tests.cli.made_up_cluster import MadeUpAdmin, pretend


def run(*arguments: str) -> Any:
    found = CliRunner().invoke(nodes, [*arguments, "-o", "json"])
    assert found.exit_code == 0, found.stderr
    return {each["node"]: each for each in json.loads(found.stdout)}


def test_brokers_and_controllers_are_one_list() -> None:
    with pretend():
        found = run()
    assert {each: (node["roles"], node["state"], node["quorum"]) for each, node in found.items()} == {
        1: (["broker", "controller"], "serving", "leader"),
        2: (["broker"], "serving", "observer"),
        3: (["broker"], "fenced", "observer"),
        101: (["controller"], "serving", "follower"),
        102: (["controller"], "silent", "follower"),
    }
    assert (found[1]["controller_address"], found[2]["controller_address"]) == ("localhost:9093", None)
    assert {each: (node["program"], node["supports"]) for each, node in found.items()} == {
        1: ("barnabas", "4.4-IV2"),
        2: ("Apache Kafka", "4.3-IV0"),
        3: (None, None),
        101: ("Apache Kafka", "4.3-IV0"),
        102: (None, None),
    }, "nothing is asked that is fenced or silent"
    assert (found[1]["leaders"], found[3]["replicas"], found[101]["leaders"]) == (17, 19, None)


def test_a_controller_that_does_not_vote_yet_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    quorum = MadeUpAdmin().describe_quorum()
    joining = [each._replace(is_voter=each.is_voter and each.id != 101) for each in quorum.replicas]
    monkeypatch.setattr(MadeUpAdmin, "describe_quorum", lambda _: quorum._replace(replicas=joining))
    with pretend():
        assert [run()[101][each] for each in ("roles", "state", "quorum")] == [["controller"], "serving", "observer"]


def test_brokers_too_old_for_a_quorum_are_listed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def old(_: object) -> Any:
        raise error_for(ErrorCode.UNSUPPORTED_VERSION)

    monkeypatch.setattr(MadeUpAdmin, "describe_quorum", old)
    with pretend():
        found = run()
    assert {each: (node["roles"], node["quorum"]) for each, node in found.items()} == {
        each: (["broker"], None) for each in (1, 2, 3)
    }


def test_a_node_alone_is_both(barnabas: barnabas.Broker) -> None:
    (node,) = run("-b", barnabas.bootstrap_servers).values()
    assert (node["roles"], node["state"], node["quorum"]) == (["broker", "controller"], "serving", "leader")
    assert node["address"] == barnabas.bootstrap_servers
    assert (node["program"], node["supports"]) == ("barnabas", "4.4-IV2")
