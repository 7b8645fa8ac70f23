"""Spark's driver, killed with SIGKILL in every window of the sink's protocol; each row is there once in the end.

`python -m pytest -m long tests/spark/test_sink_kills.py` takes minutes. Before it can pass, the driver must have died at
each place.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.spark.session import Topics
from tests.spark.sink_run import committed

ROOT = Path(__file__).parents[2]
ROWS = 20_000
PLACES = ("in a task", "before the decision", "after the decision", "between commits", "after the commits")
"""Where `killing/pyspark_killing.py` kills; never imported here, since it changes the sink of its process."""
ATTEMPTS = 5
"""On a busy machine Spark gives up a Python process that is slow to start; that is no death of ours."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(3600),
]


def drive(topics: Topics, source: str, target: str, folder: Path, sink: str, seed: int) -> bool:
    """Run the driver, and return whether it ended by itself."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "spark" / "killing")])
    command = [sys.executable, str(ROOT / "tests" / "spark" / "kill_run.py")]
    with (folder / "log").open("ab") as log:
        done = subprocess.run(
            [*command, topics.servers, source, target, str(folder), sink, str(seed)],
            env={**os.environ, "PYTHONPATH": path, "KILLING": str(folder)},
            stdout=log,
            stderr=log,
            timeout=900,
            check=False,
        )
    return done.returncode == 0


def filled(topics: Topics) -> str:
    source = topics.create(partitions=3)
    topics.produce(source, [{"value": str(number), "partition": number % 3} for number in range(ROWS)])
    return source


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_killed_in_every_window(topics, tmp_path, seed):
    source, target = filled(topics), topics.create(partitions=2)
    for place in PLACES:
        (tmp_path / place).touch()
        for _ in range(ATTEMPTS):
            ended = drive(topics, source, target, tmp_path, "killing", seed)
            if not (tmp_path / place).exists():
                break
        assert not (tmp_path / place).exists(), (tmp_path / "log").read_text()[-4000:]
        assert not ended, f"the driver went on after its death {place}"
        seed += 10
    for _ in range(ATTEMPTS):
        if drive(topics, source, target, tmp_path, "killing", seed):
            break
    found = committed(topics.servers, target)
    assert sum(found.values()) == ROWS
    assert found == Counter(map(str, range(ROWS)))


@pytest.mark.conform
def test_sparks_own_sink_writes_rows_twice(topics, tmp_path):
    """The number in docs/spark-sink.md."""
    source, target = filled(topics), topics.create(partitions=2)
    found: Counter[str] = Counter()
    for seed in (1, 2):
        with (tmp_path / "log").open("ab") as log:
            driver = subprocess.Popen(
                [sys.executable, str(ROOT / "tests" / "spark" / "kill_run.py"), topics.servers, source, target,
                 str(tmp_path), "kafka", str(seed)],
                env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=log, stderr=log,
            )  # fmt: skip
            while driver.poll() is None:
                if seed == 1 and sum(committed(topics.servers, target).values()) >= ROWS // 4:
                    os.kill(int((tmp_path / "pid").read_text()), 9)
                    driver.wait()
        found = committed(topics.servers, target)
    twice = sum(found.values()) - len(found)
    print(f"{sum(found.values())} rows, {twice} of them twice")
    assert len(found) == ROWS
