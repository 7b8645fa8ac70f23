"""A start tells a clock that is earlier than the last run in the directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas.directory.clock_check import TOLERANCE_MS, last_written_ms, set_back
from barnabas.log.disk import OsDisk

LAST_MS = 1_795_953_600_000


def written(path: Path, at_ms: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))


@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
        ".barnabas_running",
        "__cluster_metadata-0/00000000000000000000.log",
    ],
)
def test_each_file_of_a_run_tells_when_it_was(name: str, tmp_path: Path) -> None:
    written(tmp_path / "replication-offset-checkpoint", LAST_MS - 5)
    written(tmp_path / name, LAST_MS)
    # A record's time, which a client chooses, and an operator's file.
    written(tmp_path / "orders-0" / "00000000000000000000.timeindex", LAST_MS + 10**9)
    written(tmp_path / "note", LAST_MS + 10**9)
    assert last_written_ms(OsDisk(), str(tmp_path)) == LAST_MS


def test_a_directory_in_which_nothing_ran_tells_nothing(tmp_path: Path) -> None:
    assert last_written_ms(OsDisk(), str(tmp_path)) == 0
    assert set_back("/data", 0, 1) == ""


def test_an_hour_back_is_named_and_a_few_seconds_are_not() -> None:
    assert set_back("/data", LAST_MS, LAST_MS + 1) == ""
    assert set_back("/data", LAST_MS, LAST_MS - TOLERANCE_MS) == ""
    assert set_back("/data", LAST_MS, LAST_MS - 3_600_000) == (
        "The clock of this machine is set back, or was ahead: it says 2026-11-29T11:00:00.000Z, and the last run wrote to"
        " /data at 2026-11-29T12:00:00.000Z (if it is behind, set it right: until then timed retention waits, and records"
        " that clients date more than message.timestamp.after.max.ms later are refused)"
    )
