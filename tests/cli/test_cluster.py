"""`cluster info`, and the words of `cluster`. The screens show its table."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from barnabas.cli.cluster import cluster
from tests.cli.made_up_cluster import MadeUpAdmin, pretend


def test_the_old_word_is_not_in_the_help() -> None:
    listed = CliRunner().invoke(cluster, ["--help"]).stdout
    assert " status " in listed
    assert " health " not in listed


def test_the_quorums_leader_is_the_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    quorum = MadeUpAdmin().describe_quorum()._replace(leader=101)
    monkeypatch.setattr(MadeUpAdmin, "describe_quorum", lambda _: quorum)
    with pretend():
        found = json.loads(CliRunner().invoke(cluster, ["info", "-o", "json"]).stdout)
    assert (found["controller"], found["voters"], found["brokers"]) == (101, [1, 101, 102], [1, 2])
