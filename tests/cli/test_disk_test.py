"""A directory's disk is measured within its bounds, and nothing stays in the directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from barnabas.cli.disk_test import NoRoom, measure_disk


def seconds(step: float) -> Iterator[float]:
    return (each * step for each in count())


def test_all_is_written_if_there_is_time(tmp_path: Path) -> None:
    found = measure_disk(str(tmp_path), 3_000_000, 60)
    assert (found.written, found.syncs) == (3_000_000, 500)
    assert found.bytes_per_s > 0
    assert 0 <= found.sync.p50_ms <= found.sync.p99_ms <= found.sync.max_latency_ms
    assert list(tmp_path.iterdir()) == []


def test_a_slow_disk_is_measured_with_less(tmp_path: Path) -> None:
    # Each look at the clock is a second: of the writing, and of each sync.
    found = measure_disk(str(tmp_path), 100_000_000, 3, seconds(1.0).__next__)
    assert found.written == 3 << 20
    assert found.bytes_per_s == pytest.approx((3 << 20) / 4)
    assert found.syncs == 1
    assert found.sync.max_latency_ms == 1000


def test_a_disk_that_would_be_nearly_full_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimpleNamespace(f_bavail=60_000, f_blocks=1_000_000, f_frsize=1000)
    monkeypatch.setattr(os, "statvfs", lambda path: disk)
    with pytest.raises(NoRoom, match=r"60\.0 MB of 1\.00 GB are free: 10\.0 MB of a test would leave too little"):
        measure_disk(str(tmp_path), 10_000_000, 1)
    assert list(tmp_path.iterdir()) == []
