"""Orders to look at: large ones, and large ones that the same customer cancels within the hour.

The second kind needs a memory: per customer and article the large lines of the last hour, orders and cancellations,
because a cancellation may be read before its order. A timer forgets them when no line can match any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from shop.transform import LATENESS

LARGE, TAKEN_BACK = 5_000, 1_000
WITHIN_US = 3_600_000_000

# Moments are microseconds here: Spark gives a processor the moments of rows without a zone, and those of its state with one.
_LINE = (
    "order_id string, line bigint, at_us bigint, country string, description string, quantity int, amount decimal(18,3)"
)
_FOUND = f"customer string, cancelled_us bigint, {_LINE}"
_NAMES = [column.split()[0] for column in _LINE.split(", ")]
Line = Row(*_NAMES)


def alerts(lines: DataFrame) -> DataFrame:
    """Return one row per order line to look at, as soon as it is known."""
    columns = ("order_id", "line", "at", "customer", "country", "description", "quantity", "amount")
    large = lines.where(F.col("amount") >= LARGE).select(
        F.lit("large").alias("kind"), *columns, F.lit(None).cast("timestamp").alias("cancelled_at")
    )
    found = taken_back(lines).withColumn("at", F.timestamp_micros("at_us"))
    return large.unionByName(
        found.select(
            F.lit("taken back").alias("kind"), *columns, F.timestamp_micros("cancelled_us").alias("cancelled_at")
        )
    )


def taken_back(lines: DataFrame) -> DataFrame:
    """Return the large lines which the same customer cancelled within the hour, with exactly the same quantity."""
    return (
        lines.where((F.abs("amount") >= TAKEN_BACK) & F.col("customer").isNotNull())
        .withWatermark("at", LATENESS)
        .withColumn("at_us", F.unix_micros("at"))
        .groupBy("customer", "stock_code")
        .transformWithState(TakenBack(), outputStructType=_FOUND, outputMode="Append", timeMode="EventTime")
    )


class TakenBack(StatefulProcessor):
    """Finds the pairs of one customer and article."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._recent = handle.getListState("recent", _LINE)

    def handleInputRows(self, key: tuple[str, str], rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Compare each line with those remembered, then remember it."""
        recent = [Line(*row) for row in self._recent.get()]
        for row in rows:
            line = Line(*(row[name] for name in _NAMES))
            for other in recent:
                order, cancellation = (line, other) if line.quantity > 0 else (other, line)
                if _is_pair(order, cancellation):
                    yield Row(customer=key[0], cancelled_us=cancellation.at_us, **order.asDict())
            recent.append(line)
            self._handle.registerTimer((line.at_us + WITHIN_US) // 1000 + 1)
        self._recent.put([tuple(line) for line in recent])

    def handleExpiredTimer(self, key: tuple[str, str], timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """Forget the lines that no later line can match."""
        now_us = expiredTimerInfo.getExpiryTimeInMs() * 1000
        recent = [tuple(row) for row in self._recent.get() if Line(*row).at_us + WITHIN_US > now_us]
        if recent:
            self._recent.put(recent)
        else:
            self._recent.clear()
        return iter(())

    def close(self) -> None:
        """Do nothing: the state is Spark's."""


def _is_pair(order: Row, cancellation: Row) -> bool:
    is_same = order.quantity == -cancellation.quantity > 0
    return is_same and bool(order.at_us <= cancellation.at_us <= order.at_us + WITHIN_US)
