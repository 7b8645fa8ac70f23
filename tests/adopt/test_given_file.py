"""A file of settings says what `barnabas start` says about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.adopt.given_file import GivenFile, read_file
from barnabas.log.meta_properties import META_PROPERTIES, MetaProperties
from barnabas.process.commands import run

NODE = """process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0
controller.listener.names=CONTROLLER
"""


def read(folder: Path, text: str, *, formatted: int | None = 1, environ: dict[str, str] | None = None) -> GivenFile:
    directory = folder / "data"
    if formatted is not None:
        directory.mkdir()
        (directory / META_PROPERTIES).write_bytes(MetaProperties("4L6g3nShT-eMCtK--X86sw", formatted).encode())
    path = folder / "server.properties"
    path.write_text(f"{NODE}log.dirs={directory}\n{text}")
    before = sorted(folder.rglob("*"))
    found = read_file(str(path), environ or {}, 0)
    assert sorted(folder.rglob("*")) == before, "a check changes nothing"
    return found


def test_a_file_that_starts(tmp_path: Path) -> None:
    found = read(tmp_path, "num.network.threads=5\nfoo.bar=1\n")
    assert (found.node_id, found.roles, found.mistakes, found.settings) == (1, ("broker", "controller"), (), 7)
    assert [(each.name, each.line) for each in found.unknown] == [("foo.bar", 7)]
    assert [(each.name, each.line) for each in found.without_effect] == [("num.network.threads", 6)]
    assert found.directories[0].is_here


@pytest.mark.parametrize(
    "text",
    [
        "num.partitions=many\n",
        "authorizer.class.name=com.example.Mine\n",
        "principal.builder.class=com.example.Mine\n",
        "node.id=7\n",
        "controller.quorum.voters=2@localhost:9093\n",
        "super.users=User:admin\n",
        "ssl.keystore.location=/nowhere\nssl.keystore.type=PKCS12\n",
    ],
)
def test_check_and_start_say_the_same(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = read(tmp_path, text)
    assert run("start", ["--config", str(tmp_path / "server.properties")]) == 1
    assert found.mistakes[0] in capsys.readouterr().err


def test_a_port_that_other_machines_reach_ends_the_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_to_all = "listeners=PLAINTEXT://0.0.0.0:0,CONTROLLER://127.0.0.1:0\n"
    found = read(tmp_path, open_to_all)
    assert run("start", ["--config", str(tmp_path / "server.properties")]) == 1
    (mistake,) = found.mistakes
    printed = capsys.readouterr().err
    # The start has chosen a port.
    assert all(part in printed for part in mistake.split("localhost:0"))
    assert "barnabas.insecure=true" in mistake
    (tmp_path / "again").mkdir()
    assert read(tmp_path / "again", f"{open_to_all}barnabas.insecure=true\n").mistakes == ()


def test_several_mistakes_at_the_same_time(tmp_path: Path) -> None:
    found = read(tmp_path, "principal.builder.class=com.example.Mine\nadvertised.listeners=SSL://a:1\n")
    assert len(found.mistakes) == 2


def test_a_file_of_another_machine(tmp_path: Path) -> None:
    found = read(tmp_path, "controller.quorum.voters=1@localhost:9093,2@localhost:9095\n", formatted=None)
    assert (found.mistakes, found.directories[0].is_here) == ((), False)


def test_variables_count_as_for_a_start(tmp_path: Path) -> None:
    found = read(tmp_path, "", environ={"KAFKA_NUM_PARTITIONS": "3"})
    assert found.variables == ("KAFKA_NUM_PARTITIONS",)


def test_key_stores_that_cannot_be_used(tmp_path: Path) -> None:
    store = tmp_path / "store.jks"
    store.write_bytes(bytes.fromhex("feedfeed") + bytes(20))
    text = (
        "listeners=SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:0\nlistener.security.protocol.map=SSL:SSL,CONTROLLER:PLAINTEXT\n"
        f"inter.broker.listener.name=SSL\nssl.keystore.location={store}\nssl.keystore.password=secret-1\n"
    )
    (mistake,) = read(tmp_path, text).mistakes
    assert "keytool" in mistake
    assert "secret-1" not in mistake
