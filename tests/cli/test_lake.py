"""`barnabas lake audit`: the verdict, its exit code and its words."""

from __future__ import annotations

import json
import time
from pathlib import Path

import confluent_kafka
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from deltalake import DeltaTable, Schema, write_deltalake
from deltalake.transaction import AddAction

import barnabas
from barnabas.cli.lake import in_words, ranges
from barnabas.client.admin import Admin, NewTopic, results
from barnabas.main import command_group
from tests.spark.tables.appending import KINDS, append, catalog_in, open_table


def test_ranges_in_words() -> None:
    assert ranges([]) == []
    assert ranges([4, 5, 6, 9]) == [[4, 6], [9, 9]]
    assert in_words([4, 5, 6, 9]) == "offsets 4 to 6, 9"
    assert in_words([1, 3, 5, 7, 9]) == "offsets 1, 3, 5 and 2 more ranges"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command_group(), arguments, prog_name="barnabas")


def test_the_verdict_and_its_exit_code(tmp_path: Path) -> None:
    with barnabas.Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        results(admin.create_topics([NewTopic("orders", 1)]))
        produced = CliRunner().invoke(
            command_group(), ["produce", "orders", "-b", broker.bootstrap_servers], input="a\nb\nc\nd\n"
        )
        assert produced.exit_code == 0
        path = str(tmp_path / "table")

        def append(*offsets: int) -> None:
            table = {"topic": ["orders"] * len(offsets), "partition": [0] * len(offsets), "offset": list(offsets)}
            write_deltalake(path, pa.table(table), mode="append")

        def audit(*options: str) -> Result:
            return run("lake", "audit", "orders", "--delta", path, "-b", broker.bootstrap_servers, *options)

        append(0, 1)
        good = audit()
        assert good.exit_code == 0
        assert good.output.splitlines()[-1] == (
            "valid: each of 2 committed records of orders is in the table once; 2 at the end are not in it yet"
        )
        append(1, 3)
        bad = audit()
        assert bad.exit_code == 1
        assert bad.output == (
            "PARTITION  COMMITTED  ROWS  MISSING  REPEATED  UNCOMMITTED  UNKNOWN  BEHIND\n"
            "0          4          4     1        1         0            0        0\n"
            "\n"
            "orders-0: missing: offsets 2\n"
            "orders-0: repeated: offsets 1\n"
            "invalid: 1 missing, 1 repeated\n"
        )
        document = json.loads(audit("-o", "json").output)
        assert document["valid"] is False
        assert document["wrong"] == [
            {"partition": 0, "what": "missing", "ranges": [[2, 2]]},
            {"partition": 0, "what": "repeated", "ranges": [[1, 1]]},
        ]


def test_a_table_without_a_row_of_the_topic_is_never_valid(tmp_path: Path) -> None:
    """A reader that finds no row, for whatever reason, has compared nothing."""
    path = str(tmp_path / "table")
    write_deltalake(path, pa.table({"topic": ["other"], "partition": [0], "offset": [0]}))
    with barnabas.Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        results(admin.create_topics([NewTopic("orders", 1)]))
        audit = ("lake", "audit", "orders", "--delta", path, "-b", broker.bootstrap_servers)
        empty = run(*audit)
        assert empty.exit_code == 0, "the topic has no records either"
        CliRunner().invoke(command_group(), ["produce", "orders", "-b", broker.bootstrap_servers], input="a\nb\n")
        for options in ([], ["--from-first"], ["--to-end"]):
            result = run(*audit, *options)
            assert result.exit_code == 1
            assert result.output.splitlines()[-1] == (
                "invalid: the table has no row of orders, which has 2 committed records"
            )
            assert json.loads(run(*audit, *options, "-o", "json").output)["valid"] is False


def test_statistics_of_another_writer_do_not_hide_rows(tmp_path: Path) -> None:
    """deltalake skips the file for a filter on topic, because its statistics lack that column; the audit reads it."""
    rows = pa.table({"topic": ["orders"] * 2, "partition": [0, 0], "offset": [0, 1]})
    DeltaTable.create(tmp_path, Schema.from_arrow(rows.schema))
    pq.write_table(rows, tmp_path / "a.parquet")
    statistics = '{"numRecords": 2, "minValues": {"offset": 0}, "maxValues": {"offset": 1}, "nullCount": {}}'
    file = AddAction("a.parquet", (tmp_path / "a.parquet").stat().st_size, {}, 0, True, statistics)
    DeltaTable(tmp_path).create_write_transaction([file], "append", rows.schema)
    with barnabas.Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        results(admin.create_topics([NewTopic("orders", 1)]))
        CliRunner().invoke(command_group(), ["produce", "orders", "-b", broker.bootstrap_servers], input="a\nb\n")
        result = run("lake", "audit", "orders", "--delta", str(tmp_path), "-b", broker.bootstrap_servers)
    assert result.output.splitlines()[-1] == "valid: each of 2 committed records of orders is in the table once"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_upkeep_of_a_table_and_its_audit(kind: str, tmp_path: Path) -> None:
    """Two files become one, and the audit finds each record."""
    table = ["--delta", str(tmp_path / "table")]
    if kind == "iceberg":
        table = ["--iceberg", "shop.orders"]
        table += [word for pair in catalog_in(tmp_path).items() for word in ("--catalog", "=".join(pair))]
    for batch in (0, 1):
        rows = pa.table({"topic": ["orders"], "partition": pa.array([0], pa.int32()), "offset": [batch]})
        assert append(open_table(kind, tmp_path), rows, batch)
    assert run("lake", "compact", *table).output == "put 2 files together into 1\n"
    assert run("lake", "compact", *table).output == "no small files\n"
    assert run("lake", "vacuum", *table).output == "deleted 0 files\n"
    with barnabas.Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        results(admin.create_topics([NewTopic("orders", 1)]))
        CliRunner().invoke(command_group(), ["produce", "orders", "-b", broker.bootstrap_servers], input="a\nb\n")
        result = run("lake", "audit", "orders", *table, "-b", broker.bootstrap_servers)
    assert result.output.splitlines()[-1] == "valid: each of 2 committed records of orders is in the table once"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_audit_of_a_part(kind: str, tmp_path: Path) -> None:
    """Partition 0 lacks offset 1, an hour old; in partition 1 offset 0, of the second day, is there twice."""
    table = ["--delta", str(tmp_path / "table")]
    if kind == "iceberg":
        table = ["--iceberg", "shop.orders"]
        table += [word for pair in catalog_in(tmp_path).items() for word in ("--catalog", "=".join(pair))]
    now_ms = time.time_ns() // 1_000_000
    with barnabas.Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        results(admin.create_topics([NewTopic("orders", 2)]))
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
        for partition in (0, 1):
            for age_ms in (7_200_000, 3_600_000, 0):
                producer.produce("orders", b"a", partition=partition, timestamp=now_ms - age_ms)
        assert producer.flush(30) == 0
        for batch, (partition, offset, age_ms, day) in enumerate(
            [(0, 0, 7_200_000, 1), (0, 2, 0, 2), (1, 0, 7_200_000, 2), (1, 0, 7_200_000, 2), (1, 1, 3_600_000, 1)]
        ):
            rows = {
                "topic": ["orders"], "partition": pa.array([partition], pa.int32()), "offset": [offset],
                "timestamp": pa.array([now_ms - age_ms], pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC")),
                "day": [day],
            }  # fmt: skip
            assert append(open_table(kind, tmp_path), pa.table(rows), batch)

        def audit(*conditions: str) -> list[str]:
            words = [word for each in conditions for word in ("--where", each)]
            result = run("lake", "audit", "orders", *table, "-b", broker.bootstrap_servers, *words)
            *_, verdict, open_ = ["", *result.output.splitlines()]
            assert result.exit_code == (0 if verdict.startswith("valid") else 1), result.output
            assert not conditions or open_.startswith("not compared: the other rows and records")
            return [verdict, open_]

        assert audit()[1] == "invalid: 1 missing, 1 repeated"
        assert audit("partition=0")[0] == "invalid: 1 missing"
        assert audit("partition=1")[0] == "invalid: 1 repeated"
        assert audit("timestamp>=-90m", "partition=1")[0] == (
            "valid: each of 1 committed records of orders with timestamp >= -90m and partition = 1 is in the table once; "
            "1 at the end are not in it yet"
        )
        assert audit("timestamp>=-90m")[0] == "invalid: 1 missing"
        assert audit("timestamp<-90m")[0] == "invalid: 1 repeated"
        assert audit("day=1") == [
            "valid: each of 2 rows of orders with day = 1 is a committed record, once",
            "not compared: the other rows and records; and whether records are missing from this part, because the topic does "
            "not have the column day",
        ]
        assert audit("day=2")[0] == "invalid: 1 repeated"
        assert audit("day=3")[0] == "invalid: the table has no row of orders with day = 3"
        missing = run("lake", "audit", "orders", *table, "-b", broker.bootstrap_servers, "--where", "timestmp>=-1h")
        assert missing.output == "error: the table has no column timestmp; did you mean timestamp?\n"
        words = ["lake", "audit", "orders", *table, "-b", broker.bootstrap_servers, "--where", "day=1", "-o", "json"]
        document = json.loads(run(*words).output)
        assert (document["where"], document["partitions"][0]["missing"]) == ("day = 1", None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compact"], "name one table: --delta PATH or --iceberg TABLE"),
        (["vacuum", "--iceberg", "a.b"], "name the table's catalogue: --catalog NAME, or --catalog KEY=VALUE"),
        (["vacuum", "--delta", "/dev/null/none", "--older-than", "5m"], "give an hour or more"),
        (["compact", "--delta", "/dev/null/none"], "/dev/null/none"),
    ],
)
def test_what_the_upkeep_rejects(words: list[str], message: str) -> None:
    result = run("lake", *words)
    assert result.exit_code in (1, 2)
    assert message in result.output


@pytest.mark.parametrize("tables", [[], ["--delta", "a", "--parquet", "b"]])
def test_one_table(tables: list[str]) -> None:
    result = run("lake", "audit", "orders", *tables)
    assert result.exit_code == 2
    assert "name one table: --delta PATH, --iceberg TABLE or --parquet PATH" in result.output
