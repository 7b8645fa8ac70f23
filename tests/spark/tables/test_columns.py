"""The columns of a query and of its table: what is new, and what is an error before the first row; for both formats."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pytest

from barnabas.spark.tables.columns import Column, check_partition_columns, check_same_partitions, new_columns
from tests.spark.tables.appending import KINDS, append, data_files, open_table, rows_of

_DAY = datetime.date(2026, 1, 2)
_ROWS = pa.table(
    {
        "topic": ["orders", "orders", "others", None],
        "partition": pa.array([0, 1, 0, 2], pa.int32()),
        "offset": pa.array([5, 6, 7, 8], pa.int64()),
        "day": pa.array([_DAY, None, _DAY, _DAY], pa.date32()),
        "is_late": [True, False, None, True],
        "price": pa.array([1, 2, 3, None], pa.decimal128(9, 2)),
        "time": pa.array([0, 1, 2, 3], pa.timestamp("us", "UTC")),
    }
)


def in_order(rows: pa.Table) -> list[dict[str, object]]:
    return sorted(rows.to_pylist(), key=lambda each: (each["offset"], str(each)))


@pytest.mark.parametrize("kind", KINDS)
class TestOfATable:
    @pytest.mark.parametrize("partition_by", [(), ("topic",), ("day", "is_late", "partition")])
    def test_every_type_comes_back(self, kind: str, tmp_path: Path, partition_by: tuple[str, ...]) -> None:
        assert append(open_table(kind, tmp_path, partition_by), _ROWS, 0)
        assert in_order(rows_of(open_table(kind, tmp_path)).select(_ROWS.column_names)) == in_order(_ROWS)

    def test_a_file_for_each_partition(self, kind: str, tmp_path: Path) -> None:
        assert append(open_table(kind, tmp_path, ("topic", "partition")), _ROWS, 0)
        assert len(data_files(tmp_path)) == 4

    def test_a_new_column(self, kind: str, tmp_path: Path) -> None:
        """Earlier rows are null in it; the next batch need not add it again."""
        assert append(open_table(kind, tmp_path, ("topic",)), _ROWS, 0)
        more = _ROWS.append_column("note", pa.array(["a", "b", "c", "d"]))
        for batch in (1, 2):
            assert append(open_table(kind, tmp_path), more, batch)
        found = rows_of(open_table(kind, tmp_path))
        assert sorted(map(str, found["note"].to_pylist())) == sorted(["a", "b", "c", "d"] * 2 + ["None"] * 4)

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            (_ROWS.drop_columns("day"), "day is date in the table and absent in the query"),
            (_ROWS.set_column(2, "offset", pa.array(["5"] * 4)), "offset is .* in the table and string in the query"),
            (_ROWS.rename_columns({"topic": "Topic"}), "Topic in the query is topic in the table"),
        ],
    )
    def test_columns_that_are_not_the_tables(self, kind: str, tmp_path: Path, other: pa.Table, message: str) -> None:
        assert append(open_table(kind, tmp_path), _ROWS, 0)
        before = data_files(tmp_path)
        with pytest.raises(ValueError, match=f"{message}. Give the query the table's columns again"):
            append(open_table(kind, tmp_path), other, 1)
        assert data_files(tmp_path) == before

    def test_partitions_that_are_not_the_tables(self, kind: str, tmp_path: Path) -> None:
        assert append(open_table(kind, tmp_path, ("topic",)), _ROWS, 0)
        with pytest.raises(
            ValueError, match="is partitioned by topic, and the query asks for day: leave out partition_by"
        ):
            append(open_table(kind, tmp_path, ("day",)), _ROWS, 1)


def test_columns_that_may_not_be_null() -> None:
    assert new_columns("t", {"a": Column("int")}, {"b": "int", "a": "int"}) == ["b"]
    with pytest.raises(ValueError, match="t has columns that may not be null: a"):
        new_columns("t", {"a": Column("int", is_nullable=False)}, {"a": "int"})


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["town"], "cannot be partitioned by town: the query has no such column"),
        (
            ["time"],
            r"by time, which is timestamp\[us, tz=UTC\]: partition by a whole number, .* `to_date\(timestamp\)`",
        ),
        (_ROWS.column_names, "cannot be partitioned by"),
    ],
)
def test_columns_that_no_table_is_partitioned_by(names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_partition_columns("t", _ROWS.schema, names)


def test_a_query_that_asks_for_no_partitions() -> None:
    check_same_partitions("t", ["topic"], None)
    with pytest.raises(ValueError, match="is partitioned by topic, and the query asks for nothing"):
        check_same_partitions("t", ["topic"], [])
