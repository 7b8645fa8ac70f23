"""The audit of a table: which offsets are wrong in it, and in what way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import barnabas
from barnabas.client.admin import Admin, NewTopic, results
from barnabas.spark.tables.audit import audit, compare, delta_table, parquet_files, table_offsets


def found(committed: list[int], table: list[int], log_start: int = 0, **options: bool) -> dict[str, Any]:
    """Return what differs: the number behind, and the wrong offsets by word."""
    audited = compare(0, np.array(committed, np.int64), np.array(table, np.int64), log_start, **options)
    return {"behind": audited.behind} | {what: offsets.tolist() for what, offsets in audited.wrong.items()}


def test_a_table_that_has_everything_once() -> None:
    assert found([0, 1, 4], [4, 0, 1]) == {"behind": 0}
    assert found([], []) == {"behind": 0}


def test_what_is_wrong() -> None:
    assert found([0, 1, 2, 3], [0, 3, 3]) == {"behind": 0, "missing": [1, 2], "repeated": [3]}
    assert found([0, 2], [0, 1, 2]) == {"behind": 0, "unknown": [1]}


def test_the_end_of_the_log_may_be_behind() -> None:
    assert found([0, 1, 2], [0]) == {"behind": 2}
    assert found([0, 1, 2], []) == {"behind": 3}
    assert found([0, 1, 2], [0], to_end=True) == {"behind": 0, "missing": [1, 2]}
    assert found([0, 1], [0, 1, 7]) == {"behind": 0, "unknown": [7]}


def test_the_beginning_of_the_table() -> None:
    assert found([0, 1, 2], [2]) == {"behind": 0, "missing": [0, 1]}
    assert found([0, 1, 2], [2], from_first=True) == {"behind": 0}


def test_what_retention_deleted_can_only_be_repeated() -> None:
    assert found([5, 6], [3, 4, 4, 5, 6], log_start=5) == {"behind": 0, "repeated": [4]}


def rows(topic: str, *places: tuple[int, int]) -> pa.Table:
    return pa.table(
        {
            "topic": [topic] * len(places),
            "partition": pa.array([partition for partition, _ in places], pa.int32()),
            "offset": pa.array([offset for _, offset in places], pa.int64()),
        }
    )


def test_a_table_of_several_topics(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.concat_tables([rows("a", (0, 1), (1, 2)), rows("b", (0, 9))]))
    write_deltalake(tmp_path / "t", rows("a", (0, 1)), mode="append")
    offsets = table_offsets(delta_table(str(tmp_path / "t")), "a")
    assert {partition: sorted(each.offsets.tolist()) for partition, each in offsets.items()} == {0: [1, 1], 1: [2]}


def test_no_table(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a Delta table"):
        delta_table(str(tmp_path / "none"))
    with pytest.raises(ValueError, match="has no Parquet files"):
        parquet_files(str(tmp_path / "none"))
    pq.write_table(pa.table({"topic": ["a"]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="the table has no column partition"):
        table_offsets(parquet_files(str(tmp_path)), "a")


def test_files_that_a_streaming_query_did_not_commit_do_not_count(tmp_path: Path) -> None:
    """A file sink of Spark's leaves the files of failed attempts; its log names the others."""
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    for number in range(5):
        pq.write_table(rows("a", (0, number)), tmp_path / f"part {number}.parquet")

    def entry(*numbers: int) -> str:
        uris = [(tmp_path / f"part {number}.parquet").as_uri() for number in numbers]
        return "\n".join(["v1", *(json.dumps({"path": uri, "action": "add"}) for uri in uris)])

    (log / "0").write_text("v1\nbroken, and in 1.compact")
    (log / "1.compact").write_text(entry(0, 1))
    (log / "2").write_text(entry(3))
    assert sorted(table_offsets(parquet_files(str(tmp_path)), "a")[0].offsets.tolist()) == [0, 1, 3]


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as running:
        yield running


def test_aborted_records_and_a_partition_that_does_not_exist(broker: barnabas.Broker, tmp_path: Path) -> None:
    """Partition 0 has 0 and 1 committed, 2 the marker, 3 aborted, 4 its marker, 5 and 6 of an open transaction."""
    with Admin(broker.bootstrap_servers) as admin:
        results(admin.create_topics([NewTopic("t", 1)]))
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "w"})
    producer.init_transactions()
    for count, end in ((2, producer.commit_transaction), (1, producer.abort_transaction), (2, producer.flush)):
        producer.begin_transaction()
        for _ in range(count):
            producer.produce("t", b"x", partition=0)
        producer.flush()
        end()
    path = str(tmp_path / "t")
    write_deltalake(path, rows("t", (0, 0), (0, 1)))
    (good,) = audit(broker.bootstrap_servers, "t", delta_table(path), to_end=True)
    assert (good.committed, good.wrong) == (2, {})
    write_deltalake(path, rows("t", (0, 2), (0, 3), (0, 5), (0, 99)), mode="append")
    (bad,) = audit(broker.bootstrap_servers, "t", delta_table(path))
    assert {what: offsets.tolist() for what, offsets in bad.wrong.items()} == {
        "uncommitted": [3, 5],
        "unknown": [2, 99],
    }
    write_deltalake(path, rows("t", (7, 0)), mode="append")
    with pytest.raises(ValueError, match="rows of partition 7, which topic t does not have"):
        list(audit(broker.bootstrap_servers, "t", delta_table(path)))
    producer.abort_transaction()


@pytest.mark.parametrize(
    ("name", "column", "complaint"),
    [
        (
            "offset",
            pa.array([0, None]),
            "has rows of topic t without a partition or an offset: something else than a query",
        ),
        ("partition", pa.array([None, 0]), "has rows of topic t without a partition or an offset"),
        ("offset", pa.array(["0", "1"]), "column offset is string and not a whole number"),
    ],
)
def test_a_table_that_something_else_wrote_to(name: str, column: pa.Array, complaint: str) -> None:
    table = rows("t", (0, 0), (0, 1))
    other = table.set_column(table.schema.get_field_index(name), name, column)
    with pytest.raises(ValueError, match=complaint):
        table_offsets(ds.InMemoryDataset(other), "t")
