"""The continuous form on Spark standalone: a master and two workers, of which one loses its executor in mid-batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
import run_pipelines
from run_pipelines import Shop

import barnabas
from barnabas.demo.answers import totals
from barnabas.demo.feeder import FIRST_LINES, read_lines
from barnabas.demo.shop import create_topics
from barnabas.demo.shop_broker import ShopBroker
from tests.pipelines.cluster import Cluster
from tests.pipelines.test_continuous import FEED, LINES, Running, rows, table
from tests.spark.session import SPARK_PROGRAM

pytestmark = [
    *(mark for mark in SPARK_PROGRAM if mark.name != "timeout"),
    pytest.mark.timeout(7000),
    pytest.mark.conform,
    pytest.mark.long,
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The tables after an executor was killed while lines came in."""
    folder = tmp_path_factory.mktemp("cluster")
    cluster = Cluster(folder)
    try:
        with barnabas.Broker() as broker:
            create_topics(ShopBroker(broker.bootstrap_servers))
            shop = Shop(folder / "shop", broker.bootstrap_servers)
            with run_pipelines.fed_in_two_parts(shop.servers, FEED) as rest:
                running = Running(shop, "--conf", "spark.executor.memory=600m", master=cluster.master)
                running.wait_for_orders(FIRST_LINES - 1)
                rest.set()
                running.wait_for_a_batch()
                assert cluster.kill_an_executor()
                running.wait_for_orders(LINES - 1)
            running.kill()
            yield shop
    finally:
        cluster.stop()


def test_every_record_is_there_once(shop):
    places = Counter((row["partition"], row["offset"]) for row in table(shop, "checked_orders", "partition", "offset"))
    assert len(places) == rows(shop, "checked_orders") == LINES
    clean = [row["amount"] for row in table(shop, "checked_orders", "amount", "reason") if row["reason"] is None]
    assert sum(clean) * 1000 == totals(read_lines(FEED)).revenue_thousandths
