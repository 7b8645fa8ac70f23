"""Several directories of one node at its start: formatted before, of one cluster, one metadata log."""

from __future__ import annotations

import asyncio
import random

import pytest

from barnabas.config.cannot_start import CannotStart
from barnabas.config.config import BrokerConfig
from barnabas.directory.data_directories import DataDirectories
from barnabas.directory.storage import format_directory
from barnabas.log.log_directories import LogDirectories
from barnabas.log.log_manager import LogManager
from barnabas.protocol.primitives import uuid_from_str
from barnabas.simulation.disk import SimDisk


def configured(**settings: str) -> BrokerConfig:
    given = {"log.dirs": "/a,/b", "listeners": "PLAINTEXT://localhost:9092"}
    return BrokerConfig.from_properties(given | {name.replace("_", "."): value for name, value in settings.items()})


def formatted() -> SimDisk:
    disk = SimDisk()
    for number, root in enumerate(("/a", "/b")):
        format_directory(disk, root, "abc", 1, configured(), random.Random(number), has_metadata=root == "/a")
    return disk


def refused(disk: SimDisk, **settings: str) -> str:
    with pytest.raises(CannotStart) as caught:
        DataDirectories(disk, configured(**settings)).check()
    return str(caught.value)


def test_directories_of_one_node_are_accepted() -> None:
    directories = DataDirectories(formatted(), configured())
    directories.check()
    assert (directories.roots, directories.was_formatted) == (["/a", "/b"], True)


def test_several_directories_are_formatted_before_the_start() -> None:
    assert refused(SimDisk()).startswith(
        "/a is not formatted: mount its disk if it has one; else `barnabas storage format"
    )
    disk = formatted()
    disk.remove("/b/meta.properties")
    assert refused(disk).endswith("with --ignore-formatted a new one beside those that are formatted")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"metadata_log_dir": "/c"},
            "/c is not formatted: mount its disk if it has one; else `barnabas storage format",
        ),
        ({"metadata_log_dir": "/b"}, "/a/__cluster_metadata-0 is a metadata log, but the metadata log is in /b"),
    ],
)
def test_settings_that_do_not_fit(settings: dict[str, str], words: str) -> None:
    assert refused(formatted(), **settings).startswith(words)


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ("cluster.id=other\ndirectory.id=9p2Wl1tXSSCgDZ1NvHvHkA", "/a and /b belong to different clusters"),
        ("cluster.id=abc", "/b/meta.properties has no directory.id"),
    ],
)
def test_directories_that_do_not_belong_together(meta: str, words: str) -> None:
    disk = formatted()
    disk.put("/b/meta.properties", f"version=1\nnode.id=1\n{meta}\n".encode())
    assert refused(disk).startswith(words)


def test_a_copy_of_a_directory_is_refused() -> None:
    disk = formatted()
    disk.put("/b/meta.properties", disk.contents("/a/meta.properties"))
    assert refused(disk) == "/a and /b have the same directory.id: one is a copy of the other"


@pytest.mark.parametrize("broken", ["/a", "/b"])
def test_a_directory_that_cannot_be_read_is_left_out_unless_it_has_the_metadata(broken: str) -> None:
    disk = formatted()
    disk.on_call = lambda call, path: OSError(5, "broken", path) if path.startswith(broken) else None
    directories = DataDirectories(disk, configured())
    if broken == "/a":
        with pytest.raises(CannotStart, match="cannot use the data directory /a: broken"):
            directories.check()
        return
    directories.check()
    assert (directories.roots, directories.was_formatted) == (["/a"], True)


@pytest.mark.parametrize("call", ["lock", "listdir"])
def test_a_directory_whose_disk_fails_during_the_start_is_offline(call: str) -> None:
    disk = formatted()
    directories = DataDirectories(disk, configured())
    directories.check()
    logs = LogDirectories([LogManager(disk, root, now_ms=lambda: 1) for root in ("/a", "/b")])
    if call == "lock":
        break_calls(disk, "lock")
    directories.lock(logs)
    directories.open(logs, random.Random(1), 0)
    if call == "listdir":
        break_calls(disk, "listdir")
    asyncio.run(directories.recover(logs, lambda: 0))
    assert [(each.root_dir, each.reason) for each in logs.offline] == [("/b", logs.offline[0].reason)]
    assert "broken" in logs.offline[0].reason
    assert logs.offline[0].id is not None
    assert len(logs.ids) == 1
    assert not any(path.startswith("/b") for path in disk.locks)
    directories.undo(logs)
    asyncio.run(logs.close())


def break_calls(disk: SimDisk, broken: str) -> None:
    disk.on_call = lambda call, path: OSError(5, "broken", path) if call == broken and path.startswith("/b") else None


def apart() -> SimDisk:
    """Return a disk with /a and /b, and with the metadata log in /meta."""
    disk = SimDisk()
    for number, root in enumerate(("/meta", "/a", "/b")):
        config = configured(metadata_log_dir="/meta")
        format_directory(disk, root, "abc", 1, config, random.Random(number), has_metadata=root == "/meta")
    return disk


@pytest.mark.parametrize("roots", [("/a", "/b"), ("/a",)])
def test_the_metadata_log_may_have_a_directory_of_its_own(roots: tuple[str, ...]) -> None:
    disk = apart()
    config = configured(metadata_log_dir="/meta", log_dirs=",".join(roots))
    directories = DataDirectories(disk, config)
    directories.check()
    assert directories.roots == ["/meta", *roots]
    managers = [LogManager(disk, root, now_ms=lambda: 1) for root in roots]
    logs = LogDirectories(managers) if len(managers) > 1 else managers[0]
    directories.lock(logs)
    assert sorted(disk.locks) == sorted(f"{root}/.lock" for root in ("/meta", *roots))
    identity = directories.open(logs, random.Random(1), 0)
    # The broker names the directories with logs to the controller; the quorum knows the other one.
    assert len(set(logs.ids)) == len(roots)
    assert uuid_from_str(identity.directory_id or "") not in logs.ids
    asyncio.run(directories.recover(logs, lambda: 0))
    directories.undo(logs)
    asyncio.run(logs.close())
    assert list(disk.locks) == ["/meta/.lock"]
    directories.release()
    assert list(disk.locks) == []


@pytest.mark.parametrize("broken", ["/meta", "/a"])
def test_a_node_needs_its_metadata_log_and_one_directory_of_logs(broken: str) -> None:
    disk = apart()
    disk.on_call = lambda call, path: OSError(5, "broken", path) if path.startswith(broken) else None
    with pytest.raises(CannotStart, match=f"cannot use the data directory {broken}: broken"):
        DataDirectories(disk, configured(metadata_log_dir="/meta", log_dirs="/a")).check()
