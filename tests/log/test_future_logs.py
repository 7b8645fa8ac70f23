"""Future logs of one directory: made, found again, deleted, and moved in."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.log.log_manager import LogManager
from barnabas.protocol.primitives import Uuid
from barnabas.simulation.disk import SimDisk
from tests.log.small_log import Clock, plain

KEY, TOPIC = ("t.a", 0), Uuid(b"t" * 16)


def opened(disk: SimDisk) -> LogManager:
    manager = LogManager(disk, "/b", now_ms=Clock())
    asyncio.run(manager.open())
    return manager


def names(disk: SimDisk) -> list[str]:
    return sorted(name for name in disk.listdir("/b") if name.startswith("t.a-0"))


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_start_finds_a_future_log_again(is_clean: bool) -> None:
    disk = SimDisk()
    manager = opened(disk)
    log = manager.futures.create(KEY, TOPIC, "1f")
    assert log.name == "t.a-0"
    log.append_as_follower(plain(3), 0)
    assert (names(disk), manager.names(), manager.get(*KEY)) == (["t.a-0.1f-future"], [], None)
    asyncio.run(manager.checkpoint())
    asyncio.run(manager.close(clean=is_clean))
    again = opened(disk)
    assert (again.futures.names(), again.names(), again.futures.topic_id_of(KEY)) == ([KEY], [], TOPIC)
    found = again.futures.get(KEY)
    assert found is not None
    assert found.log_end_offset == 3
    assert repr(again.futures) == "<FutureLogs /b 1>"
    asyncio.run(again.housekeeping())


def test_it_is_written_to_under_its_new_name() -> None:
    disk = SimDisk()
    manager = opened(disk)
    future = manager.futures.create(KEY, TOPIC, "1f")
    future.append_as_follower(plain(3), 0)
    log = manager.take_in(KEY)
    assert log is future
    assert (names(disk), KEY in manager.futures, manager.is_of(*KEY, TOPIC)) == (["t.a-0"], False, True)
    log.append_as_leader(plain(2), 1)
    log.roll()
    log.append_as_leader(plain(1), 2)
    asyncio.run(manager.close())
    again = opened(disk).get(*KEY)
    assert again is not None
    assert (again.log_end_offset, again.segment_count, again.epoch_entries) == (6, 2, [(1, 3), (2, 5)])


def test_it_is_deleted_and_the_second_of_two() -> None:
    disk = SimDisk()
    manager = opened(disk)
    manager.futures.create(KEY, TOPIC, "1f").append_as_follower(plain(1), 0)
    manager.futures.delete(KEY)
    manager.futures.delete(KEY)
    assert names(disk) == ["t.a-0.1f-delete"]
    asyncio.run(manager.housekeeping())
    assert names(disk) == []
    asyncio.run(manager.close())
    for unique in ("1f", "2f"):
        disk.put(f"/b/t.a-0.{unique}-future/00000000000000000000.log", b"")
    manager = opened(disk)
    assert manager.futures.names() == [KEY]
    assert sorted(name.rpartition("-")[2] for name in names(disk)) == ["delete", "future"]


def test_a_rename_that_fails_changes_nothing() -> None:
    disk = SimDisk()
    manager = opened(disk)
    manager.futures.create(KEY, TOPIC, "1f")
    disk.on_call = lambda call, path: OSError(5, "broken") if call == "rename" else None
    with pytest.raises(OSError, match="broken"):
        manager.take_in(KEY)
    disk.on_call = None
    assert manager.take_in(KEY).log_end_offset == 0
