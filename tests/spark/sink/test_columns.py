"""Where rows go, and what they hold."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from barnabas.client.partitioner import partition_for
from barnabas.spark.sink.columns import RowRouter

NOW_MS = 1_800_000_000_000


def route(rows: dict[str, object], topic: str | None = "t", partitions: int = 4, first: int = 0):
    router = RowRouter(topic, lambda name: partitions, first, lambda: NOW_MS)
    return list(router.route(pa.record_batch(rows)))


def where(found) -> dict[str, list[bytes]]:
    return {str(partition): records.values.to_pylist() for partition, records in found}


def test_keys_go_where_java_puts_them_in_order():
    keys = [f"key-{i % 7}".encode() for i in range(50)]
    values = [b"%d" % i for i in range(50)]
    expected: dict[str, list[bytes]] = {}
    for key, value in zip(keys, values, strict=True):
        expected.setdefault(f"t-{partition_for(key, 4)}", []).append(value)
    assert where(route({"key": keys, "value": values})) == expected


def test_rows_without_keys_go_round():
    router = RowRouter("t", lambda name: 3, 1, lambda: NOW_MS)
    rows = pa.record_batch({"value": [b"a", b"b"]})
    assert [str(p) for _ in range(4) for p, _ in router.route(rows)] == ["t-1", "t-2", "t-0", "t-1"]


def test_the_partition_of_a_row_comes_before_its_key():
    partitions = pa.array([3, None, 3], pa.int32())
    found = where(route({"key": [b"a", b"a", b"a"], "value": [b"1", b"2", b"3"], "partition": partitions}))
    assert found == {"t-3": [b"1", b"3"], f"t-{partition_for(b'a', 4)}": [b"2"]}


@pytest.mark.parametrize("partition", [-1, 4])
def test_a_partition_that_is_not_there(partition):
    with pytest.raises(ValueError, match=f"topic t has partitions 0 to 3, and a row is for {partition}"):
        route({"value": [b"1"], "partition": pa.array([partition], pa.int32())})


def test_rows_for_several_topics():
    rows = {"value": [b"1", b"2", b"3"], "topic": ["a", "b", "a"]}
    assert where(route(rows, topic=None, partitions=1)) == {"a-0": [b"1", b"3"], "b-0": [b"2"]}
    assert where(route(rows, topic="c", partitions=1)) == {"c-0": [b"1", b"2", b"3"]}


def test_partitions_stay_with_the_rows_of_their_topic():
    rows = {"value": [b"1", b"2", b"3"], "topic": ["a", "b", "a"], "partition": pa.array([0, 1, 2], pa.int32())}
    assert where(route(rows, topic=None)) == {"a-0": [b"1"], "a-2": [b"3"], "b-1": [b"2"]}


def test_a_row_without_a_topic():
    with pytest.raises(ValueError, match="null topic present in the data"):
        route({"value": [b"1"], "topic": pa.array([None], pa.string())}, topic=None)


def test_timestamps_and_their_absence():
    moment = datetime(2024, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)
    given = pa.array([moment, None], pa.timestamp("us", tz="UTC"))
    ((_, records),) = route({"value": [b"1", b"2"], "timestamp": given}, partitions=1)
    assert records.timestamps.tolist() == [int(moment.timestamp() * 1000), NOW_MS]
    ((_, records),) = route({"value": [b"1"]}, partitions=1)
    assert records.timestamps.tolist() == [NOW_MS]


def test_text_nulls_and_names_in_capitals():
    ((_, records),) = route({"VALUE": ["é", None], "Key": pa.nulls(2)}, partitions=1)
    assert records.values.to_pylist() == ["é".encode(), None]
    assert records.keys.to_pylist() == [None, None]


def test_nothing():
    assert route({"value": pa.array([], pa.binary())}) == []
