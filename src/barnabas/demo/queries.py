"""What each streaming query computes: a DataFrame from DataFrames.

The functions also work on batches; the tests use them so. Money is counted in thousandths, as whole numbers, so sums
are exact in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LATENESS = "1 day"
LARGE_LINE_THOUSANDTHS = 5_000_000
TAKEN_BACK_THOUSANDTHS = 1_000_000

_ORDER_SCHEMA = (
    "event string, line bigint, order string, stock_code string, description string, quantity string, at string, "
    "unit_price string, customer string, country string"
)
_PAYMENT_SCHEMA = "event string, payment string, attempt int, order string, amount_thousandths bigint"
_STOCK_SCHEMA = "event string, stock_code string, level bigint, delivered bigint"
_SUSPECT = ("order", "line", "at", "customer", "country", "description", "quantity", "amount_thousandths")


def parse_orders(rows: DataFrame) -> DataFrame:
    """Parse order lines; `reason` says why a line is invalid, and is null for a clean line."""
    from pyspark.sql import functions as F

    parsed = rows.select("topic", "partition", "offset", F.col("value").cast("string").alias("value")).withColumn(
        "r", F.from_json("value", _ORDER_SCHEMA)
    )
    typed = parsed.select(
        "topic",
        "partition",
        "offset",
        "value",
        "r.event",
        "r.line",
        "r.order",
        F.trim("r.stock_code").alias("stock_code"),
        F.trim("r.description").alias("description"),
        F.col("r.quantity").try_cast("int").alias("quantity"),
        F.col("r.at").try_cast("timestamp").alias("at"),
        (F.col("r.unit_price").try_cast("decimal(14,3)") * 1000).cast("bigint").alias("price_thousandths"),
        F.nullif(F.trim("r.customer"), F.lit("")).alias("customer"),
        F.trim("r.country").alias("country"),
    )
    amount = F.col("quantity").cast("bigint") * F.col("price_thousandths")
    return typed.withColumn("amount_thousandths", amount).withColumn("reason", _reason())


def _reason() -> Column:
    from pyspark.sql import functions as F

    def is_blank(column: str) -> Column:
        return F.col(column).isNull() | (F.col(column) == "")

    return (
        F.when(is_blank("order"), "it is not an order line")
        .when(is_blank("stock_code"), "the stock code is missing")
        .when(is_blank("country"), "the country is missing")
        .when(F.col("at").isNull(), "the date is not valid")
        .when(F.col("quantity").isNull(), "the quantity is not a whole number")
        .when(F.col("quantity") == 0, "the quantity is zero")
        .when(F.col("price_thousandths").isNull(), "the price is not a number")
        .when(F.col("price_thousandths") < 0, "the price is negative")
        .when(F.col("price_thousandths") == 0, "the price is zero")
    )


def revenue(clean: DataFrame) -> DataFrame:
    """Sum revenue per minute and country; a cancellation counts in the minute in which it happened."""
    from pyspark.sql import functions as F

    return (
        clean.withWatermark("at", LATENESS)
        .groupBy(F.window("at", "1 minute").alias("window"), "country")
        .agg(
            F.sum("amount_thousandths").alias("amount_thousandths"),
            F.sum("quantity").alias("quantity"),
            F.count("*").alias("lines"),
        )
        .select(F.col("window.start").alias("minute"), "country", "amount_thousandths", "quantity", "lines")
    )


def best_sellers(clean: DataFrame) -> DataFrame:
    """Sum each article's sales, less cancellations."""
    from pyspark.sql import functions as F

    return clean.groupBy("stock_code").agg(
        F.max("description").alias("description"),
        F.sum("quantity").alias("quantity"),
        F.sum("amount_thousandths").alias("amount_thousandths"),
    )


def large_lines(clean: DataFrame) -> DataFrame:
    """Return order lines with a large amount."""
    return clean.where(f"amount_thousandths >= {LARGE_LINE_THOUSANDTHS}").select(*_SUSPECT)


def taken_back(clean: DataFrame, cancelled: DataFrame) -> DataFrame:
    """Return lines that the same customer cancelled within the hour, with exactly the same quantity, and when.

    This joins a stream with itself: Spark keeps each side until the watermark shows that no later row can match.

    Args:
        clean: the clean lines.
        cancelled: the same lines, read a second time; only cancellations in it matter.
    """
    from pyspark.sql import functions as F

    ordered = clean.where(f"amount_thousandths >= {TAKEN_BACK_THOUSANDTHS}").withWatermark("at", LATENESS)
    taken = (
        cancelled.where(f"amount_thousandths <= -{TAKEN_BACK_THOUSANDTHS}")
        .select(
            F.col("customer").alias("c_customer"),
            F.col("stock_code").alias("c_stock_code"),
            F.col("quantity").alias("c_quantity"),
            F.col("at").alias("c_at"),
        )
        .withWatermark("c_at", LATENESS)
    )
    same = F.expr(
        "customer = c_customer and stock_code = c_stock_code and quantity = -c_quantity "
        "and c_at between at and at + interval 1 hour"
    )
    return ordered.join(taken, same).select(*_SUSPECT, F.col("c_at").alias("cancelled_at"))


def stock(rows: DataFrame) -> DataFrame:
    """Return the newest level of each article: that of the highest offset, as an article is always in one partition."""
    from pyspark.sql import functions as F

    parsed = rows.select("offset", F.from_json(F.col("value").cast("string"), _STOCK_SCHEMA).alias("r"))
    return (
        parsed.where("r.stock_code is not null")
        .groupBy(F.col("r.stock_code").alias("stock_code"))
        .agg(F.max_by("r", "offset").alias("newest"))
        .select("stock_code", "newest.level", "newest.delivered")
    )


def payments(rows: DataFrame) -> DataFrame:
    """Keep the latest event of each payment: the latest attempt, and its result.

    It is a maximum and not a count, so a repeated event changes nothing.
    """
    from pyspark.sql import functions as F

    parsed = rows.select(F.from_json(F.col("value").cast("string"), _PAYMENT_SCHEMA).alias("r")).select("r.*")
    stage = F.when(F.col("event") == "payment.initiated", 0).otherwise(1)
    return (
        parsed.where("payment is not null")
        .groupBy("payment")
        .agg(F.max(F.struct("attempt", stage.alias("stage"), "event", "order", "amount_thousandths")).alias("last"))
        .select("payment", "last.order", "last.event", "last.attempt", "last.amount_thousandths")
    )
