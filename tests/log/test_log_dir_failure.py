"""The log says once that the disk takes no writes, and once that it does again."""

from __future__ import annotations

import errno

import pytest

from barnabas.log.log_dir_failure import LogDirFailure


def test_a_bad_disk_is_told_and_a_full_one_is_not() -> None:
    failure, heard = LogDirFailure("/data"), list[str]()
    failure.noticed(OSError(errno.EIO, "broken"), "cannot flush t-0")
    failure.on_bad_disk = heard.append
    for code in (errno.ENOSPC, errno.EMFILE, errno.EIO):
        failure.failed("the checkpoints", OSError(code, "broken"))
    failure.noticed(ValueError("a bug"), "cannot flush t-0")
    failure.is_bad("a sync failed")
    assert heard == ["cannot write the checkpoints: broken", "a sync failed"]


def test_each_change_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    failure = LogDirFailure("/data")

    def write(*, is_full: bool) -> bool:
        if is_full:
            failure.failed("the checkpoints", OSError(errno.ENOSPC, "No space left on device"))
        else:
            failure.succeeded()
        return failure.is_offline

    assert [write(is_full=each) for each in (False, True, True, False, False, True)] == [
        False, True, True, False, False, True,
    ]  # fmt: skip
    full = "/data takes no writes: cannot write the checkpoints: No space left on device"
    assert [record.getMessage() for record in caplog.records] == [full, "/data takes writes again", full]
