"""Deleted logs: their files go after the delay, and not while the directory closes."""

from __future__ import annotations

import asyncio

from barnabas.log.deleted_logs import DeletedLogs
from barnabas.log.log_flusher import run_inline
from barnabas.simulation.disk import SimDisk
from tests.log.small_log import Clock

PATH = "/data/t-0.1-delete"


def test_files_go_after_the_delay() -> None:
    disk, clock = SimDisk(), Clock()
    disk.put(f"{PATH}/00000000000000000000.log", b"x")
    logs = DeletedLogs(disk, clock, run_inline)
    logs.add(PATH, 1_000)
    asyncio.run(logs.remove_due(lambda: False))
    assert disk.exists(PATH)
    assert repr(logs) == "<DeletedLogs 1>"
    # A clock that is set back makes no difference.
    clock.ms -= 3_600_000
    assert not logs.is_due()
    clock.ms += 1_000
    assert logs.is_due()
    asyncio.run(logs.remove_due(lambda: True))
    assert disk.exists(PATH)
    logs.add(PATH)
    asyncio.run(logs.remove_due(lambda: False))
    assert not disk.exists(PATH)
    logs.add(PATH)
    asyncio.run(logs.remove_due(lambda: False))  # It is gone already.
