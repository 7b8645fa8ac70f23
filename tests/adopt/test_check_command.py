"""`adopt check`: its table, its JSON, its last lines, its exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from unittest import mock

import pytest
from click.testing import CliRunner, Result

from barnabas.adopt.cluster_state import ClusterState, Unseen
from barnabas.cli.session import Session
from barnabas.main import command_group
from tests.adopt.states import CLUSTER_ID, HEALTHY
from tests.cli.made_up_cluster import MadeUpAdmin


def run(state: ClusterState, *arguments: str) -> Result:
    with (
        mock.patch.object(Session, "admin", return_value=MadeUpAdmin()),
        mock.patch("barnabas.adopt.check_command.read_cluster", return_value=state),
    ):
        return CliRunner().invoke(command_group(), ["adopt", "check", *arguments], prog_name="barnabas")


def test_a_cluster_without_an_obstacle() -> None:
    found = run(replace(HEALTHY, unseen=[Unseen("quotas", "not allowed")]))
    assert found.exit_code == 0
    *_, counted, unseen = found.output.splitlines()
    assert counted.startswith("looked at 3 brokers, 3 voters, 1 topic, 1 partition,")
    assert unseen == "not looked at: quotas: not allowed"


@pytest.mark.parametrize(("moving", "code"), [(0, 0), (1, 1)])
def test_json(moving: int, code: int) -> None:
    found = run(replace(HEALTHY, moving=moving), "-o", "json")
    data = json.loads(found.stdout)
    assert found.exit_code == code
    assert (data["cluster_id"], data["verdicts"]["blocks"]) == (CLUSTER_ID, moving)
    assert set(data["findings"][0]) == {"verdict", "where", "what", "what_to_do"}
    assert data["not_looked_at"] == []
