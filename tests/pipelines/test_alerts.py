"""Alerts from a stream: what belongs together is found across batches, in any order, and forgotten in time."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from shop import transform
from shop.alerts import alerts
from tests.pipelines.order_lines import PAIRS, checked, pairs, taken_back
from tests.spark.session import SPARK

pytestmark = [*SPARK, pytest.mark.conform]
_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Stream:
    """The query of the alerts over a folder, run batch by batch."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.batches = spark, folder, 0
        self.folder.joinpath("in").mkdir(parents=True)

    def add(self, *changes: dict[str, Any]) -> None:
        """Give the query another batch of lines."""
        self.batches += 1
        batch = str(self.folder / f"batch-{self.batches}")
        checked(self.spark, *changes).coalesce(1).write.parquet(batch)
        for number, file in enumerate(sorted(Path(batch).glob("*.parquet"))):
            shutil.copy(file, self.folder / "in" / f"{self.batches}-{number}.parquet")

    def run(self) -> list[Any]:
        """Run the query over what is new; return all alerts so far."""
        rows = self.spark.readStream.schema(checked(self.spark, {}).schema).parquet(str(self.folder / "in"))
        query = (
            alerts(transform.lines(rows))
            .writeStream.option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(self.folder / "out"), format="parquet")
        )
        query.awaitTermination()
        self.states = query.lastProgress.stateOperators[0].numRowsTotal if query.lastProgress else 0
        return list(self.spark.read.parquet(str(self.folder / "out")).collect())


@pytest.fixture
def stream(spark: Any, tmp_path: Path) -> Any:
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", _STORE)
    yield Stream(spark, tmp_path)
    spark.conf.unset("spark.sql.streaming.stateStore.providerClass")


def test_pairs_across_batches_in_any_order(stream):
    changes = pairs()
    stream.add(*changes[2::2])  # the cancellations first
    stream.run()
    stream.add(changes[0], *changes[1::2])
    found = stream.run()
    assert sorted(row.order_id for row in found if row.kind == "large") == [str(n) for n in range(len(PAIRS))]
    assert sorted(row.order_id for row in found if row.kind == "taken back") == taken_back()
    # A day and an hour later nothing can match any more: timers have emptied the state.
    stream.add(
        {"quantity": "2", "at": "2010-12-09 08:00:00", "customer": "z"}, changes[1] | {"at": "2010-12-09 08:00:00"}
    )
    stream.run()
    stream.add(changes[1] | {"at": "2010-12-19 08:00:00"})
    stream.run()
    assert stream.states == 1
