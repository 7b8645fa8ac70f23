"""`make pipelines`: two runs with new lines in between; the tables add up to the lines, and no row is there twice."""

from __future__ import annotations

from typing import Any

import pytest
from run_pipelines import Run, run_twice, totals

from barnabas.demo.feeder import FIRST_LINES, Feed, read_lines
from tests.spark.session import SPARK

LINES = 2_000


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return run_twice(tmp_path_factory.mktemp("pipelines") / "shop", Feed(rows=LINES))


class TestTwoRuns:
    """Each of its commands starts Java, so it takes minutes on a busy machine."""

    pytestmark = [*(mark for mark in SPARK if mark.name != "timeout"), pytest.mark.timeout(7000), pytest.mark.long]

    @pytest.mark.parametrize(("run", "fed"), [(0, FIRST_LINES), (1, LINES)])
    def test_the_sum_is_that_of_the_lines(self, runs, run, fed):
        expected = totals(list(read_lines(Feed(rows=LINES)))[:fed])
        assert runs[run].answers == [
            [f"{expected.revenue:.3f}", str(expected.clean)],
            [str(fed), str(fed)],
            [str(expected.rejected)],
        ]


@pytest.mark.parametrize(
    ("changed", "value", "is_clean"),
    [
        (None, "", True),
        (3, "0", False),
        (3, "1.5", False),
        (3, "-2", True),
        (4, "yesterday", False),
        (5, "ask", False),
        (5, "-1", False),
        (1, " ", False),
        (6, "", True),
    ],
)
def test_the_comparison_rejects_what_the_pipeline_rejects(changed: int | None, value: str, is_clean: bool):
    line: list[Any] = ["1", "20", "LAMP", "3", "2010-12-01 08:26:00", "2.50", "12", "UK"]
    if changed is not None:
        line[changed] = value
    found = totals([line, ["too", "short"]])
    assert (found.clean, found.rejected) == (is_clean, 2 - is_clean)
