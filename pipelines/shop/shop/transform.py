"""What each table of the shop is made of: a DataFrame from DataFrames.

Both forms of the pipeline use these functions: the declarative one (`transformations/`) and the continuous one (`run`).
They work on streams and on batches, so a test calls them with a few rows. Money is decimal, so every sum is exact.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from barnabas.client.config_providers import resolved
from barnabas.client.properties import read_properties

LATENESS = "1 day"
"""How long after the newest line an older one still counts in its window. The topic's partitions are read side by side;
the shop completes a day in all of them before it begins the next."""

_LOGIN = ("security.protocol", "ssl.", "sasl.")
"""How the names of settings begin that say how a client logs in."""

_LINE = (
    "event string, line bigint, order string, stock_code string, description string, quantity string, at string, "
    "unit_price string, customer string, country string"
)
_PAYMENT = "event string, payment string, attempt int, order string, at timestamp, amount_thousandths bigint"
_STOCK = "event string, stock_code string, at timestamp, level bigint, delivered bigint"


def connection(spark: SparkSession, servers: str) -> dict[str, str]:
    """Return the options by which source and sink connect.

    `spark.shop.command.config` names a client's properties file that says how to log in; without it they connect in plain text.
    """
    file = spark.conf.get("spark.shop.command.config", "")
    settings, _ = resolved(read_properties(file), os.environ) if file else ({}, ())
    login = {f"kafka.{name}": value for name, value in settings.items() if name.startswith(_LOGIN)}
    return {"kafka.bootstrap.servers": servers, **login}


def read_topic(
    spark: SparkSession, servers: str, topic: str, group: str, starting: Mapping[str, str] | None = None
) -> DataFrame:
    """Read a topic as a stream, from its beginning or from `starting`; the group's offsets show how far the stream is.

    If records are gone before they were read, the query fails; with `spark.shop.failOnDataLoss=false` it goes on.
    """
    return (
        spark.readStream.format("barnabas")
        .options(**connection(spark, servers))
        .option("kafka.group.id", group)
        .option("subscribe", topic)
        .option("failOnDataLoss", spark.conf.get("spark.shop.failOnDataLoss", "true"))
        .options(**(starting or {"startingOffsets": "earliest"}))
        .load()
    )


def checked_orders(records: DataFrame) -> DataFrame:
    """Parse the records of the topic `orders`; `reason` says why one is not a valid order line, and is null if it is."""
    text = F.col("value").cast("string")
    said = records.select(
        "topic", "partition", "offset", "timestamp", text.alias("text"), F.from_json(text, _LINE).alias("r")
    )
    amount = F.col("quantity") * F.col("unit_price")
    return (
        said.select(
            "topic",
            "partition",
            "offset",
            F.col("timestamp").alias("received_at"),
            "text",
            F.col("r.order").alias("order_id"),
            "r.line",
            F.trim("r.stock_code").alias("stock_code"),
            F.trim("r.description").alias("description"),
            F.col("r.quantity").try_cast("int").alias("quantity"),
            F.col("r.at").try_cast("timestamp").alias("at"),
            F.col("r.unit_price").try_cast("decimal(14,3)").alias("unit_price"),
            F.nullif(F.trim("r.customer"), F.lit("")).alias("customer"),
            F.trim("r.country").alias("country"),
        )
        .withColumn("amount", amount.cast("decimal(18,3)"))
        .withColumn("reason", _reason())
    )


def _reason() -> Column:
    def is_blank(column: str) -> Column:
        return F.col(column).isNull() | (F.col(column) == "")

    return (
        F.when(is_blank("order_id"), "it is not an order line")
        .when(is_blank("stock_code"), "the stock code is missing")
        .when(is_blank("country"), "the country is missing")
        .when(F.col("at").isNull(), "the date is not valid")
        .when(F.col("quantity").isNull(), "the quantity is not a whole number")
        .when(F.col("quantity") == 0, "the quantity is zero")
        .when(F.col("unit_price").isNull(), "the price is not a number")
        .when(F.col("unit_price") < 0, "the price is negative")
        .when(F.col("unit_price") == 0, "the price is zero")
    )


def lines(checked: DataFrame) -> DataFrame:
    """Return the valid order lines."""
    return checked.where("reason is null").drop("text", "reason")


def rejected(checked: DataFrame) -> DataFrame:
    """Return the records that are not valid order lines: the reason, the text and its place in the topic."""
    return checked.where("reason is not null").select("topic", "partition", "offset", "received_at", "reason", "text")


def stock_events(records: DataFrame) -> DataFrame:
    """Parse the records of the topic `inventory`."""
    said = records.select("partition", "offset", F.from_json(F.col("value").cast("string"), _STOCK).alias("r"))
    return said.where("r.stock_code is not null").select("partition", "offset", "r.*")


def payment_events(records: DataFrame) -> DataFrame:
    """Parse the records of the topic `payments`."""
    said = records.select("partition", "offset", F.from_json(F.col("value").cast("string"), _PAYMENT).alias("r"))
    amount = (F.col("r.amount_thousandths") / F.lit(1000)).cast("decimal(18,3)")
    return said.where("r.payment is not null").select(
        "partition",
        "offset",
        "r.event",
        "r.payment",
        "r.attempt",
        F.col("r.order").alias("order_id"),
        "r.at",
        amount.alias("amount"),
    )


def revenue_windows(lines: DataFrame) -> DataFrame:
    """Sum revenue per minute and country; a cancellation counts in the minute in which it happened."""
    return (
        lines.withWatermark("at", LATENESS)
        .groupBy(F.window("at", "1 minute").alias("window"), "country")
        .agg(F.sum("amount").cast("decimal(18,3)").alias("revenue"), F.count("*").alias("lines"))
        .select(F.col("window.start").alias("minute"), "country", "revenue", "lines")
    )


def records(rows: DataFrame, *key: str) -> DataFrame:
    """Return the rows as records for a topic: JSON, with the values of some columns as the key."""
    return rows.select(F.concat_ws(" ", *key).alias("key"), F.to_json(F.struct("*")).alias("value"))


def dead_letters(rejected: DataFrame) -> DataFrame:
    """Return rejected records as they came; headers say why, and where they are in which topic."""
    headers = [
        F.struct(F.lit(name).alias("key"), F.col(name).cast("string").cast("binary").alias("value"))
        for name in ("reason", "topic", "partition", "offset")
    ]
    return rejected.select(F.col("text").alias("value"), F.array(*headers).alias("headers"))
