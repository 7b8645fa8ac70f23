"""The columns of a piece that are not in its records."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from barnabas.records.builder import build_batch
from barnabas.records.record_batch import iter_batches
from barnabas.spark.source.columnar import arrow_schema
from barnabas.spark.source.piece import Piece

BUFFER = build_batch([(5, None, b"a", []), (9, None, b"b", [])], log_append_time=True) + build_batch(
    [(7, None, b"c", [])], base_offset=2
)


def piece(*columns: str) -> Piece:
    headers = [header for _, header in iter_batches(BUFFER)]
    return Piece(np.frombuffer(BUFFER, np.uint8), headers, [], "t", 3, arrow_schema(columns))


def test_times_are_the_batchs():
    assert piece().base_timestamps() == [9, 7]
    assert piece().append_times() == [1, 0]


def test_a_value_of_a_batch_is_repeated_for_its_records():
    assert piece().per_record([4, 8]).tolist() == [4, 4, 8]


def test_the_wanted_columns_come_in_the_order_of_the_schema():
    rows = piece("timestampType", "value", "partition", "topic").record_batch(
        3, {"offset": pa.array([0, 1, 2]), "value": pa.array([b"a", b"b", b"c"])}
    )
    assert rows.to_pydict() == {
        "timestampType": [1, 1, 0],
        "value": [b"a", b"b", b"c"],
        "partition": [3, 3, 3],
        "topic": ["t", "t", "t"],
    }
