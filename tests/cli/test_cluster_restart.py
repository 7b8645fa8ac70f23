"""`cluster restart` as a person types it: its plan, its walk, and where it stops."""

from __future__ import annotations

import pytest

from barnabas.cli import rolling
from barnabas.cli.failure import Failure
from barnabas.client.errors import BrokerNotAvailable
from tests.cli.rolled_cluster import Rolled, run

COMMAND = ("--command", "ssh {host} restart {node}")


def test_the_plan() -> None:
    cluster = Rolled()
    result = run(cluster, "restart", "--rolling", "--dry-run", *COMMAND)
    assert (result.exit_code, cluster.restarted) == (0, [])
    assert [" ".join(line.split()) for line in result.stdout.splitlines()] == [
        "NODE ROLE COMMAND STATUS",
        "1 broker and controller ssh h1 restart 1 would be restarted",
        "3 broker and controller ssh h3 restart 3 would be restarted",
        "2 broker and active controller ssh h2 restart 2 would be restarted",
    ]
    doubtful = run(Rolled((1, 2)), "restart", "--dry-run")
    assert doubtful.exit_code == 1
    assert doubtful.stderr == "".join(
        f"error: without node {node} fewer replicas than min.insync.replicas are left of orders-0 (add replicas or"
        " nodes, or accept it with --may-interrupt)\n"
        for node in (1, 2)
    )
    assert run(Rolled((1, 2)), "restart", "--dry-run", "--may-interrupt").exit_code == 0


def test_the_walk() -> None:
    cluster = Rolled()
    result = run(cluster, "restart", "--rolling", *COMMAND)
    assert (result.exit_code, cluster.restarted, cluster.leader) == (0, [1, 3, 2], 1)
    assert result.stdout.startswith("NODE  ROLE ")
    assert result.stderr.startswith(
        "node 1 (broker and controller) is restarted\nnode 1 is back, and all is in sync after "
    )
    cluster = Rolled()
    assert run(cluster, "restart", "2", "3", *COMMAND).exit_code == 0
    assert cluster.restarted == [3, 2]


def test_it_stops_where_clients_would_notice_and_names_what_is_left() -> None:
    cluster = Rolled((2, 3))
    result = run(cluster, "restart", *COMMAND)
    assert (result.exit_code, cluster.restarted) == (1, [1])
    assert result.stderr.splitlines()[-1] == (
        "error: without node 3 fewer replicas than min.insync.replicas are left of orders-0 (add replicas or nodes, or accept"
        " it with --may-interrupt; not restarted or not well yet: 3, 2; go on with `barnabas cluster restart --rolling 3 2 …`)"
    )


def test_it_stops_when_a_node_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Rolled()
    monkeypatch.setattr(cluster, "restart", lambda words, node, within_s: None)
    result = run(cluster, "restart", "--within", "0s", *COMMAND)
    assert (result.exit_code, cluster.restarted) == (1, [])
    assert "error: node 1 still runs in the process that it had before, " in result.stderr
    assert "go on with `barnabas cluster restart --rolling 1 3 2 …`" in result.stderr


def test_a_command_that_fails_and_an_interrupt_name_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Rolled()

    def fail(error: BaseException) -> None:
        def restart(words: list[str], node: int, within_s: float) -> None:
            raise error

        monkeypatch.setattr(cluster, "restart", restart)

    fail(Failure("the command for node 1 ended with exit code 5: ssh"))
    assert run(cluster, "restart", *COMMAND).stderr.endswith("cluster restart --rolling 1 3 2 …`)\n")
    fail(BrokerNotAvailable("h1:9092 refuses"))
    assert "error: h1:9092 refuses (" in run(cluster, "restart", *COMMAND).stderr
    fail(KeyboardInterrupt())
    result = run(cluster, "restart", *COMMAND)
    assert (result.exit_code, "go on with `barnabas cluster restart --rolling 1 3 2 …`" in result.stderr) == (130, True)


def test_a_cluster_of_this_machine_is_asked_through_its_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    cluster = Rolled()
    monkeypatch.setattr(rolling, "ask_for_restart", lambda folder, node: cluster.restart([], node, 0))
    assert run(cluster, "restart", "--data-dir", str(tmp_path)).exit_code == 0
    assert cluster.restarted == [1, 3, 2]
    monkeypatch.undo()
    result = run(Rolled(), "restart", "--data-dir", str(tmp_path))
    assert f"error: no cluster of `barnabas start --nodes` runs in {tmp_path} (name the --data-dir" in result.stderr


def test_what_is_not_a_command_line() -> None:
    for arguments in ((), ("--data-dir", ".", *COMMAND)):
        result = run(Rolled(), "restart", *arguments)
        assert (result.exit_code, "either --command or --data-dir" in result.stderr) == (2, True)
    result = run(Rolled(), "restart", "9", *COMMAND)
    assert result.stderr == "error: node 9 is not part of the cluster now (its nodes are: 1, 2, 3)\n"
