"""Compaction and vacuum of both formats: no row changes, a query's last batch stays, and what is young stays."""

from __future__ import annotations

import datetime
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from barnabas.spark.tables.batch_writer import WrittenBatch
from barnabas.spark.tables.upkeep import Compacted, compact, vacuum
from tests.spark.tables.appending import KINDS, append, data_files, files_named, open_table, proof, rows_of, write_files

_HEADERS = pa.list_(pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())])))
_WEEK = datetime.timedelta(days=7)


def rows(first: int, *more: str) -> pa.Table:
    """Return records of two partitions; two of three have no headers."""
    values = {
        "partition": pa.array([0, 1, 0], pa.int32()),
        "offset": pa.array(range(first, first + 3), pa.int64()),
        "headers": pa.array([None, [], [{"key": "k", "value": b"v"}]], _HEADERS),
    }
    return pa.table({**values, **{name: ["x"] * 3 for name in more}})


def make_old(folder: Path, days: int = 30) -> None:
    """Let each file of a folder be a month old."""
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix != ".db":
            os.utime(path, (time.time() - days * 86400,) * 2)


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@pytest.mark.parametrize("kind", KINDS)
def test_compaction_keeps_each_row(kind: str, tmp_path: Path) -> None:
    for batch in range(3):
        assert append(open_table(kind, tmp_path, ("partition",)), rows(3 * batch), batch)
    assert append(open_table(kind, tmp_path), rows(9, "note"), 3)
    before = sorted(map(str, rows_of(open_table(kind, tmp_path)).to_pylist()))
    found = compact(open_table(kind, tmp_path), 1 << 20, now())
    assert found == Compacted(8, 2)
    table = open_table(kind, tmp_path)
    assert len(files_named(table)) == 2
    assert sorted(map(str, rows_of(table).to_pylist())) == before
    assert table.written("q") == WrittenBatch(3, proof(rows(9)))
    assert compact(table, 1 << 20, now()) == Compacted(0, 0), "nothing is left to do"
    assert append(table, rows(12, "note"), 4), "the query goes on"


@pytest.mark.parametrize("kind", KINDS)
def test_compaction_beside_a_query(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is committed after the compaction has read the table."""
    for batch in range(2):
        assert append(open_table(kind, tmp_path), rows(3 * batch), batch)
    compacting = open_table(kind, tmp_path)
    compacting.refresh()
    assert append(open_table(kind, tmp_path), rows(6), 2)
    monkeypatch.setattr(type(compacting), "refresh", _skipped_once(type(compacting).refresh))
    assert compact(compacting, 1 << 20, now()) == Compacted(2, 1)
    assert sorted(rows_of(open_table(kind, tmp_path))["offset"].to_pylist()) == list(range(9))


@pytest.mark.parametrize("kind", KINDS)
def test_two_compactions(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one to commit finds its files gone; no row is doubled."""
    for batch in range(2):
        assert append(open_table(kind, tmp_path), rows(3 * batch), batch)
    late = open_table(kind, tmp_path)
    late.refresh()
    assert compact(open_table(kind, tmp_path), 1 << 20, now()) == Compacted(2, 1)
    monkeypatch.setattr(type(late), "refresh", _skipped_once(type(late).refresh))
    with pytest.raises(ValueError, match="was changed by others while its files were put together"):
        compact(late, 1 << 20, now())
    assert sorted(rows_of(open_table(kind, tmp_path))["offset"].to_pylist()) == list(range(6))


@pytest.mark.parametrize("kind", KINDS)
def test_vacuum_deletes_what_is_old_and_unnamed(kind: str, tmp_path: Path) -> None:
    """Files of a killed task, if they are old; neither those of a task at work nor the table's."""
    table = open_table(kind, tmp_path)
    for batch in range(2):
        assert append(table, rows(3 * batch), batch)
    killed = write_files(table, rows(6))
    make_old(tmp_path)
    at_work = write_files(table, rows(6))
    assert vacuum(open_table(kind, tmp_path), _WEEK, now()) == len(killed)
    left = [path.rsplit("/", 1)[-1] for path in data_files(tmp_path)]
    assert {each.path.rsplit("/", 1)[-1] for each in at_work} <= set(left)
    assert not {each.path.rsplit("/", 1)[-1] for each in killed} & set(left)
    assert sorted(rows_of(table)["offset"].to_pylist()) == list(range(6))
    assert table.written("q") == WrittenBatch(1, proof(rows(3)))


@pytest.mark.parametrize("kind", KINDS)
def test_vacuum_after_a_compaction(kind: str, tmp_path: Path) -> None:
    """The old files stay as long as somebody may read the table as it was."""
    for batch in range(2):
        assert append(open_table(kind, tmp_path), rows(3 * batch), batch)
    assert compact(open_table(kind, tmp_path), 1 << 20, now()) == Compacted(2, 1)
    make_old(tmp_path)
    assert len(data_files(tmp_path)) == 3
    assert vacuum(open_table(kind, tmp_path), _WEEK, now()) == 0
    assert len(data_files(tmp_path)) == 3
    assert vacuum(open_table(kind, tmp_path), _WEEK, now() + 2 * _WEEK) > 0
    assert data_files(tmp_path) == files_named(open_table(kind, tmp_path))
    table = open_table(kind, tmp_path)
    assert sorted(rows_of(table)["offset"].to_pylist()) == list(range(6))
    assert append(table, rows(6), 2)


def test_a_vacuum_cuts_the_log_of_a_delta_table(tmp_path: Path) -> None:
    """Only versions from before the age need the entries; the table is read from a checkpoint since."""
    table = open_table("delta", tmp_path)
    for batch in range(3):
        assert append(table, rows(3 * batch), batch)
    vacuum(table, _WEEK, now())
    make_old(tmp_path, days=10)  # deltalake itself deletes entries after a month
    assert append(table, rows(9), 3)
    before = log_entries(tmp_path)
    assert vacuum(table, _WEEK, now()) == 3, "the table's beginning and two batches"
    assert len(log_entries(tmp_path)) == len(before) - 3 + 1, "the vacuum made a checkpoint"
    assert table.written("q") == WrittenBatch(3, proof(rows(9)))
    assert sorted(rows_of(open_table("delta", tmp_path))["offset"].to_pylist()) == list(range(12))
    assert append(table, rows(12), 4)


def log_entries(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "table" / "_delta_log").iterdir() if path.name[0] == "0")


def test_a_vacuum_goes_by_the_time_it_is_given(tmp_path: Path) -> None:
    """An hour and a half is not an hour, and the time need not be that of the machine's clock."""
    table = open_table("delta", tmp_path)
    assert append(table, rows(0), 0)
    killed = write_files(table, rows(3))
    for each in killed:
        os.utime(tmp_path / "table" / each.path, (time.time() - 80 * 60,) * 2)
    age = datetime.timedelta(minutes=90)
    assert vacuum(table, age, now()) == 0
    assert vacuum(table, age, now() + datetime.timedelta(hours=1)) >= len(killed)


@pytest.mark.parametrize("kind", KINDS)
def test_an_age_that_a_batch_may_have(kind: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="give an hour or more"):
        vacuum(open_table(kind, tmp_path), datetime.timedelta(minutes=59), now())


@pytest.mark.parametrize("kind", KINDS)
def test_no_table(kind: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"is not a Delta table|there is no table shop\.orders"):
        vacuum(open_table(kind, tmp_path), _WEEK, now())


def _skipped_once(refresh: object) -> object:
    """Return a refresh that does nothing the first time: the table was read before the others wrote."""
    skipped = []

    def refresh_later(self: object) -> None:
        if skipped:
            refresh(self)  # type: ignore[operator]
        skipped.append(True)

    return refresh_later
