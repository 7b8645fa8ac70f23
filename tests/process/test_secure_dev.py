"""`barnabas start --secure-dev`: what it makes, what a later start keeps, and who gets in."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.client.admin import Admin
from barnabas.client.outcome import results
from barnabas.client.properties import read_properties
from barnabas.client.topics import NewTopic
from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.process.commands import run
from barnabas.process.local_cluster import LocalCluster, LocalNode, is_secured, secure_node
from barnabas.process.secure_dev import PROTOCOL, SecureDev
from barnabas.security.client_security import client_security
from tests.process.process import Node

NOW_MS = 1_800_000_000_000


def opened(folder: Path, *, is_alone: bool = True) -> SecureDev:
    return SecureDev(folder, NOW_MS, is_alone=is_alone)


def test_a_later_start_keeps_authority_and_password(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert not is_secured(folder)
    client = opened(folder).client_properties
    assert is_secured(folder)
    first = read_properties(str(client))
    assert client_security(first) is not None
    authority = Path(first["ssl.truststore.location"]).read_text()
    client.write_text(client.read_text() + "client.id=mine\n")
    assert opened(folder).hint == f"clients need --command-config {client}"
    assert read_properties(str(client)) == first | {"client.id": "mine"}
    assert Path(first["ssl.truststore.location"]).read_text() == authority
    assert {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file() and path != client} == {0o600}
    client.unlink()
    opened(folder)
    assert client.stat().st_mode & 0o777 == 0o600
    assert read_properties(str(client))["sasl.jaas.config"] != first["sasl.jaas.config"]


def test_a_node_alone_has_its_key_in_memory(tmp_path: Path) -> None:
    settings = opened(tmp_path).settings(["0.0.0.0:0", "10.0.0.7:0"])
    config = BrokerConfig.from_properties({"listeners": f"{PROTOCOL}://:0", "log.dirs": str(tmp_path), **settings})
    assert config.listeners[0].security_protocol == PROTOCOL
    assert "PRIVATE KEY" in settings["ssl.keystore.key"]
    assert "PRIVATE KEY" not in repr(config)


def test_clients_are_told_where_the_last_start_listens(tmp_path: Path) -> None:
    def servers(*addresses: str) -> str | None:
        node = opened(tmp_path)
        node.settings(addresses)
        return read_properties(str(node.client_properties)).get("bootstrap.servers")

    assert servers("127.0.0.1:0") is None
    assert servers("0.0.0.0:9092", "[::]:9094", "10.0.0.7:9093") == "localhost:9092,localhost:9094,10.0.0.7:9093"
    assert servers("127.0.0.1:0") == "localhost:9092,localhost:9094,10.0.0.7:9093"
    assert servers("no port") == "localhost:9092,localhost:9094,10.0.0.7:9093"
    assert servers("[fe80::1]:9092") == "[fe80::1]:9092"
    assert servers("127.0.0.1:19092") == "127.0.0.1:19092"


def test_the_files_of_a_cluster(tmp_path: Path) -> None:
    nodes = tuple(LocalNode(n, tmp_path / f"node-{n}", True) for n in (1, 2))
    for node in nodes:
        node.folder.mkdir()
        node.properties.write_text(
            f"process.roles=broker,controller\nnode.id={node.node_id}\nlog.dirs={node.data}\nnum.partitions=7\n"
            "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\ncontroller.listener.names=CONTROLLER\n"
            "controller.quorum.voters=1@127.0.0.1:9093,2@127.0.0.1:9094\n"
        )
    opened(tmp_path, is_alone=False).secure(LocalCluster(nodes))
    for node in nodes:
        config = BrokerConfig.from_properties(read_properties(str(node.properties)))
        assert [each.security_protocol for each in (*config.listeners, *config.controller_listeners)] == [PROTOCOL] * 2
        assert config.num_partitions == 7
        assert (node.folder / "node.pem").stat().st_mode & 0o777 == 0o600
    client = read_properties(str(tmp_path / "client.properties"))
    assert client["bootstrap.servers"] == "127.0.0.1:9092,127.0.0.1:9092"
    before = nodes[0].ports
    secure_node(nodes[0], PROTOCOL, {})
    assert nodes[0].ports == before


def test_files_that_cannot_be_used_are_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    client = opened(folder).client_properties
    client.write_text("security.protocol=SASL_SSL\n")
    with pytest.raises(CannotStart, match=r"client.properties has no password of a login \(remove the file"):
        opened(folder)
    client.unlink()
    (folder / "secure-dev" / "ca-key.pem").write_text("nothing")
    with pytest.raises(CannotStart, match="are no authority: remove both"):
        opened(folder)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.txt").write_text("mine")
    with pytest.raises(CannotStart, match=r"holds files that are not a broker's: thesis\.txt"):
        opened(tmp_path / "foreign")
    assert not (tmp_path / "foreign" / "secure-dev").exists()


@pytest.mark.slow
def test_a_start_and_its_client(tmp_path: Path) -> None:
    data = tmp_path / "data"
    client = str(data / "client.properties")
    for round_ in range(2):
        with Node(data, "--secure-dev") as node:
            assert node.process.stdout is not None
            assert node.process.stdout.readline().decode() == f"clients need --command-config {client}\n"
            security = client_security(read_properties(client))
            with Admin(node.bootstrap_servers, security=security) as admin:
                if not round_:
                    results(admin.create_topics([NewTopic("orders")]))
                else:
                    assert [topic.name for topic in admin.list_topics()] == ["orders"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--data-dir", "d", "--config", "server.properties"), "--secure-dev is for a node without FILE"),
        ((), "--secure-dev needs a data directory (pass --data-dir DIR)"),
    ],
)
def test_options_in_the_way(
    arguments: tuple[str, ...],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.properties").write_text("num.partitions=1\n")
    with pytest.raises(SystemExit) as ended:
        run("start", ["--secure-dev", *arguments])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
