"""Half a million real order lines through a broker and Spark, killed half way, against sums taken directly from the
file.

The file is not part of the project: `BARNABAS_ONLINE_RETAIL` names it, or it lies in `shared/data/online-retail`
beside the project. Where it is absent these tests are skipped; `test_command` runs the whole way on made-up lines.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pytest

import barnabas
from barnabas.demo import answers
from barnabas.demo.feeder import Feed, FeedProgress, feed_lines
from barnabas.demo.generator import COLUMNS
from barnabas.demo.new_shop import copy_project
from barnabas.demo.results import Results
from barnabas.demo.shop import create_topics
from barnabas.demo.shop_broker import ShopBroker
from barnabas.demo.shop_process import ShopProcess
from barnabas.demo.tables import read_table
from tests.spark.session import SPARK

LINES = 541_909
PATIENCE_S = 1500


def online_retail() -> Path | None:
    given = os.environ.get("BARNABAS_ONLINE_RETAIL")
    path = (
        Path(given)
        if given
        else Path(__file__).parents[3] / "shared" / "data" / "online-retail" / "online-retail.csv.gz"
    )
    return path if path.exists() else None


pytestmark = [
    *(mark for mark in SPARK if mark.name != "timeout"),
    pytest.mark.timeout(5000),
    pytest.mark.skipif(
        online_retail() is None, reason="the online-retail file is not here; set BARNABAS_ONLINE_RETAIL to it"
    ),
]


class Gate:
    """Holds the feeder at half of the lines and again at three quarters, each time until it is opened."""

    def __init__(self) -> None:
        self._stops = {LINES // 2: threading.Event(), LINES * 3 // 4: threading.Event()}
        self._held = threading.Semaphore(0)

    def report(self, progress: FeedProgress) -> None:
        for at, opened in self._stops.items():
            if progress.lines >= at and not opened.is_set():
                self._held.release()
                assert opened.wait(PATIENCE_S)

    def wait_until_held(self) -> None:
        assert self._held.acquire(timeout=PATIENCE_S)

    def open(self) -> None:
        """Let the feeder on to where it is held next."""
        next(opened for opened in self._stops.values() if not opened.is_set()).set()


def wait_for_orders(results: Results, more_than: int, shop: ShopProcess) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while counted(results) <= more_than:
        shop.check()
        assert time.monotonic() < deadline, "the pipeline does not get on"
        time.sleep(0.1)


def counted(results: Results) -> int:
    """How many order lines are in the table."""
    return sum(row["lines"] for row in results.outcomes())


def run_to_the_end(shop: ShopProcess, results: Results, events: int) -> None:
    """Run the pipeline until the tables have every event, and no query has anything to do for a while."""
    shop.start()
    deadline, idle = time.monotonic() + PATIENCE_S, 0
    while idle < 50:
        shop.check()
        queries = shop.progress()
        done = results.records() >= events and queries and all(query.idle for query in queries)
        idle = idle + 1 if done else 0
        assert time.monotonic() < deadline, "the pipeline does not get on"
        time.sleep(0.1)
    shop.stop()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The tables of a pipeline that was killed in the middle and ran to the end afterwards."""
    folder = tmp_path_factory.mktemp("pipeline")
    copy_project(folder)
    found = Results(folder / "spark-warehouse" / "live.db")
    gate, fed = Gate(), []
    with barnabas.Broker(data_dir=folder / "broker") as broker:
        servers = broker.bootstrap_servers
        create_topics(ShopBroker(servers))
        feeder = threading.Thread(
            target=lambda: fed.append(feed_lines(ShopBroker(servers), Feed(online_retail()), gate.report)), daemon=True
        )
        feeder.start()
        gate.wait_until_held()
        shop = ShopProcess(folder, ShopBroker(servers))
        shop.start()
        try:
            wait_for_orders(found, 0, shop)
            half = counted(found)
            gate.open()
            wait_for_orders(found, half, shop)
        finally:
            shop.kill()
        # However fast the pipeline was: the last quarter is only fed now.
        gate.wait_until_held()
        gate.open()
        feeder.join(PATIENCE_S)
        assert not feeder.is_alive()
        run_to_the_end(shop, found, fed[0].events)
    return found


@pytest.fixture(scope="module")
def lines() -> pa.Table:
    """The file, with whole numbers: quantities, and prices in thousandths."""
    path = online_retail()
    assert path is not None
    options = pa_csv.ConvertOptions(column_types=dict.fromkeys(COLUMNS, pa.string()), strings_can_be_null=False)
    table = pa_csv.read_csv(path, convert_options=options)
    quantity = table["Quantity"].cast(pa.int64())
    price = pc.multiply(table["UnitPrice"].cast(pa.decimal128(14, 3)), pa.scalar(1000, pa.decimal128(4, 0))).cast(
        pa.int64()
    )
    return (
        table.append_column("quantity", quantity)
        .append_column("price", price)
        .append_column("amount", pc.multiply(quantity, price))
        .append_column("minute", pc.utf8_slice_codeunits(table["InvoiceDate"], 0, 16))
        .append_column("article", pc.utf8_trim(table["StockCode"], " "))
    )


@pytest.fixture(scope="module")
def clean(lines: pa.Table) -> pa.Table:
    return lines.filter(pc.greater(lines["price"], 0))


def sums(table: pa.Table, key: str | list[str], column: str) -> dict[tuple[str, ...], int]:
    keys = [key] if isinstance(key, str) else key
    grouped = table.group_by(keys).aggregate([(column, "sum")])
    return {tuple(row[k] for k in keys): row[f"{column}_sum"] for row in grouped.to_pylist()}


def test_every_line_is_either_clean_or_set_aside_once(results, lines, clean):
    assert lines.num_rows == LINES
    stored = read_table(results.folder / "checked_orders", ["partition", "offset", "reason"])
    assert stored is not None
    assert stored.num_rows == stored.group_by(["partition", "offset"]).aggregate([]).num_rows == LINES
    assert stored["reason"].null_count == clean.num_rows


def test_reasons(results, lines):
    found = dict(answers.set_aside(results.outcomes()))
    below, zero = pc.sum(pc.less(lines["price"], 0)).as_py(), pc.sum(pc.equal(lines["price"], 0)).as_py()
    assert found == {"the price is negative": below, "the price is zero": zero}


def test_revenue_per_minute_and_country(results, clean):
    found = {
        (f"{row['minute']:%Y-%m-%d %H:%M}", row["country"]): row["amount_thousandths"] for row in results.revenue()
    }
    assert found == sums(clean, ["minute", "Country"], "amount")


def test_revenue_per_country(results, clean):
    found = answers.revenue_per_country(results.revenue())
    assert {(each.country,): each.amount_thousandths for each in found} == sums(clean, "Country", "amount")


def test_best_sellers(results, clean):
    found = results.best_sellers()
    assert {(row["stock_code"],): row["quantity"] for row in found} == sums(clean, "article", "quantity")
    assert {(row["stock_code"],): row["amount_thousandths"] for row in found} == sums(clean, "article", "amount")


def test_stock(results, lines):
    goods = lines.filter(pc.match_substring_regex(lines["StockCode"], "^[0-9]"))
    moved = {code: quantity for (code,), quantity in sums(goods, "StockCode", "quantity").items()}
    found = results.stock()
    assert {row["stock_code"] for row in found} == set(moved)
    assert {row["stock_code"]: row["delivered"] - row["level"] for row in found} == moved


def test_payments(results, lines):
    """Every order has one payment over what its lines come to, and every refund what was taken back."""
    wanted = {f"pay-{order}": amount for (order,), amount in sums(lines, "InvoiceNo", "amount").items() if amount}
    found = {row["payment"]: row["amount_thousandths"] for row in results.payments()}
    assert found == wanted


def test_large_lines_and_those_taken_back(results, clean):
    large = clean.filter(pc.greater_equal(clean["amount"], 5_000_000))
    found = Counter(row["order"] for row in results.large_lines())
    assert found == Counter(large["InvoiceNo"].to_pylist())
    taken_back = {row["order"] for row in results.taken_back()}
    assert {"541431", "581483"} <= taken_back


def test_no_line_was_too_late_as_each_day_was_complete_before_the_next(results):
    assert results.too_late() == 0
