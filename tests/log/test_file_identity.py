"""A file keeps its identity when it is renamed, and a copy has another one."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from barnabas.log import file_identity as module
from barnabas.log.disk import OsDisk
from barnabas.log.file_identity import file_identity

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a boot id")


def test_a_renamed_and_changed_file_is_the_same_and_a_copy_is_another(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"one")
    known = file_identity(str(file))
    assert known is not None
    assert known.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert known.inode == os.stat(file).st_ino
    assert 0 <= os.stat(file).st_mtime_ns - known.birth_ns < 60_000_000_000
    moved = file.rename(tmp_path / "b")
    moved.write_bytes(b"two")
    assert OsDisk().identity(str(moved)) == known
    copied = file_identity(str(shutil.copy2(moved, tmp_path / "c")))
    assert copied is not None
    assert (copied.boot_id, copied.mount) == (known.boot_id, known.mount)
    assert copied.inode != known.inode
    assert copied.birth_ns >= known.birth_ns


def test_another_mount_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    here, elsewhere = file_identity(str(tmp_path / "a")), file_identity("/proc/self/mountinfo")
    assert here is not None
    assert elsewhere is None or elsewhere.mount != here.mount


def test_what_cannot_be_looked_at_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        file_identity(str(tmp_path / "none"))
    assert caught.value.filename == str(tmp_path / "none")


def test_without_a_boot_id_or_a_birth_time_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"")
    with monkeypatch.context() as patch:
        patch.setattr(module, "_BOOT_ID", str(tmp_path / "hidden"))
        assert file_identity(str(file)) is None
    with monkeypatch.context() as patch:
        patch.setattr(module, "_statx", lambda path: None)
        assert file_identity(str(file)) is None
    with monkeypatch.context() as patch:
        patch.setattr(module, "_statx", lambda path: bytes(256))
        assert file_identity(str(file)) is None
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "darwin")
        assert file_identity(str(file)) is None
