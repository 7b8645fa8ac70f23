"""Leaderboard: the best players of each hour.

    python examples/leaderboard.py localhost:9092 scores

The key of a record is the player, its value the points of one game, its timestamp the end of the game. Players with equal
points share a rank. `points` also works on a stream with a watermark; `best` ranks a finished hour.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F


def points(scores: DataFrame) -> DataFrame:
    """Return the points of each player in each hour."""
    player = F.col("key").cast("string").alias("player")
    total = F.sum(F.col("value").cast("string").cast("bigint")).alias("points")
    hours = scores.groupBy(F.window("timestamp", "1 hour").alias("time"), player).agg(total)
    return hours.select(F.col("time.start").alias("hour"), "player", "points")


def best(found: DataFrame, count: int = 3) -> DataFrame:
    """Return the players with a rank up to `count` in each hour."""
    order = Window.partitionBy("hour").orderBy(F.desc("points"))
    return (
        found.withColumn("rank", F.rank().over(order)).where(F.col("rank") <= count).orderBy("hour", "rank", "player")
    )


def main(bootstrap: str, topic: str) -> None:
    """Print the best three of each hour."""
    spark = SparkSession.builder.appName("leaderboard").getOrCreate()
    scores = spark.read.format("barnabas").options(**{"kafka.bootstrap.servers": bootstrap, "subscribe": topic}).load()
    best(points(scores)).show()


if __name__ == "__main__":
    main(*sys.argv[1:])
