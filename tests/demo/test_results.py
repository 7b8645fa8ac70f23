"""A repeated batch does not change the results."""

from __future__ import annotations

import pyarrow as pa

from barnabas.demo.results import ResultTable


def rows(*pairs: tuple[str, int]) -> pa.Table:
    return pa.table({"name": [name for name, _ in pairs], "sum": [value for _, value in pairs]})


def test_the_newest_row_of_a_key_counts(tmp_path):
    table = ResultTable(tmp_path / "t", ["name"])
    table.put(0, rows(("a", 1), ("b", 2)))
    table.put(1, rows(("a", 5)))
    assert sorted(row["sum"] for row in table.rows()) == [2, 5]


def test_a_repeated_batch_changes_nothing(tmp_path):
    table = ResultTable(tmp_path / "t", ["name"])
    table.put(0, rows(("a", 1)))
    table.put(1, rows(("a", 5)))
    table.put(1, rows(("a", 5)))
    assert [row["sum"] for row in table.rows()] == [5]
    assert len(list((tmp_path / "t").iterdir())) == 2


def test_results_of_an_earlier_run_are_loaded(tmp_path):
    first = ResultTable(tmp_path / "t", ["name"])
    for batch in range(12):
        first.put(batch, rows(("a", batch)))
    assert ResultTable(tmp_path / "t", ["name"]).rows() == [{"name": "a", "sum": 11}]


def test_an_unfinished_file_is_not_loaded(tmp_path):
    folder = tmp_path / "t"
    folder.mkdir()
    (folder / "000000000.unfinished").write_bytes(b"half")
    assert ResultTable(folder, ["name"]).rows() == []
