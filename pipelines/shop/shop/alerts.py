"""Orders to look at: large ones, and large ones that the same customer cancels within the hour.

The second kind needs a memory: per customer and article the large lines of the last hour, orders and cancellations,
because a cancellation may be read before its order. A timer forgets them when no line can match any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from shop.transform import LATENESS

LARGE, TAKEN_BACK = 5_000, 1_000
WITHIN = timedelta(hours=1)
_REMEMBERED = (
    "order_id string, line bigint, at timestamp, country string, description string, quantity int, amount decimal(18,3)"
)
_NAMES = [column.split()[0] for column in _REMEMBERED.split(", ")]
_Line = Row(*_NAMES)
ALERT = (
    "kind string, order_id string, line bigint, at timestamp, customer string, country string, description string, "
    "quantity int, amount decimal(18,3), cancelled_at timestamp"
)


def alerts(lines: DataFrame) -> DataFrame:
    """Return one row per order line to look at, as soon as it is known."""
    large = lines.where(F.col("amount") >= LARGE).select(
        F.lit("large").alias("kind"),
        *("order_id", "line", "at", "customer", "country", "description", "quantity", "amount"),
        F.lit(None).cast("timestamp").alias("cancelled_at"),
    )
    return large.unionByName(taken_back(lines))


def taken_back(lines: DataFrame) -> DataFrame:
    """Return the large lines which the same customer cancelled within the hour, with exactly the same quantity."""
    return (
        lines.where((F.abs("amount") >= TAKEN_BACK) & F.col("customer").isNotNull())
        .withWatermark("at", LATENESS)
        .groupBy("customer", "stock_code")
        .transformWithState(TakenBack(), outputStructType=ALERT, outputMode="Append", timeMode="EventTime")
    )


class TakenBack(StatefulProcessor):
    """Finds the pairs of one customer and article."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._recent = handle.getListState("recent", _REMEMBERED)

    def handleInputRows(self, key: tuple[str, str], rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Compare each line with those remembered, then remember it."""
        recent = [_Line(*row) for row in self._recent.get()]
        for row in rows:
            line = _Line(*(row[name] for name in _NAMES))
            for other in recent:
                order, cancellation = (line, other) if line.amount > 0 else (other, line)
                if _is_pair(order, cancellation):
                    yield _alert(key[0], order, cancellation)
            recent.append(line)
            self._handle.registerTimer(_milliseconds(line.at + WITHIN))
        self._recent.put([tuple(line) for line in recent])

    def handleExpiredTimer(self, key: tuple[str, str], timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """Forget the lines which no later line can match."""
        now_ms = expiredTimerInfo.getExpiryTimeInMs()
        recent = [row for row in self._recent.get() if _milliseconds(row[2] + WITHIN) > now_ms]
        if recent:
            self._recent.put([tuple(row) for row in recent])
        else:
            self._recent.clear()
        return iter(())

    def close(self) -> None:
        """Do nothing: the state is Spark's."""


def _is_pair(order: Row, cancellation: Row) -> bool:
    return (
        order.amount > 0
        and order.quantity == -cancellation.quantity
        and order.at <= cancellation.at <= order.at + WITHIN
    )


def _alert(customer: str, order: Row, cancellation: Row) -> Row:
    return Row(
        kind="taken back",
        order_id=order.order_id,
        line=order.line,
        at=order.at,
        customer=customer,
        country=order.country,
        description=order.description,
        quantity=order.quantity,
        amount=order.amount,
        cancelled_at=cancellation.at,
    )


def _milliseconds(moment: Any) -> int:
    return round(moment.timestamp() * 1000)
