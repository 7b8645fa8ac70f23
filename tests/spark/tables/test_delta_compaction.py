"""The compaction of a Delta table: which files it puts together, and what it leaves."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from deltalake.exceptions import CommitFailedError

from barnabas.spark.tables import delta_compaction
from barnabas.spark.tables.delta_compaction import compact
from barnabas.spark.tables.delta_table import Delta
from tests.spark.tables.appending import append, files_named, rows, rows_of

NOW_MS = 1_800_000_000_000


def opened(folder: Path, partition_by: tuple[str, ...] | None = None) -> Delta:
    found = Delta.at(folder / "table", partition_by)
    found.refresh()
    return found


def test_a_null_list_stays_null(tmp_path: Path) -> None:
    for batch in range(2):
        assert append(opened(tmp_path), rows(2 * batch), batch)
    assert compact(opened(tmp_path), 1 << 20, NOW_MS) == (2, 1)
    (file,) = files_named(opened(tmp_path))
    assert pq.read_table(file)["headers"].to_pylist() == [None, [], None, []]


def test_partitions_keep_their_values(tmp_path: Path) -> None:
    """A date, a text, and null."""
    days = [datetime.date(2026, 11, 26), None]
    for batch in range(2):
        values = {"day": days, "country": ["Norway", None], "offset": [2 * batch, 2 * batch + 1]}
        assert append(opened(tmp_path, ("day", "country")), pa.table(values), batch)
    assert compact(opened(tmp_path), 1 << 20, NOW_MS) == (4, 2)
    found = sorted(map(str, rows_of(opened(tmp_path)).select(["day", "country", "offset"]).to_pylist()))
    assert found == sorted(str({"day": days[n % 2], "country": ["Norway", None][n % 2], "offset": n}) for n in range(4))


def test_the_log_says_that_no_row_changed(tmp_path: Path) -> None:
    for batch in range(2):
        assert append(opened(tmp_path), rows(2 * batch), batch)
    compact(opened(tmp_path), 1 << 20, NOW_MS)
    entries = [json.loads(line) for line in newest_entry(tmp_path).read_text().splitlines()]
    removed = [each["remove"] for each in entries if "remove" in each]
    (added,) = (each["add"] for each in entries if "add" in each)
    assert [each["dataChange"] for each in (added, *removed)] == [False] * 3
    assert {each["deletionTimestamp"] for each in removed} == {NOW_MS}
    assert json.loads(added["stats"])["maxValues"] == {"offset": 3}


def newest_entry(folder: Path) -> Path:
    return max((folder / "table" / "_delta_log").glob("*.json"))


def test_a_file_that_lacks_a_column(tmp_path: Path) -> None:
    assert append(opened(tmp_path), rows(0), 0)
    assert append(opened(tmp_path), rows(2).append_column("note", pa.array(["x", "y"])), 1)
    assert compact(opened(tmp_path), 1 << 20, NOW_MS) == (2, 1)
    assert sorted(map(str, rows_of(opened(tmp_path))["note"].to_pylist())) == ["None", "None", "x", "y"]


def test_a_file_with_another_type_is_left(tmp_path: Path) -> None:
    for batch in range(3):
        assert append(opened(tmp_path), rows(2 * batch), batch)
    path = files_named(opened(tmp_path))[0]
    found = pq.read_table(path)
    pq.write_table(found.set_column(0, "offset", found["offset"].cast(pa.int32())), path)
    assert compact(opened(tmp_path), 1 << 20, NOW_MS) == (2, 1)
    assert path in files_named(opened(tmp_path))


def test_deltalakes_compaction_meanwhile(tmp_path: Path) -> None:
    """It has put the same files together since we read the table."""
    for batch in range(2):
        assert append(opened(tmp_path), rows(2 * batch), batch)
    late = opened(tmp_path)
    opened(tmp_path).opened().optimize.compact()
    with pytest.raises(ValueError, match="was changed by others while its files were put together"):
        compact(late, 1 << 20, NOW_MS)
    assert sorted(rows_of(opened(tmp_path))["offset"].to_pylist()) == [0, 1, 2, 3]
    assert len(list((tmp_path / "table").glob("part-*.parquet"))) <= 3, "the late one's file is gone"


def test_a_query_that_is_always_faster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for batch in range(2):
        assert append(opened(tmp_path), rows(2 * batch), batch)

    def lose(*given: Any, **named: Any) -> None:
        raise CommitFailedError("another commit was first")

    table = opened(tmp_path)
    monkeypatch.setattr(delta_compaction.DeltaTable, "create_write_transaction", lose)
    with pytest.raises(ValueError, match="try again"):
        compact(table, 1 << 20, NOW_MS)


def test_deletion_vectors(tmp_path: Path) -> None:
    """Rows that they delete would come back."""
    place = tmp_path / "table"
    write_deltalake(place, rows(0), configuration={"delta.enableDeletionVectors": "true"})
    with pytest.raises(ValueError, match="has deletion vectors, which this compaction does not read"):
        compact(opened(tmp_path), 1 << 20, NOW_MS)
