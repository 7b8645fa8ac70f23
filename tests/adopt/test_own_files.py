"""The node of a file on this machine: what is not one is refused in a sentence, and nothing is formatted."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from barnabas.adopt.given_file import read_file
from barnabas.adopt.observation import OwnNode
from barnabas.adopt.own_files import OwnFiles, is_taken, own_files
from barnabas.cli.failure import Failure
from barnabas.log.meta_properties import META_PROPERTIES, MetaProperties
from tests.adopt.states import CLUSTER_ID

FILE = """process.roles=broker,controller
node.id=2
listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:19091,2@127.0.0.1:19093
"""


def formatted(directory: Path, cluster_id: str = CLUSTER_ID, node_id: int = 2) -> Path:
    directory.mkdir()
    (directory / META_PROPERTIES).write_bytes(MetaProperties(cluster_id, node_id).encode())
    return directory


def files_of(folder: Path, *directories: Path, text: str = FILE) -> OwnFiles:
    path = folder / "server.properties"
    path.write_text(f"{text}log.dirs={','.join(map(str, directories))}\n")
    return own_files(read_file(str(path), {}, 0))


def test_a_node(tmp_path: Path) -> None:
    root = formatted(tmp_path / "data")
    found = files_of(tmp_path, root)
    assert (found.node_id, found.root, found.cluster_id) == (2, str(root), CLUSTER_ID)
    assert (found.holder(), found.now()) == (None, OwnNode(2, is_held=False))


def test_a_process_that_has_left_the_directory_and_still_listens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as controller:
        port = controller.getsockname()[1]
        found = files_of(
            tmp_path,
            formatted(tmp_path / "data"),
            text=FILE.replace("CONTROLLER://127.0.0.1:0", f"CONTROLLER://127.0.0.1:{port}"),
        )
        assert found.now() == OwnNode(2, is_held=False, listens=True)
    assert found.now() == OwnNode(2, is_held=False)


def test_an_address_of_no_machine_is_free() -> None:
    assert not is_taken("no.such.host.invalid", 9092)
    assert not is_taken("192.0.2.1", 9092)


def test_a_lock_that_cannot_be_looked_at(tmp_path: Path) -> None:
    found = files_of(tmp_path, formatted(tmp_path / "data"))
    with pytest.raises(Failure) as raised:
        found._replace(root=str(tmp_path / "data" / META_PROPERTIES)).holder()
    assert raised.value.message.endswith("cannot be seen: not a directory")


def test_no_directory_of_a_node(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for directory, words in (
        (tmp_path / "away", "is no directory on this machine"),
        (tmp_path / "empty", "has no meta.properties: it is no node's directory"),
        (formatted(tmp_path / "other", node_id=7), "is the directory of node 7, and the file has node.id=2"),
    ):
        with pytest.raises(Failure) as raised:
            files_of(tmp_path, directory)
        assert raised.value.message == f"{directory} {words}"
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_file_that_does_not_parse(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"num\.partitions"):
        files_of(tmp_path, formatted(tmp_path / "data"), text=FILE + "num.partitions=many\n")
