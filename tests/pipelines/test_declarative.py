"""`make pipelines`: two runs with new lines in between; the tables add up to the lines, and no row is there twice."""

from __future__ import annotations

import pytest
from run_pipelines import Run, run_twice

from barnabas.demo.answers import totals
from barnabas.demo.feeder import FIRST_LINES, Feed, read_lines
from tests.spark.session import SPARK_PROGRAM

LINES = 2_000


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return run_twice(tmp_path_factory.mktemp("pipelines") / "shop", Feed(rows=LINES))


class TestTwoRuns:
    """Each of its commands starts Java, so it takes minutes on a busy machine."""

    pytestmark = [
        *(mark for mark in SPARK_PROGRAM if mark.name != "timeout"),
        pytest.mark.timeout(7000),
        pytest.mark.conform,
        pytest.mark.long,
    ]

    @pytest.mark.parametrize(("run", "fed"), [(0, FIRST_LINES), (1, LINES)])
    def test_the_sum_is_that_of_the_lines(self, runs, run, fed):
        expected = totals(list(read_lines(Feed(rows=LINES)))[:fed])
        assert runs[run].answers == [
            [f"{expected.revenue_thousandths / 1000:.3f}", str(expected.clean)],
            [str(fed), str(fed)],
            [str(expected.rejected)],
        ]

    def test_every_table_equals_the_one_computed_from_the_lines(self, runs):
        assert [line for each in runs[1].comparisons for line in each.examples()] == []
        assert len(runs[1].comparisons) == 14

    def test_three_programs_give_the_same_sums(self, runs):
        first, *others = runs[1].sums.values()
        assert len(first) == 8
        assert [first, first] == others
