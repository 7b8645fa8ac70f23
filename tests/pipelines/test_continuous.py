"""The continuous form on a broker: killed in the middle, continued, upgraded, and asked in SQL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
import run_pipelines
from confluent_kafka import Consumer, TopicPartition
from run_pipelines import SHORT_RUN, Shop

import barnabas
from barnabas.demo.answers import totals
from barnabas.demo.feeder import FIRST_LINES, Feed, read_lines
from barnabas.demo.shop import create_topics
from barnabas.demo.shop_broker import ShopBroker
from barnabas.demo.tables import read_table
from tests.spark.session import SPARK_PROGRAM

LINES = 3_000
FEED = Feed(rows=LINES, seed=8)  # a shop whose customers take two large orders back
PATIENCE_S = 1500.0
pytestmark = [
    *(mark for mark in SPARK_PROGRAM if mark.name != "timeout"),
    pytest.mark.timeout(7000),
    pytest.mark.conform,
    pytest.mark.long,
]


class Running:
    """`python -m shop run` in a folder."""

    def __init__(self, shop: Shop, *arguments: str, master: str = "local[2]") -> None:
        command = [
            sys.executable,
            "-m",
            "shop",
            "run",
            "--master",
            master,
            "-b",
            shop.servers,
            *SHORT_RUN,
            *arguments,
        ]
        self.shop = shop
        self.log = shop.folder / "shop.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command, cwd=shop.folder, env=shop.environment, stdout=log, stderr=log, start_new_session=True
            )

    def wait_for_orders(self, more_than: int) -> None:
        """Wait until this many rows are in the table of checked orders."""
        deadline_s = time.monotonic() + PATIENCE_S
        while rows(self.shop, "checked_orders") <= more_than:
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < deadline_s, self.log.read_text()[-3000:]
            time.sleep(0.1)

    def wait_for_a_batch(self) -> None:
        """Wait until some query is in a batch that has records."""
        while all(query["idle"] for query in json.loads((self.shop.folder / "status.json").read_text())["queries"]):
            time.sleep(0.02)

    def metrics(self) -> str:
        """Return the page of the run's metrics."""
        url = self.log.read_text().partition("metrics for Prometheus: ")[2].split()[0]
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as page:
            return str(page.read(), "utf-8")

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def wait(self) -> None:
        assert self.process.wait(PATIENCE_S) == 0, self.log.read_text()[-3000:]


def table(shop: Shop, name: str, *columns: str) -> list[dict[str, Any]]:
    found = read_table(shop.folder / "spark-warehouse" / "live.db" / name, columns)
    return [] if found is None else found.to_pylist()


def consumed(servers: str, topic: str) -> list[Any]:
    """Return the committed records of a topic."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "test", "isolation.level": "read_committed"})
    found = []
    try:
        for number in consumer.list_topics(topic).topics[topic].partitions:
            partition = TopicPartition(topic, number, 0)
            _, end = consumer.get_watermark_offsets(partition)
            consumer.assign([partition])
            while end and consumer.position([partition])[0].offset < end:
                record = consumer.poll(30)
                if record is None:
                    break
                found.append(record)
    finally:
        consumer.close()
    return found


def rows(shop: Shop, name: str) -> int:
    return len(table(shop, name, "offset"))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The tables of queries that were killed while lines came in, and then read the rest."""
    with barnabas.Broker() as broker:
        create_topics(ShopBroker(broker.bootstrap_servers))
        shop = Shop(tmp_path_factory.mktemp("continuous") / "shop", broker.bootstrap_servers)
        with run_pipelines.fed_in_two_parts(shop.servers, FEED) as rest:
            running = Running(shop, "--metrics", "0")
            running.wait_for_orders(FIRST_LINES - 1)
            assert 'barnabas_spark_query_active{query="checked_orders"} 1.0' in running.metrics()
            rest.set()
            running.wait_for_orders(FIRST_LINES)
            running.kill()
        Running(shop, "--once").wait()
        yield shop


@pytest.fixture(scope="module")
def lines() -> list[list[str]]:
    return list(read_lines(FEED))


def test_every_record_is_there_once(shop, lines):
    places = Counter((row["partition"], row["offset"]) for row in table(shop, "checked_orders", "partition", "offset"))
    assert len(places) == LINES
    assert set(places.values()) == {1}
    clean = [row["amount"] for row in table(shop, "checked_orders", "amount", "reason") if row["reason"] is None]
    expected = totals(lines)
    assert (sum(clean) * 1000, len(clean)) == (expected.revenue_thousandths, expected.clean)


def test_closed_windows_have_the_revenue_of_their_minute(shop):
    wanted: Counter[Any] = Counter()
    for row in table(shop, "checked_orders", "at", "country", "amount", "reason"):
        if row["reason"] is None:
            wanted[row["at"].replace(second=0), row["country"]] += row["amount"]
    found = {
        (row["minute"], row["country"]): row["revenue"]
        for row in table(shop, "revenue_windows", "minute", "country", "revenue")
    }
    assert found
    assert found == {key: wanted[key] for key in found}
    last_closed = max(minute for minute, _ in found)
    assert {key for key in wanted if key[0] <= last_closed} == set(found)


def test_alerts_are_those_that_sql_finds(shop):
    alerts = {(row["kind"], row["order_id"], row["line"]) for row in table(shop, "alerts", "kind", "order_id", "line")}
    found = shop.ask(
        "SELECT kind, order_id, line FROM live.suspicious_orders",
        "SELECT 'revenue', sum(revenue) FROM live.revenue_by_day",
    )
    assert Decimal(found.pop()[1]) * 1000 == totals(read_lines(FEED)).revenue_thousandths
    assert {(kind, order, int(line)) for kind, order, line in found} == alerts
    assert {kind for kind, _, _ in alerts} == {"large", "taken back"}


def change(shop: Shop, module: str, old: str, new: str) -> None:
    """Change the project's code, as its user would."""
    path = shop.folder / "shop" / module
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_topics_have_each_row_once(shop):
    """As consumers see them that read committed records: the killed pipeline's attempts are not among them."""
    windows = sorted(
        (str(row["country"]), str(row["revenue"])) for row in table(shop, "revenue_windows", "country", "revenue")
    )
    sent = [json.loads(record.value()) for record in consumed(shop.servers, "revenue")]
    assert sorted((each["country"], f"{Decimal(str(each['revenue'])):.3f}") for each in sent) == windows
    alerts = sorted((row["kind"], row["order_id"]) for row in table(shop, "alerts", "kind", "order_id"))
    sent = [json.loads(record.value()) for record in consumed(shop.servers, "alerts")]
    assert sorted((each["kind"], each["order_id"]) for each in sent) == alerts
    orders = table(shop, "checked_orders", "partition", "offset", "reason")
    rejected = sorted((str(row["partition"]), str(row["offset"]), row["reason"]) for row in orders if row["reason"])
    headers = [dict(record.headers()) for record in consumed(shop.servers, "orders.dlq")]
    assert (
        sorted(tuple(each[name].decode() for name in ("partition", "offset", "reason")) for each in headers) == rejected
    )


def test_changed_code_goes_on_from_the_checkpoints(shop):
    """What is in the tables stays; a new rule holds for new lines. The query with state starts over, when told to."""
    change(
        shop,
        "transform.py",
        'F.when(is_blank("order_id")',
        'F.when(F.col("country") == "United Kingdom", "closed").when(is_blank("order_id")',
    )
    change(shop, "alerts.py", "LARGE, TAKEN_BACK = 5_000", "LARGE, TAKEN_BACK = 50")
    with run_pipelines.fed_in_two_parts(shop.servers, replace(FEED, rows=LINES + 500)) as rest:
        rest.set()
    shop.type(sys.executable, "-m", "shop", "upgrade", "alerts")
    Running(shop, "--once").wait()
    orders = table(shop, "checked_orders", "partition", "offset", "order_id", "line", "amount", "country", "reason")
    assert len({(row["partition"], row["offset"]) for row in orders}) == len(orders) == LINES + 500
    assert {row["line"] > LINES for row in orders if row["reason"] == "closed"} == {True}
    assert {row["country"] for row in orders if row["reason"] is None and row["line"] > LINES}.isdisjoint(
        {"United Kingdom"}
    )
    large = {(row["order_id"], row["line"]) for row in orders if row["reason"] is None and row["amount"] >= 50}
    alerts = table(shop, "alerts", "kind", "order_id", "line")
    assert {(row["order_id"], row["line"]) for row in alerts if row["kind"] == "large"} == large


def test_a_new_query_may_begin_where_one_stopped(shop):
    positions = json.loads(shop.type(sys.executable, "-m", "shop", "positions", "checked_orders"))
    assert sum(positions["orders"].values()) == rows(shop, "checked_orders")
