"""Delta's statistics of a file, by which readers skip files: of `partition` and `offset` only.

The table says so in `delta.dataSkippingStatsColumns`. Without that property deltalake takes a statistic that is absent for one that matches
nothing, and a filter on `topic` finds no row. The values are those of the file's footer.
Source: the Delta protocol, "Per-file Statistics".
"""

from __future__ import annotations

import json
from collections.abc import Collection

import pyarrow as pa
import pyarrow.parquet as pq

PROPERTY = "delta.dataSkippingStatsColumns"

# Readers skip files by the least and the greatest value of these.
_COLUMNS = ("partition", "offset")


def columns_with_statistics(schema: pa.Schema) -> list[str]:
    """Return the columns of files with this schema that statistics are made of."""
    return [name for name in _COLUMNS if name in schema.names and pa.types.is_integer(schema.field(name).type)]


def properties(schema: pa.Schema, partition_by: Collection[str]) -> dict[str, str]:
    """Return the properties of a table with these columns."""
    names = [name for name in columns_with_statistics(schema) if name not in partition_by]
    return {PROPERTY: ",".join(names)} if names else {}


def of_file(footer: pq.FileMetaData) -> str:
    """Return a file's statistics as an entry of the table's log has them."""
    least: dict[str, int] = {}
    greatest: dict[str, int] = {}
    nulls: dict[str, int] = {}
    wanted = columns_with_statistics(footer.schema.to_arrow_schema())
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            name, found = column.path_in_schema, column.statistics
            if name not in wanted:
                continue
            nulls[name] = nulls.get(name, 0) + found.null_count
            if found.has_min_max:
                least[name] = min(found.min, least.get(name, found.min))
                greatest[name] = max(found.max, greatest.get(name, found.max))
    statistics: dict[str, object] = {"numRecords": footer.num_rows}
    if nulls:  # without a column the three are left out: empty ones would count as statistics of every column
        statistics |= {"minValues": least, "maxValues": greatest, "nullCount": nulls}
    return json.dumps(statistics)
