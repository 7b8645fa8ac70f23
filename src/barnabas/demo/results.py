"""The rows that the pipeline has written so far, read from its tables: the live display needs no session of its own.

Amounts are whole numbers of thousandths. A file never changes once a batch is finished, so each is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from barnabas.demo.answers import Row
from barnabas.demo.tables import committed_files

_THOUSAND = pa.scalar(1000, pa.decimal128(4, 0))
_COLUMNS = {
    "checked_orders": ("order_id", "stock_code", "description", "quantity", "at", "country", "amount", "reason"),
    "alerts": (
        "kind",
        "order_id",
        "line",
        "at",
        "customer",
        "country",
        "description",
        "quantity",
        "amount",
        "cancelled_at",
    ),
    "stock_events": ("stock_code", "offset", "level", "delivered"),
    "payment_events": ("payment", "attempt", "event", "order_id", "amount"),
    "revenue_windows": ("minute", "country", "revenue"),
}


class Results:
    """The tables of one pipeline.

    Args:
        folder: the folder of the tables; they need not be there yet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[Path, pa.Table] = {}

    def __repr__(self) -> str:
        return f"<Results folder={self.folder} files={len(self._read)}>"

    def revenue(self) -> list[Row]:
        """Return the revenue of each minute and country."""
        clean = self._clean()
        if clean is None:
            return []
        clean = clean.append_column("minute", pc.floor_temporal(clean["at"], unit="minute"))
        sums = clean.group_by(["minute", "country"]).aggregate([("amount_thousandths", "sum"), ([], "count_all")])
        return _rows(sums, {"amount_thousandths_sum": "amount_thousandths", "count_all": "lines"})

    def best_sellers(self) -> list[Row]:
        """Return each article's sales, less cancellations."""
        clean = self._clean()
        if clean is None:
            return []
        sums = clean.group_by("stock_code").aggregate(
            [("description", "max"), ("quantity", "sum"), ("amount_thousandths", "sum")]
        )
        names = {"description_max": "description", "quantity_sum": "quantity"}
        return _rows(sums, names | {"amount_thousandths_sum": "amount_thousandths"})

    def outcomes(self) -> list[Row]:
        """Return how many lines are clean (reason None), and how many were rejected for each reason."""
        checked = self._table("checked_orders")
        if checked is None:
            return []
        return _rows(checked.group_by("reason").aggregate([([], "count_all")]), {"count_all": "lines"})

    def large_lines(self) -> list[Row]:
        """Return the order lines with a large amount."""
        return self._alerts("large")

    def taken_back(self) -> list[Row]:
        """Return the large lines that were cancelled within the hour."""
        return self._alerts("taken back")

    def stock(self) -> list[Row]:
        """Return the newest level of each article: that of the highest offset, as an article is in one partition."""
        events = self._table("stock_events")
        return [] if events is None else _newest(events, ["offset"], "stock_code", ("level", "delivered"))

    def payments(self) -> list[Row]:
        """Return what the latest attempt of each payment came to."""
        events = self._table("payment_events")
        if events is None:
            return []
        events = events.append_column("result", pc.not_equal(events["event"], "payment.initiated").cast(pa.int8()))
        return _newest(events, ["attempt", "result"], "payment", ("event", "amount_thousandths"))

    def records(self) -> int:
        """Return how many records of the topics are in the tables."""
        found = (self._table(name) for name in ("checked_orders", "stock_events", "payment_events"))
        return sum(table.num_rows for table in found if table is not None)

    def too_late(self) -> int:
        """Return the amount of the lines that came when the window of their minute was closed."""
        windows = self._table("revenue_windows")
        if windows is None or not windows.num_rows:
            return 0
        closed = pc.max(windows["minute"]).as_py()
        in_windows: int = sum(row["amount_thousandths"] for row in windows.select(["amount_thousandths"]).to_pylist())
        in_tables: int = sum(row["amount_thousandths"] for row in self.revenue() if row["minute"] <= closed)
        return in_tables - in_windows

    def _clean(self) -> pa.Table | None:
        checked = self._table("checked_orders")
        return None if checked is None else checked.filter(pc.is_null(checked["reason"]))

    def _alerts(self, kind: str) -> list[Row]:
        alerts = self._table("alerts")
        if alerts is None:
            return []
        return _rows(alerts.filter(pc.equal(alerts["kind"], kind)), {"order_id": "order"})

    def _table(self, name: str) -> pa.Table | None:
        files = committed_files(self.folder / name)
        for file in files:
            if file not in self._read:
                self._read[file] = _prepared(pq.read_table(file, columns=list(_COLUMNS[name]), partitioning=None))
        return pa.concat_tables([self._read[file] for file in files]) if files else None


def _prepared(table: pa.Table) -> pa.Table:
    """Return a table with moments to the microsecond and amounts in thousandths."""
    for name in ("amount", "revenue"):
        if name in table.column_names:
            thousandths = pc.multiply(table[name], _THOUSAND).cast(pa.int64())
            table = table.drop_columns(name).append_column("amount_thousandths", thousandths)
    for index, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(index, column.name, table[column.name].cast(pa.timestamp("us")))
    return table


def _newest(events: pa.Table, order: Sequence[str], key: str, columns: Sequence[str]) -> list[Row]:
    ordered = events.sort_by([(name, "ascending") for name in order])
    last = ordered.group_by(key, use_threads=False).aggregate([(name, "last") for name in columns])
    return _rows(last, {f"{name}_last": name for name in columns})


def _rows(table: pa.Table, names: dict[str, str]) -> list[Row]:
    rows: list[Row] = table.rename_columns([names.get(name, name) for name in table.column_names]).to_pylist()
    return rows
