"""`adopt check`: its table, its JSON, its last lines, its exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
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
    *_, counted, quotas, _node_1, _node_2, node_3 = found.output.splitlines()
    assert counted.startswith("looked at 3 brokers, 3 voters, 0 files, 1 topic, 1 partition,")
    assert quotas == "not looked at: quotas: not allowed"
    assert node_3 == "not looked at: server.properties of node 3: not given (--config FILE)"


@pytest.mark.parametrize(("moving", "code"), [(0, 0), (1, 1)])
def test_json(moving: int, code: int) -> None:
    found = run(replace(HEALTHY, moving=moving), "-o", "json")
    data = json.loads(found.stdout)
    assert found.exit_code == code
    assert (data["cluster_id"], data["verdicts"]["blocks"]) == (CLUSTER_ID, moving)
    assert set(data["findings"][0]) == {"verdict", "where", "what", "what_to_do"}
    assert [each["what"] for each in data["not_looked_at"]] == [
        f"server.properties of node {node}" for node in (1, 2, 3)
    ]


def test_the_files_of_nodes(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(f"node.id=2\nprocess.roles=broker,controller\nlog.dirs={tmp_path}/away\nnum.io.threads=9\n")
    found = run(HEALTHY, "--config", str(path), "-o", "json")
    data = json.loads(found.stdout)
    assert data["looked_at"]["file"] == 1
    assert {
        "what": f"{tmp_path}/away and the key stores of {path}",
        "why": "not on this machine: check there, too",
    } in data["not_looked_at"]
    (ignored,) = [each for each in data["findings"] if each["what"] == "num.io.threads has no effect"]
    assert ignored["where"] == [f"{path}, line 4"]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("a=\\u12\n")
    found = run(HEALTHY, "--config", str(path))
    assert found.exit_code == 1
    assert found.stderr.startswith(f"error: cannot parse {path}")
