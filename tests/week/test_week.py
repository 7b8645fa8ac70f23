"""A week of a few batches: the upkeep comes when it is due, files get the table's time, and the samples say so."""

from __future__ import annotations

import csv
import datetime
from pathlib import Path

import pyiceberg.table.snapshots
import pytest

from tests.week import chart, measured, week
from tests.week.__main__ import write_alone
from tests.week.measured import Sample
from tests.week.week import Week


@pytest.mark.slow
def test_a_few_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyiceberg.table.snapshots, "time", pyiceberg.table.snapshots.time)
    monkeypatch.setattr(week, "COMPACT_EVERY_S", 4)
    monkeypatch.setattr(week, "VACUUM_EVERY_S", 8)
    said: list[datetime.timedelta] = []
    monkeypatch.setattr(week, "vacuum", lambda table, age, now: said.append(age))
    samples: list[Sample] = []
    found = Week("delta", tmp_path, 2, samples.append)
    write_alone(found, 10)
    assert [each.live_files for each in samples] == [2, 1, 3, 1, 3]
    assert [each.data_files for each in samples] == [2, 5, 7, 10, 12]
    assert len(said) == 1
    files = sorted((tmp_path / "table").glob("part-*.parquet"), key=lambda each: each.stat().st_mtime)
    begin_s = found.now_s() - found.batches
    assert [round(each.stat().st_mtime - begin_s) for each in files[:4]] == [0, 1, 2, 3]
    measured.write(tmp_path / "samples.csv", samples)
    with (tmp_path / "samples.csv").open() as file:
        assert [int(row["batches"]) for row in csv.DictReader(file)] == [2, 4, 6, 8, 10]
    chart.draw(tmp_path / "week.svg", samples)
    assert "data files" in (tmp_path / "week.svg").read_text()
