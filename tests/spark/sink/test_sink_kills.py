"""Spark's driver, killed with SIGKILL in every window of the sink's protocol; each row is there once in the end.

Before a test can pass, the driver must have died at each place. `make conform` has the two windows in which a batch is decided and
not yet committed; `python -m pytest -m long tests/spark/sink/test_sink_kills.py` has all, and takes minutes. `python -m
tests.spark.sink.kill_matrix` plays more seeds.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.spark.session import SPARK_PROGRAM
from tests.spark.sink.kill_matrix import ROOT, ROWS, Outcome, filled, play
from tests.spark.sink.sink_run import committed

pytestmark = [
    *(mark for mark in SPARK_PROGRAM if mark.name != "timeout"),
    pytest.mark.timeout(3600),
    pytest.mark.conform,
    # The sink's requests are the same on both: test_protocol kills it at each of them, on Apache Kafka too.
    pytest.mark.parametrize(
        "servers", ["barnabas", pytest.param("kafka", marks=pytest.mark.long)], indirect=True, scope="session"
    ),
]


def test_killed_between_decision_and_commits(topics, tmp_path):
    places = ("after the decision", "between commits")
    assert play(topics, tmp_path, 4, places=places) == Outcome(ROWS, missing=0, twice=0, foreign=0)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_killed_in_every_window(topics, tmp_path, seed):
    assert play(topics, tmp_path, seed) == Outcome(ROWS, missing=0, twice=0, foreign=0)


@pytest.mark.long
def test_sparks_own_sink_writes_rows_twice(topics, tmp_path):
    """The number in docs/spark-sink.md."""
    source, target = filled(topics), topics.create(partitions=2)
    found: Counter[str] = Counter()
    for seed in (1, 2):
        with (tmp_path / "log").open("ab") as log:
            driver = subprocess.Popen(
                [sys.executable, str(ROOT / "tests" / "spark" / "sink" / "kill_run.py"), topics.servers, source, target,
                 str(tmp_path), "kafka", str(seed)],
                env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tools'}"}, stdout=log, stderr=log,
            )  # fmt: skip
            while driver.poll() is None:
                if seed == 1 and sum(committed(topics.servers, target).values()) >= ROWS // 4:
                    os.kill(int((tmp_path / "pid").read_text()), 9)
                    driver.wait()
        found = committed(topics.servers, target)
    twice = sum(found.values()) - len(found)
    print(f"{sum(found.values())} rows, {twice} of them twice")
    assert len(found) == ROWS
