"""The first lines of a node's log."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from barnabas.directory.start_report import RecoveryReport, say_start, say_what_is_left, warn_of_readers
from barnabas.log.disk import OsDisk
from barnabas.log.meta_properties import MetaProperties
from barnabas.log.recovery import Recovery
from barnabas.version import VERSION

SECOND = 1_000_000_000


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


@pytest.mark.parametrize(
    ("formatted", "used", "was_clean", "said"),
    [
        (False, False, True, "The directory was empty and is formatted now"),
        (True, False, False, "This is the first run in this directory"),
        (True, True, True, "The last run stopped cleanly: 2 partitions, nothing to recover"),
        (True, True, False, "The last run was killed or failed: 2 partitions to recover"),
    ],
)
def test_who_starts_where_and_how_the_last_run_ended(
    formatted: bool, used: bool, was_clean: bool, said: str, log: pytest.LogCaptureFixture
) -> None:
    say_start(
        MetaProperties("abc", 7), "/data", Recovery(2), was_formatted=formatted, was_used=used, was_clean=was_clean
    )
    assert log.messages == [f"barnabas {VERSION} starts node 7 of cluster abc in /data", said]


def test_a_recovery_says_now_and_then_how_far_it_is(log: pytest.LogCaptureFixture) -> None:
    now_ns = iter([0, 2 * SECOND, 5 * SECOND, 5 * SECOND, 9 * SECOND, 13 * SECOND])
    report = RecoveryReport(lambda: next(now_ns))
    recovery = Recovery(4)
    for _ in range(4):
        recovery.done += 1
        recovery.segments += 3
        recovery.bytes_read += 600_000
        report.add(recovery)
    recovery.bytes_cut = 57
    assert report.has_recovered
    report.end()
    assert log.messages == [
        "Recovered 2 of 4 partitions in 5.0 s: 6 segments and 1.20 MB read",
        "Recovered 4 partitions in 13.0 s: 12 segments and 2.40 MB read, 57 B cut off",
    ]


def test_after_a_recovery_it_is_said_whether_something_may_be_lost(log: pytest.LogCaptureFixture) -> None:
    say_what_is_left("")
    say_what_is_left("the directory is a copy")
    assert log.messages == [
        "Nothing is lost that the last run wrote: the machine has not started again since",
        "What the last run wrote at last may be lost: the directory is a copy",
    ]


def test_without_a_recovery_there_is_nothing_to_say(log: pytest.LogCaptureFixture) -> None:
    RecoveryReport(lambda: 0).end()
    assert log.messages == []


@pytest.mark.parametrize("closed", [None, "", "node-1", "node-1/node.log"])
def test_what_others_can_read_is_named(closed: str | None, tmp_path: Path, log: pytest.LogCaptureFixture) -> None:
    """A file is closed if one directory on the way to it is."""
    (tmp_path / "node-1").mkdir()
    (tmp_path / "node-1" / "node.log").touch()
    (tmp_path / "private").touch()
    for path, mode in (("", 0o755), ("node-1", 0o755), ("node-1/node.log", 0o644), ("private", 0o600)):
        (tmp_path / path).chmod(mode & 0o700 if path == closed else mode)
    warn_of_readers(OsDisk(), str(tmp_path), ["private", "node-1/node.log"], "its logs")
    warning = f"{tmp_path} can be read by every user of this machine, with its logs (chmod -R go-rwx {tmp_path})"
    assert log.messages == ([warning] if closed is None else [])
