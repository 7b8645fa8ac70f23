"""Payloads in a folder: what a kill leaves, and what is synced when."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.claims.errors import StoreError
from barnabas.claims.folder_store import FolderStore


@pytest.fixture
def store(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path)


def test_the_file_and_every_folder_are_synced_in_this_order(
    store: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def note(words: str, path: str) -> None:
        if path.startswith(str(tmp_path)):  # a broker of other tests syncs, too
            done.append(words + path.removeprefix(str(tmp_path)))

    def synced(handle: int) -> None:
        note("sync ", os.readlink(f"/proc/self/fd/{handle}"))
        sync(handle)

    def replaced(source: Path, target: Path) -> None:
        note("rename to ", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    named = FolderStore(tmp_path, lambda: "new")
    for _ in range(2):
        named.put("c/t/name", b"one")
    once = ["sync /c/t/unfinished/new", "rename to /c/t/name", "sync /c/t"]
    assert done == ["sync /c", "sync ", *once, *once]
    done.clear()
    named.put("c/t/condemned/name", b"", durable=False)
    assert [each for each in done if "new" in each] == []
    assert done[-1] == "rename to /c/t/condemned/name"


def test_the_same_payload_again_is_another_version(store: FolderStore) -> None:
    versions = set()
    for _ in range(3):
        store.put("c/t/name", b"one")
        found = store.stat("c/t/name")
        assert found is not None
        versions.add(found.version)
    assert len(versions) == 3


def test_a_folder_that_was_deleted_comes_again(store: FolderStore, tmp_path: Path) -> None:
    import shutil

    store.put("c/t/name", b"one")
    shutil.rmtree(tmp_path / "c")
    store.put("c/t/name", b"one")
    assert store.get("c/t/name", 3) == b"one"


def test_a_kill_while_a_payload_is_written_leaves_an_unfinished_file(tmp_path: Path) -> None:
    program = """
import os, signal, sys
from barnabas.claims.folder_store import FolderStore
sync = os.fsync
def die(handle):
    if "unfinished" in os.readlink(f"/proc/self/fd/{handle}"):
        os.kill(os.getpid(), signal.SIGKILL)
    sync(handle)
os.fsync = die
FolderStore(sys.argv[1]).put("c/t/name", b"one")
"""
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path)]).returncode == -signal.SIGKILL
    (left,) = FolderStore(tmp_path).list("c/t")
    assert left.path.startswith("c/t/unfinished/")


def test_a_link_out_of_the_store_is_not_followed(store: FolderStore, tmp_path: Path) -> None:
    store.put("c/t/name", b"one")
    secret = tmp_path / "secret"
    secret.write_bytes(b"two")
    (tmp_path / "c/t/link").symlink_to(secret)
    with pytest.raises(StoreError, match="cannot read c/t/link"):
        store.get("c/t/link", 3)


def test_a_full_disk_leaves_nothing(store: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    store.put("c/t/name", b"one")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"cannot write c/t/other in file://.*: No space left on device"):
        store.put("c/t/other", b"two")
    assert sorted(each.path for each in store.list("c")) == ["c/t/name"]
