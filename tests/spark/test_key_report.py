"""The report of a topic's keys that Spark counts: its tasks without a session, and the whole beside `topic skew`."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from barnabas.client.key_report import report_of
from barnabas.main import command_group
from barnabas.spark.key_report import counting, key_report, merged
from tests.pages import blocks
from tests.spark.session import SPARK, Topics, servers, spark, topics

__all__ = ["servers", "spark", "topics"]

COLUMNS = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("key", pa.binary()), ("size_bytes", pa.int64())]
)
PARTITIONS = 3
Row = tuple[int, bytes | None, int]


def batch(rows: list[Row], topic: str = "orders") -> pa.RecordBatch:
    names = COLUMNS.names
    return pa.RecordBatch.from_pylist([dict(zip(names, (topic, *row), strict=True)) for row in rows], COLUMNS)


def counted(tasks: list[list[list[Row]]], counters: int) -> list[dict[str, Any]]:
    """Return what the tasks send, each of which gets some batches."""
    return [
        row
        for batches in tasks
        for part in counting(counters)(batch(rows) for rows in batches)
        for row in part.to_pylist()
    ]


def some_rows(count: int, seed: int) -> list[Row]:
    chance = random.Random(seed)
    keys: list[bytes | None] = [None, *(b"%d" % int(chance.paretovariate(0.6)) for _ in range(count))]
    return [(len(key or b"") % PARTITIONS, key, chance.randrange(100)) for key in keys]


def split(rows: list[Row]) -> list[list[list[Row]]]:
    """Return the batches of four tasks."""
    return [[rows[task::4][at : at + 500] for at in range(0, len(rows), 500)] for task in range(4)]


def test_a_task_sends_a_row_for_each_of_its_partitions() -> None:
    (found,) = counting(10)([batch([(0, b"a", 5), (1, None, 2), (0, b"a", 7)]), batch([(0, b"b", 1)])])
    assert found.to_pylist() == [
        {"topic": "orders", "partition": 0, "records": 3, "without_key": 0, "size_bytes": 13, "bound": 0,
         "keys": [b"a", b"b"], "key_records": [2, 1], "key_errors": [0, 0]},
        {"topic": "orders", "partition": 1, "records": 1, "without_key": 1, "size_bytes": 2, "bound": 0,
         "keys": [], "key_records": [], "key_errors": []},
    ]  # fmt: skip
    assert list(counting(10)([])) == []


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("counters", [30, 100_000])
def test_four_tasks_count_what_one_counts(seed: int, counters: int) -> None:
    rows = some_rows(5_000, seed)
    found = merged(counted(split(rows), counters), PARTITIONS, counters)
    for number, each in enumerate(found):
        here = [row for row in rows if row[0] == number]
        exact = Counter(key for _, key, _ in here if key is not None)
        assert each.records == len(here)
        assert each.size_bytes == sum(size for *_, size in here)
        assert each.without_key == sum(key is None for _, key, _ in here)
        for key in each.keys.all():
            assert key.at_least <= exact[key.key] <= key.records
        assert {key for key, count in exact.items() if count > each.keys.bound} <= {key.key for key in each.keys.all()}
        assert each.keys.bound <= (exact.total() / counters if counters < len(exact) else 0)
    report = report_of(found, 25, [4])
    assert report.records == len(rows)
    assert [choice.keys for choice in report.choices] == ["as they are", "hot ones with 4 salts"]


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ([], "there are no rows"),
        ([batch([(3, b"a", 1)])], "a row is in partition 3, and the topic is said to have 3 partitions"),
        ([batch([(0, b"a", 1)]), batch([(0, b"a", 1)], "bills")], "of several topics, such as bills and orders"),
    ],
)
def test_rows_that_are_not_of_the_topic_are_an_error(parts: list[pa.RecordBatch], sentence: str) -> None:
    rows = [row for found in counting(10)(parts) for row in found.to_pylist()]
    with pytest.raises(ValueError, match=sentence):
        merged(rows, PARTITIONS, 10)


@pytest.mark.parametrize(
    "changed", [{"partitions": 0}, {"counters": 0}, {"salts": (1,)}, {"partitioner": "murmur3"}], ids=str
)
def test_a_bad_argument_is_an_error_before_spark_reads(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"at least|is not one of murmur2"):
        key_report(None, **{"partitions": 3} | changed)  # type: ignore[arg-type]


class TestInSpark:
    pytestmark = [*SPARK, pytest.mark.conform]

    def test_the_report_has_the_numbers_of_topic_skew(
        self, spark: Any, topics: Topics, capsys: pytest.CaptureFixture[str]
    ) -> None:
        chance = random.Random(5)
        topic = topics.create(partitions=6)
        keys = [
            None if each == 0 else f"key-{min(each, 40)}"
            for each in (int(chance.paretovariate(1)) for _ in range(3000))
        ]
        topics.produce(topic, [{"key": key, "value": "v" * chance.randrange(9)} for key in keys] + [{"value": None}])
        words = ["topic", "skew", topic, "-b", topics.servers, "-n", "1000", "-o"]
        result = CliRunner().invoke(command_group(), [*words, "start", "--output", "json"])
        assert result.exit_code == 0, result.output
        shown = json.loads(result.stdout)
        rows = (
            spark.read.format("barnabas")
            .options(**{"kafka.bootstrap.servers": topics.servers, "subscribe": topic})
            .load()
        )
        found = key_report(rows.repartition(4), 6)
        assert [
            {"partition": number, "records": each.records, "bytes": each.size_bytes, "without_key": each.without_key}
            for number, each in enumerate(found.partitions)
        ] == [
            {name: each[name] for name in ("partition", "records", "bytes", "without_key")}
            for each in shown["partitions"]
        ]
        assert [(each.counted.key.decode(), each.partition, each.counted.records) for each in found.keys] == [
            (each["key"], each["partition"], each["at_most"]) for each in shown["keys"]
        ]
        assert (found.hot_keys, found.fit.partitioner) == (shown["hot_keys"], shown["partitioner"])
        assert [(each.keys, each.records, each.times_even) for each in found.choices] == [
            (each["keys"], each["records"], each["times_even"]) for each in shown["plans"]
        ]
        (sample,) = [each for each in blocks("docs/keys.md") if "key_report" in each]
        exec(sample, {"spark": spark, "options": {"kafka.bootstrap.servers": topics.servers, "subscribe": topic}})
        printed = capsys.readouterr().out
        assert len(printed.splitlines()) == 6 + 10 + 4
        assert f"as they are {found.choices[0].records}" in printed
        with pytest.raises(ValueError, match="no column partition"):
            key_report(rows.select("key"), 6)
