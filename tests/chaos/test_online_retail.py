"""Half a million real order lines through the pipeline while its driver dies five times and the broker twice.

`python -m pytest -m long tests/chaos/test_online_retail.py`; `tests/demo/test_online_retail.py` says where the file is
looked for, and has a shorter run.
"""

from __future__ import annotations

import contextlib

import pytest

from barnabas.demo.feeder import Feed, read_lines
from tests.chaos.from_lines import FromLines
from tests.chaos.from_shop import HEADER, Comparison, comparisons
from tests.chaos.plan import Kind, plan
from tests.chaos.run import Chaos, Settings
from tests.demo.test_online_retail import LINES, online_retail
from tests.spark.session import SPARK_PROGRAM

SEED, SECONDS = 3, 240.0
KILLS = {Kind.DRIVER: 5, Kind.BROKER: 2}

pytestmark = [
    *(mark for mark in SPARK_PROGRAM if mark.name != "timeout"),
    pytest.mark.long,
    pytest.mark.timeout(7000),
    pytest.mark.skipif(
        online_retail() is None, reason="the online-retail file is not here; set BARNABAS_ONLINE_RETAIL to it"
    ),
]


@pytest.fixture(scope="module")
def chaos(tmp_path_factory: pytest.TempPathFactory) -> Chaos:
    feed = Feed(online_retail(), seconds=SECONDS)
    return Chaos(Settings(feed, plan(SEED, LINES, KILLS), True, tmp_path_factory.mktemp("online-retail") / "run"))


@pytest.fixture(scope="module")
def found(chaos: Chaos) -> list[Comparison]:
    wanted = FromLines(read_lines(chaos.settings.feed))
    with contextlib.contextmanager(chaos)() as shop:
        compared = comparisons(shop, wanted)
    print(HEADER, *compared, sep="\n")
    return compared


def test_every_aggregate_and_every_bad_line_is_that_of_the_file(found):
    assert [line for each in found for line in each.examples()] == []
    sizes = {each.name: each.found.total() for each in found}
    assert (sizes["table checked_orders"], sizes["topic orders.dlq"]) == (LINES, 2_517)
    assert min(sizes.values()) > 0


def test_nothing_was_skipped(chaos, found):
    assert chaos.losses == []
