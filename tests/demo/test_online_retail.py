"""Half a million real order lines through a broker and Spark, killed half way, against sums taken directly from the
file.

The file is not part of the project: `BARNABAS_ONLINE_RETAIL` names it, or it lies in `shared/data/online-retail`
beside the project. Where it is absent these tests are skipped; `test_command` runs the whole way on made-up lines.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pytest

import barnabas
from barnabas.demo import answers
from barnabas.demo.feeder import Feed, FeedProgress, feed_lines
from barnabas.demo.generator import COLUMNS
from barnabas.demo.results import ResultTable, Row
from barnabas.demo.shop import create_topics
from tests.spark.session import SPARK

PROJECT = Path(__file__).parents[2]
LINES = 541_909
PATIENCE_S = 1500


def online_retail() -> Path | None:
    given = os.environ.get("BARNABAS_ONLINE_RETAIL")
    path = Path(given) if given else PROJECT.parent / "shared" / "data" / "online-retail" / "online-retail.csv.gz"
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


def start_driver(servers: str, folder: Path, *mode: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.demo.driver", servers, str(folder), *mode]
    with open(folder / "driver.log", "ab") as log:
        return subprocess.Popen(command, cwd=PROJECT, stdout=log, stderr=log, start_new_session=True)


def counted(folder: Path) -> int:
    """How many lines the query `lines` has finished with, as its result files say."""
    outcomes = ResultTable(folder / "results" / "outcomes", ("batch", "reason"))
    return sum(row["lines"] for row in outcomes.rows())


def wait_for_lines(folder: Path, more_than: int, driver: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while counted(folder) <= more_than:
        assert driver.poll() is None, (folder / "driver.log").read_text()[-3000:]
        assert time.monotonic() < deadline, "the pipeline does not get on"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a pipeline that was killed in the middle and ran to the end afterwards."""
    folder = tmp_path_factory.mktemp("pipeline")
    gate = Gate()
    with barnabas.Broker(data_dir=folder / "broker") as broker:
        servers = broker.bootstrap_servers
        create_topics(servers)
        feeder = threading.Thread(target=feed_lines, args=(servers, Feed(online_retail()), gate.report), daemon=True)
        feeder.start()
        gate.wait_until_held()
        driver = start_driver(servers, folder)
        try:
            wait_for_lines(folder, 0, driver)
            half = counted(folder)
            gate.open()
            wait_for_lines(folder, half, driver)
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
        # However fast the pipeline was: the last quarter is only fed now.
        gate.wait_until_held()
        gate.open()
        feeder.join(PATIENCE_S)
        assert not feeder.is_alive()
        again = start_driver(servers, folder, "now")
        assert again.wait(PATIENCE_S) == 0, (folder / "driver.log").read_text()[-3000:]
    return folder


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


def rows(results: Path, table: str, *key: str) -> list[Row]:
    return ResultTable(results / "results" / table, key).rows()


def test_every_line_is_either_clean_or_set_aside_once(results, lines, clean):
    assert lines.num_rows == LINES
    for folder, expected in (("lines", clean.num_rows), ("dead-letters", LINES - clean.num_rows)):
        stored = ds.dataset(results / folder, partitioning="hive").to_table(["partition", "offset"])
        assert stored.num_rows == expected
        assert stored.group_by(["partition", "offset"]).aggregate([]).num_rows == expected


def test_reasons(results, lines):
    found = dict(answers.set_aside(rows(results, "outcomes", "batch", "reason")))
    below, zero = pc.sum(pc.less(lines["price"], 0)).as_py(), pc.sum(pc.equal(lines["price"], 0)).as_py()
    assert found == {"the price is negative": below, "the price is zero": zero}


def test_revenue_per_minute_and_country(results, clean):
    found = {
        (f"{row['minute']:%Y-%m-%d %H:%M}", row["country"]): row["amount_thousandths"]
        for row in rows(results, "revenue", "minute", "country")
    }
    assert found == sums(clean, ["minute", "Country"], "amount")


def test_revenue_per_country(results, clean):
    found = answers.revenue_per_country(rows(results, "revenue", "minute", "country"))
    assert {(each.country,): each.amount_thousandths for each in found} == sums(clean, "Country", "amount")


def test_best_sellers(results, clean):
    found = rows(results, "best_sellers", "stock_code")
    assert {(row["stock_code"],): row["quantity"] for row in found} == sums(clean, "article", "quantity")
    assert {(row["stock_code"],): row["amount_thousandths"] for row in found} == sums(clean, "article", "amount")


def test_stock(results, lines):
    goods = lines.filter(pc.match_substring_regex(lines["StockCode"], "^[0-9]"))
    moved = {code: quantity for (code,), quantity in sums(goods, "StockCode", "quantity").items()}
    found = rows(results, "stock", "stock_code")
    assert {row["stock_code"] for row in found} == set(moved)
    assert {row["stock_code"]: row["delivered"] - row["level"] for row in found} == moved


def test_payments(results, lines):
    """Every order has one payment over what its lines come to, and every refund what was taken back."""
    wanted = {f"pay-{order}": amount for (order,), amount in sums(lines, "InvoiceNo", "amount").items() if amount}
    found = {row["payment"]: row["amount_thousandths"] for row in rows(results, "payments", "payment")}
    assert found == wanted


def test_large_lines_and_those_taken_back(results, clean):
    large = clean.filter(pc.greater_equal(clean["amount"], 5_000_000))
    found = Counter(row["order"] for row in rows(results, "large_lines", "order", "line"))
    assert found == Counter(large["InvoiceNo"].to_pylist())
    taken_back = {row["order"] for row in rows(results, "taken_back", "order", "line")}
    assert {"541431", "581483"} <= taken_back
