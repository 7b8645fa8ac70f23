"""A batch is in the table once, whatever is killed and whoever else writes: each cut, for both formats, without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from barnabas.spark.tables.batch_writer import BatchTable, CommitConflict, WrittenBatch, commit_batch, is_written
from tests.spark.tables.appending import (
    KINDS,
    append,
    data_files,
    files_named,
    open_table,
    proof,
    rows_of,
    write_files,
)

pytestmark = pytest.mark.parametrize("kind", KINDS)


def rows(first: int, count: int = 3) -> pa.Table:
    """Return records that follow one another."""
    offsets = pa.array(range(first, first + count), pa.int64())
    topic = pa.array(["orders"] * count, pa.string())
    return pa.table({"topic": topic, "partition": pa.array([0] * count, pa.int32()), "offset": offsets})


def offsets(table: BatchTable) -> list[int]:
    return sorted(rows_of(table)["offset"].to_pylist())


def test_killed_while_tasks_write(kind: str, tmp_path: Path) -> None:
    """The files are there, and no reader finds them; the batch is repeated."""
    table = open_table(kind, tmp_path)
    left = write_files(table, rows(0))
    assert offsets(table) == []
    assert append(open_table(kind, tmp_path), rows(0), 0)
    assert offsets(table) == [0, 1, 2]
    assert len(data_files(tmp_path)) == 2
    assert not any(name.endswith(left[0].path.rsplit("/", 1)[-1]) for name in files_named(table))


def test_killed_after_the_commit(kind: str, tmp_path: Path) -> None:
    """Spark has no note of it and repeats the batch: the table has it, and nothing is written."""
    assert append(open_table(kind, tmp_path), rows(0), 0)
    again = open_table(kind, tmp_path)
    assert not append(again, rows(0), 0)
    assert offsets(again) == [0, 1, 2]
    assert data_files(tmp_path) == files_named(again)
    assert again.written("q") == WrittenBatch(0, proof(rows(0)))


def test_a_repeated_batch_with_other_rows(kind: str, tmp_path: Path) -> None:
    assert append(open_table(kind, tmp_path), rows(0), 0)
    with pytest.raises(ValueError, match=r"has batch 0 of query q with 3 rows, .* repeats it with 4 rows"):
        append(open_table(kind, tmp_path), rows(0, 4), 0)
    assert is_written(open_table(kind, tmp_path), "q", 0, None), "nobody compares"


def test_two_drivers_with_one_batch(kind: str, tmp_path: Path) -> None:
    """Both have read the table before either commits; one commit wins, and the other driver's files go."""
    assert append(open_table(kind, tmp_path), rows(0), 0)
    first, second = open_table(kind, tmp_path), open_table(kind, tmp_path)
    files = {}
    for driver in (first, second):
        assert not is_written(driver, "q", 1, None)
        files[id(driver)] = write_files(driver, rows(3))
    assert commit_batch(first, files[id(first)], "q", 1)
    assert not commit_batch(second, files[id(second)], "q", 1)
    assert offsets(first) == [0, 1, 2, 3, 4, 5]
    assert data_files(tmp_path) == files_named(first)


def test_two_drivers_whose_batches_differ(kind: str, tmp_path: Path) -> None:
    first, second = open_table(kind, tmp_path), open_table(kind, tmp_path)
    files = [(driver, write_files(driver, given)) for driver, given in ((first, rows(0)), (second, rows(0, 4)))]
    assert commit_batch(first, files[0][1], "q", 0)
    with pytest.raises(ValueError, match="Spark repeats it with 4 rows"):
        commit_batch(second, files[1][1], "q", 0)
    assert offsets(first) == [0, 1, 2]
    assert data_files(tmp_path) == files_named(first)


def test_a_driver_that_is_overtaken(kind: str, tmp_path: Path) -> None:
    """The other one wrote this batch and the next while this one's tasks ran."""
    slow = open_table(kind, tmp_path)
    files = write_files(slow, rows(0))
    other = open_table(kind, tmp_path)
    assert append(other, rows(0), 0)
    assert append(other, rows(3), 1)
    with pytest.raises(ValueError, match=r"has batch 1 of query q, and this is batch 0: .* Use the checkpoint that"):
        commit_batch(slow, files, "q", 0)
    assert offsets(other) == [0, 1, 2, 3, 4, 5]
    assert data_files(tmp_path) == files_named(other)


def test_two_queries_of_one_table_do_not_hinder_each_other(kind: str, tmp_path: Path) -> None:
    """The second one's commit loses against the first one's, and is repeated."""
    first, second = open_table(kind, tmp_path), open_table(kind, tmp_path)
    files = {
        query: write_files(driver, given) for query, driver, given in (("a", first, rows(0)), ("b", second, rows(9)))
    }
    assert commit_batch(first, files["a"], "a", 0)
    assert commit_batch(second, files["b"], "b", 0)
    assert offsets(first) == [0, 1, 2, 9, 10, 11]
    assert (first.written("a"), first.written("b")) == (
        WrittenBatch(0, proof(rows(0))),
        WrittenBatch(0, proof(rows(9))),
    )


def test_the_answer_to_a_commit_is_lost(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store repeats the request and finds its own commit in the way. The table's files must not be deleted."""
    table = open_table(kind, tmp_path)
    files = write_files(table, rows(0))
    commit = type(table).commit

    def without_answer(*given: object) -> None:
        commit(*given)  # type: ignore[arg-type]
        raise CommitConflict("the entry is there already")

    monkeypatch.setattr(type(table), "commit", without_answer)
    assert commit_batch(table, files, "q", 0)
    assert offsets(table) == [0, 1, 2]
    assert data_files(tmp_path) == files_named(table)


def test_a_batch_that_is_older_than_the_table(kind: str, tmp_path: Path) -> None:
    for batch in (0, 1):
        assert append(open_table(kind, tmp_path), rows(3 * batch), batch)
    with pytest.raises(
        ValueError, match=r"has batch 1 of query q, and this is batch 0: the query's checkpoint is older"
    ):
        is_written(open_table(kind, tmp_path), "q", 0, None)


def test_a_table_that_lacks_batches(kind: str, tmp_path: Path) -> None:
    table = open_table(kind, tmp_path)
    with pytest.raises(ValueError, match="has no batch of query q, and this is batch 1: rows of the batches before"):
        append(table, rows(0), 1)
    assert data_files(tmp_path) == []
    assert append(table, rows(0), 0)
    assert append(table, rows(0, 0), 1), "a batch without rows counts"
    assert append(table, rows(3), 2)
    with pytest.raises(ValueError, match=r"has batches up to 2 of query q, and this is batch 4: .* Begin with a new"):
        append(table, rows(6), 4)
    assert not is_written(table, "q", 4, None, fail_on_missing_batch=False)
    assert offsets(table) == [0, 1, 2, 3, 4, 5]


def test_a_new_checkpoint_and_an_old_table(kind: str, tmp_path: Path) -> None:
    assert append(open_table(kind, tmp_path), rows(0), 0)
    with pytest.raises(ValueError, match=r"has records, and none of query r: .* it would write records a second time"):
        append(open_table(kind, tmp_path), rows(0), 0, "r")
