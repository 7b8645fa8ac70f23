"""The statistics of a file: what the log of the table says of it."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq

from barnabas.spark.tables import delta_statistics


def footer(*groups: pa.Table) -> pq.FileMetaData:
    stream = io.BytesIO()
    with pq.ParquetWriter(stream, groups[0].schema) as writer:
        for each in groups:
            writer.write_table(each)
    return pq.read_metadata(stream)


def rows(partition: list[int | None], offset: list[int]) -> pa.Table:
    values = {"partition": pa.array(partition, pa.int32()), "offset": pa.array(offset, pa.int64())}
    return pa.table({**values, "value": [b"a"] * len(offset)})


def test_of_all_row_groups() -> None:
    found = delta_statistics.of_file(footer(rows([1, 1], [7, 8]), rows([0], [9]), rows([None], [8])))
    assert json.loads(found) == {
        "numRecords": 4,
        "minValues": {"partition": 0, "offset": 7},
        "maxValues": {"partition": 1, "offset": 9},
        "nullCount": {"partition": 1, "offset": 0},
    }


def test_a_file_without_a_column_that_statistics_are_made_of() -> None:
    assert json.loads(delta_statistics.of_file(footer(pa.table({"partition": ["a"], "value": [b"a"]})))) == {
        "numRecords": 1
    }


def test_a_partition_column_has_none() -> None:
    schema = rows([], []).schema
    assert delta_statistics.properties(schema, ()) == {delta_statistics.PROPERTY: "partition,offset"}
    assert delta_statistics.properties(schema, ("partition",)) == {delta_statistics.PROPERTY: "offset"}
    assert delta_statistics.properties(schema, ("partition", "offset")) == {}
