"""What a cluster holds: its folder, locked, and its ports."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from barnabas.client.properties import read_properties
from barnabas.config.cannot_start import CannotStart
from barnabas.embedded.cluster_folder import Held, open_held


def test_a_folder_is_made_and_held(tmp_path: Path) -> None:
    held = Held(None)
    cluster = open_held(tmp_path / "c", 2, held)
    ids = {read_properties(str(node.data / "meta.properties"))["cluster.id"] for node in cluster.nodes}
    assert len(ids) == 1
    ports = [port for node in cluster.nodes for port in node.ports]
    assert len(set(ports)) == 4
    if sys.platform == "linux":
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", ports[0]))
    with pytest.raises(CannotStart, match="in use by another cluster"):
        open_held(tmp_path / "c", 2, Held(None))
    held.release(os.getpid())
    again = Held(None)
    kept = open_held(tmp_path / "c", 2, again)
    assert [port for node in kept.nodes for port in node.ports] == ports
    again.release(os.getpid())


def test_only_the_process_that_made_it_deletes_a_temporary_folder(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    held = Held(folder)
    held.release(os.getpid() + 1)
    assert folder.exists()
    held.release(os.getpid())
    assert not folder.exists()
