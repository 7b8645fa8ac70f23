"""The operating system's disk and its simulated twin keep the same promises."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.log.disk import MAX_OPEN_FILES, Disk, DiskLocked, OsDisk, parent_dir, write_fully
from barnabas.log.errors import KafkaStorageError, in_words
from barnabas.simulation.disk import SimDisk


@pytest.fixture(params=["os", "simulated"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Disk, str]:
    if request.param == "os":
        return OsDisk(), str(tmp_path / "root")
    return SimDisk(), "/root"


def test_files_are_read_and_written_by_position(place: tuple[Disk, str]) -> None:
    disk, root = place
    disk.mkdir(f"{root}/a/b")
    path = f"{root}/a/b/file"
    with pytest.raises(FileNotFoundError):
        disk.open(path)
    file = disk.open(path, create=True)
    assert file.pwrite(b"hello", 3) == 5
    assert file.pread(100, 0) == b"\0\0\0hello"
    assert file.pread(2, 4) == b"el"
    assert file.pread(2, 100) == b""
    assert file.size() == 8
    file.truncate(5)
    write_fully(file, memoryview(b"xyz"), 5)
    file.sync()
    file.close()
    file.close()
    disk.sync_file(path)
    assert disk.read_file(path) == b"\0\0\0hexyz"
    assert disk.file_size(path) == 8
    assert disk.modified_ms(path) >= 0


def test_names(place: tuple[Disk, str]) -> None:
    disk, root = place
    disk.mkdir(root)
    disk.mkdir(root)
    disk.mkdir(f"{root}/topic-0")
    for name in ("b", "a", "topic-0/c"):
        disk.write_file_atomic(f"{root}/{name}", name.encode())
        disk.write_file_atomic(f"{root}/{name}", name.encode() * 2, sync=False)
    assert disk.listdir(root) == ["a", "b", "topic-0"]
    assert disk.read_file(f"{root}/a") == b"aa"
    assert disk.is_dir(f"{root}/topic-0")
    assert not disk.is_dir(f"{root}/a")
    assert not disk.exists(f"{root}/z")
    disk.rename(f"{root}/a", f"{root}/b")
    assert disk.read_file(f"{root}/b") == b"aa"
    disk.rename(f"{root}/topic-0", f"{root}/topic-1")
    assert disk.read_file(f"{root}/topic-1/c") == b"topic-0/c" * 2
    disk.sync_dir(root)
    disk.rmtree(f"{root}/topic-1")
    disk.remove(f"{root}/b")
    assert disk.listdir(root) == []
    for call in (disk.remove, disk.read_file, disk.file_size, disk.sync_file, disk.rmtree, disk.listdir):
        with pytest.raises(FileNotFoundError):
            call(f"{root}/missing")
    usage = disk.disk_usage(root)
    assert 0 < usage.free <= usage.total


def test_lock_excludes_a_second_owner(place: tuple[Disk, str]) -> None:
    disk, root = place
    disk.mkdir(root)
    lock = disk.lock(f"{root}/.lock")
    with pytest.raises(DiskLocked):
        disk.lock(f"{root}/.lock")
    lock.release()
    disk.lock(f"{root}/.lock").release()


@pytest.mark.slow
def test_lock_excludes_another_process(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    attempt = (
        "import sys; from barnabas.log.disk import *\ntry: OsDisk().lock(sys.argv[1])\nexcept DiskLocked: print(1)"
    )
    lock = OsDisk().lock(path)
    run = [sys.executable, "-c", attempt, path]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "1\n"
    lock.release()
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == ""


def modes(path: Path) -> int:
    return path.lstat().st_mode & 0o777


def test_what_is_made_is_for_its_owner_only(tmp_path: Path) -> None:
    """The metadata log has credentials. What was there keeps its mode."""
    disk, root = OsDisk(), tmp_path / "root"
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    disk.mkdir(str(root))
    disk.open(f"{root}/segment", create=True).close()
    disk.write_file_atomic(f"{root}/checkpoint", b"")
    disk.lock(f"{root}/.lock").release()
    assert modes(root) == 0o700
    assert {path.name: modes(path) for path in root.iterdir()} == {
        "segment": 0o600,
        "checkpoint": 0o600,
        ".lock": 0o600,
    }
    disk.mkdir(str(shared))
    assert modes(shared) == 0o755
    assert [disk.is_public(str(path)) for path in (root, root / "segment", shared)] == [False, False, True]
    (shared / "file").touch(0o644)
    assert disk.is_public(str(shared / "file"))


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    disk, target = OsDisk(), tmp_path / "target"
    target.write_bytes(b"kept")
    for name in ("link", "checkpoint.tmp", ".lock"):
        (tmp_path / name).symlink_to(target)
    link = str(tmp_path / "link")
    for call in (
        lambda: disk.open(link),
        lambda: disk.open(link, create=True),
        lambda: disk.read_file(link),
        lambda: disk.sync_file(link),
        lambda: disk.write_file_atomic(str(tmp_path / "checkpoint"), b"diverted"),
        lambda: disk.lock(str(tmp_path / ".lock")),
    ):
        with pytest.raises(OSError, match="symbolic links") as refused:
            call()
        assert "a symbolic link stands in its place" in in_words(refused.value)
    assert target.read_bytes() == b"kept"


def test_a_directory_may_be_a_link(tmp_path: Path) -> None:
    """As to another disk."""
    disk, real = OsDisk(), tmp_path / "real"
    disk.mkdir(str(real))
    root = str(tmp_path / "link")
    os.symlink(real, root)
    disk.lock(f"{root}/.lock").release()
    disk.write_file_atomic(f"{root}/file", b"x")
    disk.sync_dir(root)
    assert disk.read_file(f"{root}/file") == b"x"


def test_a_failed_call_names_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call on a descriptor knows no path, but people need one."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    disk, path = OsDisk(), str(tmp_path / "file")
    disk.write_file_atomic(path, b"x")
    monkeypatch.setattr(os, "write", full)
    monkeypatch.setattr(os, "fsync", full)
    for call in (
        lambda: disk.write_file_atomic(path, b"y"),
        lambda: disk.sync_file(path),
        lambda: disk.sync_dir(path.removesuffix("/file")),
    ):
        with pytest.raises(OSError, match="No space") as failed:
            call()
        assert in_words(failed.value).startswith(f"No space left on device ({tmp_path}")
    monkeypatch.undo()
    with pytest.raises(OSError, match="Is a directory") as failed:
        disk.read_file(str(tmp_path))
    assert in_words(failed.value) == f"Is a directory ({tmp_path})"
    assert disk.read_file(path) == b"x"


def test_errors_in_words() -> None:
    assert in_words(OSError(errno.EIO, os.strerror(errno.EIO))) == "Input/output error"
    assert in_words(OSError("no number")) == "no number"
    assert in_words(KafkaStorageError("cannot roll t-0")) == "cannot roll t-0"
    assert in_words(ValueError()) == "ValueError"


def test_parent_dir() -> None:
    assert [parent_dir(path) for path in ("/a/b", "/a", "a", "a/b/", "/a/b/")] == ["/a", "/", ".", "a", "/a"]


# What only the simulated disk does


def test_crash_keeps_what_was_synced() -> None:
    outcomes = set()
    for seed in range(60):
        disk = SimDisk(seed)
        disk.mkdir("/d")
        disk.sync_dir("/")
        file = disk.open("/d/f", create=True)
        file.pwrite(b"safe", 0)
        file.sync()
        disk.sync_dir("/d")
        file.pwrite(b"lost?", 4)
        file.pwrite(b"torn?", 9)
        disk.open("/d/g", create=True)
        disk.crash()
        assert disk.contents("/d/f").startswith(b"safe")
        outcomes.add((disk.contents("/d/f"), disk.exists("/d/g")))
        with pytest.raises(OSError, match="closed"):
            file.pread(1, 0)
    contents = {content for content, _ in outcomes}
    assert {b"safe", b"safelost?", b"safelost?torn?"} <= contents
    assert len(contents) > 6
    assert {exists for _, exists in outcomes} == {True, False}


def test_kill_keeps_what_was_written_but_may_tear_the_last_write() -> None:
    seen = set()
    for seed in range(40):
        disk = SimDisk(seed)
        file = disk.open("/f", create=True)
        file.pwrite(b"first", 0)
        file.pwrite(b"last", 5)
        disk.lock("/.lock")
        disk.kill()
        disk.lock("/.lock")
        seen.add(disk.contents("/f"))
    assert seen == {b"first" + b"last"[:size] for size in range(5)}


def test_crash_undoes_unsynced_renames_from_the_end() -> None:
    seen = set()
    for seed in range(40):
        disk = SimDisk(seed)
        disk.write_file_atomic("/f", b"old")
        disk.write_file_atomic("/f", b"new", sync=False)
        disk.crash()
        seen.add(disk.contents("/f"))
    assert b"old" in seen
    assert seen - {b"old"} <= {b"", b"n", b"ne", b"new"}


def test_full_disk_takes_what_fits() -> None:
    disk = SimDisk(capacity=6)
    file = disk.open("/f", create=True)
    assert file.pwrite(b"1234", 0) == 4
    assert file.pwrite(b"5678", 4) == 2
    with pytest.raises(OSError, match="No space left"):
        file.pwrite(b"x", 6)
    with pytest.raises(OSError, match="No space left"):
        write_fully(file, b"1234567", 0)
    file.truncate(1)
    write_fully(file, b"abc", 1)
    assert disk.contents("/f") == b"1abc"


def test_planned_failures() -> None:
    disk = SimDisk()
    disk.mkdir("/d")
    disk.fail_call(2)
    assert disk.exists("/d")
    with pytest.raises(OSError, match="simulated"):
        disk.exists("/d")
    assert disk.exists("/d")
    assert SimDisk(1, short_write_rate=1.0).open("/f", create=True).pwrite(b"12345678", 0) < 8


@pytest.mark.parametrize(
    ("soft_limit", "expected"),
    [(20_000, 10_000), (1_024, 512), (3, 2), (resource.RLIM_INFINITY, MAX_OPEN_FILES), (1 << 30, MAX_OPEN_FILES)],
)
def test_half_of_the_descriptors_are_for_segments(
    monkeypatch: pytest.MonkeyPatch, soft_limit: int, expected: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft_limit, resource.RLIM_INFINITY))
    assert OsDisk().max_open_files() == expected
