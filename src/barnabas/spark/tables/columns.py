"""The columns of a query and those of its table: which ones are new, and which ones no batch can be written with.

A table gets a new column of a query before the query's first row with it; earlier rows are null in it. Everything else that changed is an
error before the first row: a column that the query no longer has, a column of another type, a name that differs in case only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; `type` is in the words of the table's format."""

    type: str
    is_nullable: bool = True


def arrow_schema(batch: DataFrame) -> pa.Schema:
    """Return a batch's columns: Spark's timestamps in UTC, as both formats keep them, and everything nullable."""
    return pa.schema([pa.field(each.name, _in_utc(each.type)) for each in batch.limit(0).toArrow().schema])


def _in_utc(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(kind) and kind.tz is not None else kind


def new_columns(table: str, there: Mapping[str, Column], ours: Mapping[str, str]) -> list[str]:
    """Return the columns of a query that its table does not have.

    Args:
        table: what errors call the table.
        there: the table's columns.
        ours: the types of the query's columns.

    Raises:
        ValueError: a column was removed, or has another type.
    """
    other = [
        f"{name} is {column.type} in the table and {ours.get(name, 'absent')} in the query"
        for name, column in there.items()
        if ours.get(name) != column.type
    ]
    folded = {name.casefold(): name for name in there}
    new = [name for name in ours if name not in there]
    other += [
        f"{name} in the query is {folded[name.casefold()]} in the table" for name in new if name.casefold() in folded
    ]
    if other:
        raise ValueError(
            f"{table} has other columns than this query: {'; '.join(other)}. Give the query the table's columns again, a removed one as "
            "`cast(null as TYPE) as NAME`, or write to another table"
        )
    if strict := [name for name, column in there.items() if not column.is_nullable]:
        raise ValueError(
            f"{table} has columns that may not be null: {', '.join(strict)}. A query's columns may be: write to another table"
        )
    return new


def check_partition_columns(table: str, schema: pa.Schema, names: Sequence[str]) -> None:
    """Raise ValueError if a table cannot be partitioned by these columns."""
    for name in names:
        if name not in schema.names:
            raise ValueError(f"{table} cannot be partitioned by {name}: the query has no such column")
        kind = schema.field(name).type
        if not any(is_kind(kind) for is_kind in _PARTITION_TYPES):
            raise ValueError(
                f"{table} cannot be partitioned by {name}, which is {kind}: partition by a whole number, text, a date or a boolean, for "
                "example by `to_date(timestamp)`"
            )
    if names and set(names) == set(schema.names):
        raise ValueError(f"{table} cannot be partitioned by all of its columns")


_PARTITION_TYPES = (pa.types.is_integer, pa.types.is_string, pa.types.is_date, pa.types.is_boolean)


def check_same_partitions(table: str, there: Sequence[str], wanted: Sequence[str] | None) -> None:
    """Raise ValueError if a table is partitioned otherwise than a query asks for; None asks for nothing."""
    if wanted is not None and list(there) != list(wanted):
        is_by, asked_by = (", ".join(names) or "nothing" for names in (there, wanted))
        raise ValueError(
            f"{table} is partitioned by {is_by}, and the query asks for {asked_by}: leave out partition_by, or write to another table"
        )
