"""Clickstream: visits from single clicks, and how far each visitor came.

    python examples/clickstream.py localhost:9092 clicks

The key of a record is the visitor, its value the page (`/`, `/product/17`, `/cart`, `/paid`), its timestamp the moment of
the click. A visit ends after half an hour without a click. `visits` works on a stream as well: give it a watermark on
`timestamp`, and write it in append mode.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

STEPS = {"product": "/product/%", "cart": "/cart", "paid": "/paid"}


def visits(clicks: DataFrame, gap: str = "30 minutes") -> DataFrame:
    """Return one row for each visit: visitor, first moment, clicks, and whether each step was reached."""
    page = F.col("value").cast("string")
    visitor = F.col("key").cast("string").alias("visitor")
    reached = [F.coalesce(F.bool_or(page.like(pattern)), F.lit(False)).alias(step) for step, pattern in STEPS.items()]
    found = clicks.groupBy(visitor, F.session_window("timestamp", gap).alias("time"))
    counted = found.agg(F.count("*").alias("clicks"), *reached)
    return counted.select("visitor", F.col("time.start").alias("began"), "clicks", *STEPS)


def funnel(found: DataFrame) -> DataFrame:
    """Return how many visits there were, and how many reached each step and those before it."""
    so_far = F.lit(True)
    counts = [F.count("*").alias("visits")]
    for step in STEPS:
        so_far = so_far & F.col(step)
        counts.append(F.count_if(so_far).alias(step))
    return found.agg(*counts)


def main(bootstrap: str, topic: str) -> None:
    """Print the longest visits and the funnel."""
    spark = SparkSession.builder.appName("clickstream").getOrCreate()
    clicks = spark.read.format("barnabas").options(**{"kafka.bootstrap.servers": bootstrap, "subscribe": topic}).load()
    found = visits(clicks).cache()
    found.orderBy(F.desc("clicks")).show()
    funnel(found).show()


if __name__ == "__main__":
    main(*sys.argv[1:])
