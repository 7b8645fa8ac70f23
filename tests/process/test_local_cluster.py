"""The files of a local cluster: what is made, what is kept, and what a folder may not hold."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest

from barnabas.client.properties import read_properties
from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.process.local_cluster import (
    LocalCluster,
    LocalNode,
    _format,
    check_folder,
    environment,
    free_ports,
    last_error,
    metrics_addresses,
    nodes_to_start,
    open_cluster,
)


def made(folder: Path, nodes: int, port: int | None = 0) -> LocalCluster:
    folder.mkdir(exist_ok=True)
    check_folder(folder, nodes)
    return open_cluster(folder, nodes, port)


def configs(cluster: LocalCluster) -> list[BrokerConfig]:
    return [BrokerConfig.from_properties(read_properties(str(node.properties))) for node in cluster.nodes]


def identities(cluster: LocalCluster) -> list[tuple[str, str]]:
    found = [read_properties(str(node.data / "meta.properties")) for node in cluster.nodes]
    return [(each["cluster.id"], each["node.id"]) for each in found]


@pytest.mark.slow
def test_five_nodes_of_which_three_vote(tmp_path: Path) -> None:
    cluster = made(tmp_path, 5)
    settings = configs(cluster)
    assert [(each.is_broker, each.is_controller) for each in settings] == [(True, True)] * 3 + [(True, False)] * 2
    assert [each.node_id for each in settings] == [1, 2, 3, 4, 5]
    voters = {each.quorum_voters for each in settings}
    assert len(voters) == 1
    (named,) = voters
    own = [each.controller_listeners[0].port for each in settings[:3]]
    assert [voter.endpoints[0].port for voter in named] == own
    ports = [each.listeners[0].port for each in settings] + own
    assert len(set(ports)) == 8
    assert {each.default_replication_factor for each in settings} == {3}
    assert {each.min_insync_replicas for each in settings} == {2}
    cluster_id = read_properties(str(tmp_path / "cluster.properties"))["cluster.id"]
    assert identities(cluster) == [(cluster_id, str(n)) for n in range(1, 6)]


@pytest.mark.slow
def test_what_is_made_is_for_its_owner_only(tmp_path: Path) -> None:
    cluster = made(tmp_path, 2)
    for node in cluster.nodes:
        node.open_log().close()
    paths = [*tmp_path.rglob("*")]
    assert {path.stat().st_mode & 0o777 for path in paths if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in paths if path.is_file()} == {0o600}
    assert {"cluster.properties", "server.properties", "node.log"} <= {path.name for path in paths}


@pytest.mark.slow
def test_a_later_start_keeps_ports_and_settings(tmp_path: Path) -> None:
    file = made(tmp_path, 2).nodes[0].properties
    file.write_text(file.read_text() + "num.partitions=7\n")
    before = file.read_text()
    again = made(tmp_path, 2, None)
    assert file.read_text() == before
    # Unless it names a port; the rest of the file stays.
    ids = identities(again)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        moved = configs(made(tmp_path, 2, port))
    ports = [each.listeners[0].port for each in moved]
    assert port < ports[0] < ports[1] < moved[0].controller_listeners[0].port
    assert (moved[0].num_partitions, identities(again)) == (7, ids)


@pytest.mark.slow
def test_a_cluster_grows_by_brokers(tmp_path: Path) -> None:
    before = configs(made(tmp_path, 1))[0]
    file = tmp_path / "node-1" / "server.properties"
    file.write_text(file.read_text().replace("min.insync.replicas=1\n", "min.insync.replicas=1\nnum.partitions=7\n"))
    cluster = made(tmp_path, 3, None)
    settings = configs(cluster)
    assert [(each.is_broker, each.is_controller) for each in settings] == [(True, True)] + [(True, False)] * 2
    assert [node.roles for node in cluster.nodes] == ["broker and controller", "broker", "broker"]
    assert {each.quorum_voters for each in settings} == {before.quorum_voters}
    assert settings[0].listeners == before.listeners
    assert {each.default_replication_factor for each in settings} == {3}
    assert settings[0].num_partitions == 7
    assert len({node_id for _, node_id in identities(cluster)}) == 3
    assert len({cluster_id for cluster_id, _ in identities(cluster)}) == 1
    ports = [port for node in cluster.nodes for port in node.ports]
    assert len(set(ports)) == 4
    assert [node.ports for node in made(tmp_path, 3, None).nodes] == [node.ports for node in cluster.nodes]


@pytest.mark.slow
def test_a_cluster_shrinks_by_brokers_whose_folders_are_gone(tmp_path: Path) -> None:
    made(tmp_path, 5)
    retire = (
        "pass --nodes 5, or retire node 5: `barnabas cluster drain 5`, then remove its folder, or another --data-dir"
    )
    with pytest.raises(CannotStart) as caught:
        made(tmp_path, 4, None)
    assert str(caught.value) == f"{tmp_path} holds 5 nodes, not 4 ({retire})"
    shutil.rmtree(tmp_path / "node-5")
    before = identities(made(tmp_path, 4, None))
    assert len(before) == 4
    # A new broker may have its number.
    again = identities(made(tmp_path, 5, None))
    assert (again[:4], again[4][1]) == (before, "5")


@pytest.mark.slow
def test_the_voters_of_a_cluster_stay(tmp_path: Path) -> None:
    made(tmp_path, 3)
    shutil.rmtree(tmp_path / "node-3")
    with pytest.raises(CannotStart, match=r"holds 3 nodes, not 2 \(pass --nodes 3, or another --data-dir\)"):
        made(tmp_path, 2, None)


@pytest.mark.slow
def test_a_setting_of_copies_that_somebody_changed_stays(tmp_path: Path) -> None:
    file = made(tmp_path, 2).nodes[0].properties
    file.write_text(file.read_text().replace("default.replication.factor=2\n", "default.replication.factor=1\n"))
    grown = configs(made(tmp_path, 4, None))
    assert [each.default_replication_factor for each in grown] == [1, 3, 3, 3]
    assert [each.min_insync_replicas for each in grown] == [2, 2, 2, 2]


@pytest.mark.slow
def test_a_growth_that_was_cut_short_is_made_again(tmp_path: Path) -> None:
    made(tmp_path, 3)
    file = tmp_path / "cluster.properties"
    before = file.read_text()
    ids = identities(made(tmp_path, 5, None))
    # A kill left the new nodes' files, but not their number.
    file.write_text(before)
    (tmp_path / "node-5" / "data" / "meta.properties").unlink()
    assert len(made(tmp_path, 3, None).nodes) == 3
    assert identities(made(tmp_path, 5, None)) == ids
    assert "nodes=5" in file.read_text()


@pytest.mark.slow
def test_a_cluster_that_was_not_made_to_its_end_is_made_again(tmp_path: Path) -> None:
    cluster = made(tmp_path, 2)
    ids = identities(cluster)
    (tmp_path / "cluster.properties").unlink()
    (tmp_path / "node-2" / "data" / "meta.properties").unlink()
    assert identities(made(tmp_path, 2)) == ids


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"meta.properties": ""}, "is the data directory of one node (start it without --nodes, or pass another --da"),
        ({"notes.txt": ""}, "holds other files: notes.txt (pass another --data-dir)"),
        ({"node-3": ""}, "holds other files: node-3"),
        ({"cluster.properties": "nodes=3\n"}, "holds 3 nodes, not 2 (pass --nodes 3, or another --data-dir)"),
        ({"cluster.properties": "nodes=\x1b[2J\n"}, r"holds \x1b[2J nodes"),
    ],
)
def test_what_is_no_folder_for_a_cluster(tmp_path: Path, files: dict[str, str], words: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(CannotStart) as caught:
        check_folder(tmp_path, 2)
    assert words in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotStart, match="is a file, not a directory"):
        check_folder(tmp_path / "file", 2)
    check_folder(tmp_path / "nothing", 2)
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "node-1").mkdir()
    (tmp_path / "file").unlink()
    check_folder(tmp_path, 2)


def test_ports_that_are_taken_are_passed_over() -> None:
    assert free_ports(9092, 3, lambda port: port != 9093) == [9092, 9094, 9095]
    with pytest.raises(CannotStart, match="3 ports are needed, and 65534 to 65535 has fewer"):
        free_ports(65534, 3, lambda port: True)
    assert len(set(free_ports(0, 9))) == 9


def test_each_node_has_a_port_for_its_metrics(tmp_path: Path) -> None:
    cluster = made(tmp_path / "cluster", 3)
    assert metrics_addresses(cluster, "") == []
    assert metrics_addresses(cluster, "[::1]:1") == ["[::1]:1", "[::1]:2", "[::1]:3"]
    ports = {port for node in cluster.nodes for port in node.ports}
    drawn = [int(each.rpartition(":")[2]) for each in metrics_addresses(cluster, "127.0.0.1:0")]
    assert len({*drawn, *ports}) == 3 + len(ports)
    with pytest.raises(
        CannotStart, match=r"--metrics-listen h:65534: 3 nodes need as many ports \(pass a lower PORT\)"
    ):
        metrics_addresses(cluster, "h:65534")
    with pytest.raises(CannotStart, match=f"a node serves port {min(ports)} already"):
        metrics_addresses(cluster, f"127.0.0.1:{min(ports)}")


def test_a_node_does_not_read_the_settings_of_the_environment() -> None:
    assert environment({"KAFKA_NODE_ID": "7", "CLUSTER_ID": "x", "PATH": "/bin"}) == {"PATH": "/bin"}


def test_the_last_error_of_a_log() -> None:
    assert last_error(["error: one", "INFO", "error: two", "Stopped"]) == "two"
    assert last_error(["INFO"]) == ""


def test_the_last_error_of_a_log_without_an_error_is_what_ended_the_process() -> None:
    trace = ["INFO", "Traceback (most recent call last):", '  File "x.py", line 1', "MemoryError: too much", ""]
    assert last_error(trace) == "MemoryError: too much"
    assert last_error([*trace[:1], trace[3]]) == ""


def test_the_last_error_of_a_log_of_json() -> None:
    def line(level: str, logger: str, message: str, exception: str = "") -> str:
        return json.dumps({"time": "t", "level": level, "logger": logger, "message": message, "exception": exception})

    failed = line("ERROR", "barnabas.process.commands", "port taken (try another)")
    other = line("ERROR", "barnabas.net.connection", "reset")
    assert last_error([failed, other, '{"time": cut']) == "port taken (try another)"
    assert last_error([other]) == ""
    ended = line("CRITICAL", "barnabas.net.json_log_lines", "ends", "Traceback\n  File\nMemoryError: too much")
    assert last_error([other, ended]) == "MemoryError: too much"


def test_a_node_that_cannot_be_formatted_is_named(tmp_path: Path) -> None:
    nodes = tuple(LocalNode(n, tmp_path / f"node-{n}", is_controller=True) for n in (1, 2))
    with pytest.raises(CannotStart, match=r"^node 1 cannot be formatted: .*node-1/server.properties"):
        _format(LocalCluster(nodes), "AAAAAAAAAAAAAAAAAAAAAw")


def test_a_start_with_fewer_nodes_than_the_folder_has_starts_them_all(tmp_path: Path) -> None:
    assert nodes_to_start(tmp_path / "absent", 3) == 3
    (tmp_path / "cluster.properties").write_text("cluster.id=x\nnodes=5\n")
    assert nodes_to_start(tmp_path, 3) == 3
    (tmp_path / "node-5").mkdir()
    # Node 4 has been removed by hand: `check_folder` says what is wrong.
    assert nodes_to_start(tmp_path, 3) == 3
    (tmp_path / "node-4").mkdir()
    assert [nodes_to_start(tmp_path, n) for n in (3, 4, 5, 6)] == [5, 5, 5, 6]
