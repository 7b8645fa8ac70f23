"""A minute of `make chaos`: the broker dies once and Spark's driver once, while lines come in."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from barnabas.demo.feeder import Feed, count_lines, read_lines
from tests.chaos.from_lines import FromLines
from tests.chaos.from_shop import comparisons
from tests.chaos.plan import Kind, plan
from tests.chaos.run import Chaos, Settings
from tests.spark.session import SPARK_PROGRAM

SEED = 5

pytestmark = [*SPARK_PROGRAM, pytest.mark.conform]


def test_every_table_and_topic_has_each_line_once(tmp_path: Path) -> None:
    feed = Feed(rows=3_000, seconds=60, seed=SEED)
    faults = plan(SEED, count_lines(feed), {Kind.BROKER: 1, Kind.DRIVER: 1})
    chaos = Chaos(Settings(feed, faults, True, tmp_path / "run"))
    with contextlib.contextmanager(chaos)() as shop:
        found = comparisons(shop, FromLines(read_lines(feed)))
    assert [line for each in found for line in each.examples()] == []
    assert min(each.found.total() for each in found if each.wanted) > 0
    assert chaos.losses == []
