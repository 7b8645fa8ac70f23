"""Which rows belong to a part."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from barnabas.spark.tables.audited_part import parse_part

HOUR = 3_600_000
ROWS = pa.record_batch({
    "partition": pa.array([0, 1, 1, None], pa.int32()),
    "timestamp": pa.array([0, HOUR, 2 * HOUR, 3 * HOUR], pa.timestamp("ms", "UTC")),
    "day": pa.array([datetime.date(1970, 1, day) for day in (1, 1, 2, 2)]),
    "country": ["France", "a = b", None, "France"],
    "is_paid": [True, False, True, None],
})  # fmt: skip


@pytest.mark.parametrize(
    ("conditions", "chosen"),
    [
        ([], [0, 1, 2, 3]),
        (["partition=1"], [1, 2]),
        (["partition = 1", "day=1970-01-02"], [2]),
        (["partition<=0"], [0]),
        (["timestamp>=-2h"], [1, 2, 3]),
        (["timestamp>1970-01-01T00:00", "timestamp<1970-01-01T02:00"], [1]),
        (["country=a = b"], [1]),
        (["country>=France"], [0, 1, 3]),
        (["is_paid=true"], [0, 2]),
    ],
    ids=str,
)
def test_rows_of_a_part(conditions, chosen):
    assert parse_part(conditions, 3 * HOUR).mask(ROWS).nonzero()[0].tolist() == chosen


def test_partitions_of_a_part():
    part = parse_part(["partition>1", "day=1970-01-01"], 0)
    assert [part.has_partition(each) for each in range(4)] == [False, False, True, True]
    assert part.unknown_to_the_log == ["day"]
    assert str(part) == "partition > 1 and day = 1970-01-01"


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        ("day", "'day' is not a condition: write COLUMN=VALUE"),
        ("=1", "'=1' is not a condition"),
        ("partition=one", "column partition is int32, and 'one' is none"),
        ("day=yesterday", "column day is date32"),
        ("timestamp>=soon", "column timestamp is timestamp"),
    ],
)
def test_what_is_not_a_condition(condition, sentence):
    with pytest.raises(ValueError) as refused:
        parse_part([condition], 0).mask(ROWS)
    assert str(refused.value).startswith(sentence)
