"""A directory is looked at before it is changed, and is as before after a start that failed."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import random
from collections.abc import Callable

import pytest

from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.directory.data_directory import DataDirectory
from barnabas.directory.storage import format_directory
from barnabas.log.log_manager import LogManager
from barnabas.simulation.disk import SimDisk
from tests.at_once import at_once

META = b"#\ncluster.id=abc\nnode.id=1\nversion=1\n"
SEGMENT = "00000000000000000000.log"


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig.from_properties(
        {"log.dirs": "/disk/data", **{name.replace("_", "."): value for name, value in settings.items()}}
    )


def disk_with(*paths: str) -> SimDisk:
    disk = SimDisk()
    for path in paths:
        if path.endswith("/"):
            disk.mkdir(f"/disk/data/{path.rstrip('/')}")
        else:
            disk.mkdir("/disk/data")
            disk.put(f"/disk/data/{path}", META if path == "meta.properties" else b"")
    return disk


def manager_of(disk: SimDisk) -> LogManager:
    return LogManager(disk, "/disk/data", now_ms=lambda: 0)


def open_directory(directory: DataDirectory, manager: LogManager) -> None:
    loop = asyncio.new_event_loop()
    try:
        directory.open(manager, random.Random(1), 0)
        loop.run_until_complete(directory.recover(manager, lambda: 0))
    finally:
        loop.close()


@pytest.mark.parametrize(
    "paths",
    [
        (),
        ("lost+found/",),
        (".DS_Store", ".gitkeep"),
        ("meta.properties", "notes.txt"),
        ("bootstrap.checkpoint", "__cluster_metadata-0/", ".lock", "meta.properties.tmp"),
        ("recovery-point-offset-checkpoint", "cleaner-offset-checkpoint", ".kafka_cleanshutdown"),
    ],
)
def test_what_may_be_a_data_directory(paths: tuple[str, ...]) -> None:
    DataDirectory(disk_with(*paths), config()).check()


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        (("file.txt",), r"holds files that are not a broker's: file\.txt \(pass another --data-dir\)"),
        (("a", "b", "c", "d", "e", "lost+found/"), "a broker's: a, b, c and 2 more"),
        (("bad\nname",), r"a broker's: bad\\nname"),
        (("backup-2024/",), "a broker's: backup-2024"),
        (
            ("cluster.properties", "node-1/"),
            r"/disk/data holds a cluster on this machine \(`barnabas start --nodes N` starts it, or pass another",
        ),
        (
            (f"orders-0/{SEGMENT}", f"orders-1/{SEGMENT}"),
            r"holds partitions \(orders-0, orders-1\) but no meta\.properties, which names their cluster \(restore",
        ),
    ],
)
def test_other_peoples_files_are_left_alone(paths: tuple[str, ...], words: str) -> None:
    disk = disk_with(*paths)
    before = disk.paths()
    with pytest.raises(CannotStart, match=words):
        DataDirectory(disk, config()).check()
    assert disk.paths() == before


def test_a_file_is_not_a_directory() -> None:
    disk = SimDisk()
    disk.mkdir("/disk")
    disk.put("/disk/data", b"")
    with pytest.raises(CannotStart, match="/disk/data is a file, not a directory"):
        DataDirectory(disk, config()).check()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"cluster_id": "xyz"},
            r"belongs to cluster abc, not to xyz \(remove cluster.id, or pass another --data-dir\)",
        ),
        ({"node_id": "7"}, r"belongs to node 1, not to 7 \(set node.id=1, or pass another --data-dir\)"),
    ],
)
def test_the_directory_of_another_node_is_left_alone(settings: dict[str, str], words: str) -> None:
    with pytest.raises(CannotStart, match=words):
        DataDirectory(disk_with("meta.properties"), config(**settings)).check()


QUORUM = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "log.dirs": "/disk/data",
}
STATIC = {**QUORUM, "controller.quorum.voters": "1@a:9093,2@b:9093"}
DYNAMIC = {**QUORUM, "controller.quorum.bootstrap.servers": "a:9093,b:9093"}
BROKER = {**DYNAMIC, "process.roles": "broker", "listeners": "PLAINTEXT://:9092"}
CONTROLLER = {**STATIC, "process.roles": "controller", "listeners": "CONTROLLER://:9093"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (STATIC, "this node is not alone: `barnabas storage format -t CLUSTER-ID -c FILE` formats it"),
        (CONTROLLER, "this node is not alone: `barnabas storage format -t CLUSTER-ID -c FILE` formats it"),
        (BROKER, "this node is not alone: `barnabas storage format -t CLUSTER-ID -c FILE` formats it"),
        (DYNAMIC, "-c FILE` with --no-initial-controllers formats it for a quorum that exists, with --standalone"),
        ({**DYNAMIC, "cluster.id": "abc"}, "-c FILE` with --no-initial-controllers formats it for a quorum that"),
    ],
)
def test_a_node_of_a_cluster_does_not_found_a_second_one(settings: dict[str, str], words: str) -> None:
    disk = SimDisk()
    directory = DataDirectory(disk, BrokerConfig.from_properties(settings))
    with pytest.raises(CannotStart) as refused:
        directory.check()
    assert words in str(refused.value)
    # The directory may lose its identity between the check and the lock.
    manager = manager_of(disk)
    with pytest.raises(CannotStart, match="is not formatted"):
        open_directory(directory, manager)
    at_once(manager.close())
    assert not disk.exists("/disk/data/meta.properties")


@pytest.mark.parametrize("settings", [STATIC, BROKER])
def test_a_node_that_is_told_its_cluster_formats_its_directory_without_voters(settings: dict[str, str]) -> None:
    disk = SimDisk()
    config = BrokerConfig.from_properties({**settings, "cluster.id": "4L6g3nShT-eMCtK--X86sw"})
    directory, manager = DataDirectory(disk, config), manager_of(disk)
    directory.check()
    open_directory(directory, manager)
    at_once(manager.close())
    assert directory.meta is not None
    assert directory.meta.cluster_id == "4L6g3nShT-eMCtK--X86sw"
    assert not any(path.endswith("-0000000000.checkpoint") for path in disk.paths())


def test_a_directory_that_cannot_be_read_is_named() -> None:
    disk = disk_with("lost+found/")
    disk.on_call = lambda call, path: (
        PermissionError(errno.EACCES, "Permission denied", path) if call == "read" else None
    )
    with pytest.raises(CannotStart) as refused:
        DataDirectory(disk, config()).check()
    assert str(refused.value) == (
        "cannot use the data directory /disk/data: /disk/data/meta.properties: Permission denied (pass another --data-dir)"
    )


@pytest.mark.parametrize(("embedded", "remedy"), [(False, "pass another --data-dir"), (True, "pass another data_dir=")])
def test_a_directory_that_is_in_use_is_named(embedded: bool, remedy: str) -> None:
    """The remedy is an option on the command line, and an argument in Python."""
    disk = disk_with("meta.properties")
    manager_of(disk).lock()
    given = BrokerConfig.from_properties({"log.dirs": "/disk/data"}, embedded=embedded)
    with pytest.raises(CannotStart, match=rf"is in use by another broker \(stop that broker, or {remedy}"):
        DataDirectory(disk, given).lock(manager_of(disk))


def start_and_undo(disk: SimDisk) -> None:
    """Open the directory as a start does, and undo it as a start does that fails afterwards."""
    directory = DataDirectory(disk, config())
    directory.check()
    manager = manager_of(disk)
    open_directory(directory, manager)
    directory.undo(is_locked=manager.is_locked)
    at_once(manager.close(clean=False))


def without_files(disk: SimDisk) -> tuple[list[str], bool, bool]:
    return disk.paths(), disk.exists("/disk"), disk.exists("/disk/data")


@pytest.mark.parametrize("number", range(1, 40))
def test_a_start_on_a_failing_disk_leaves_nothing_behind(number: int) -> None:
    """Each disk call in turn fails, once: what was made until then is removed."""
    disk = SimDisk()
    directory = DataDirectory(disk, config())
    directory.check()
    disk.fail_call(number)
    manager = manager_of(disk)
    with contextlib.suppress(CannotStart):
        open_directory(directory, manager)
        assert number > 20, "the call did not fail"
        disk.fail_call(1_000)
    directory.undo(is_locked=manager.is_locked)
    at_once(manager.close(clean=False))
    assert without_files(disk) == ([], False, False)


@pytest.mark.parametrize(
    "prepare", [lambda disk: disk.mkdir("/disk/data/lost+found"), lambda disk: disk.mkdir("/disk/data")]
)
def test_a_directory_that_was_there_stays_as_it_was(prepare: Callable[[SimDisk], None]) -> None:
    disk = SimDisk()
    prepare(disk)
    before = disk.listdir("/disk/data")
    start_and_undo(disk)
    assert disk.listdir("/disk/data") == before
    assert disk.paths() == []


def test_nothing_is_undone_in_a_directory_that_was_formatted() -> None:
    disk = SimDisk()
    format_directory(disk, "/disk/data", "abc", 1, config(), random.Random(1))
    before = disk.paths()
    start_and_undo(disk)
    assert set(before) <= set(disk.paths())


def test_nothing_is_undone_without_the_lock() -> None:
    """Another broker has formatted the directory since it was looked at."""
    disk = SimDisk()
    late, manager = DataDirectory(disk, config()), manager_of(disk)
    late.check()
    open_directory(DataDirectory(disk, config()), manager)
    before = disk.paths()
    other = manager_of(disk)
    with pytest.raises(CannotStart, match="in use"):
        late.lock(other)
    late.undo(is_locked=other.is_locked)
    assert disk.paths() == before


def test_a_clock_set_back_is_named_and_the_node_starts(caplog: pytest.LogCaptureFixture) -> None:
    disk = disk_with("meta.properties", ".barnabas_running")
    disk.set_modified_ms("/disk/data/.barnabas_running", 3_600_000)
    open_directory(DataDirectory(disk, config()), manager_of(disk))
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len(warnings) == 1
    assert (
        "it says 1970-01-01T00:00:00.000Z, and the last run wrote to /disk/data at 1970-01-01T01:00:00" in warnings[0]
    )
