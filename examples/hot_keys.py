"""Hot keys: measure the skew of a topic, then sum by key in two stages so that no task gets all records of a hot key.

    python examples/hot_keys.py localhost:9092 payments

A shuffle by key sends each key to one task. With one very frequent key that task works while the others wait. A salt, a
small number that is added to the key, spreads the key over several tasks. The first stage sums by key and salt, the
second one sums the few partial sums by key.

The salt comes from the record's offset. A random one would be another one when Spark repeats a task, and records would be
lost or doubled in the shuffle.

Salting spreads work behind the topic only. The partitions of the topic itself stay skewed, because a key has one
partition; `loads` shows how much. `spread_keys.py` spreads them.
"""

from __future__ import annotations

import sys

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

KEY = F.col("key").cast("string")
AMOUNT = F.col("value").cast("string").cast("bigint")


def salt(salts: int) -> Column:
    """Return the salt of a record: the same for each attempt to read it."""
    return (F.col("offset") % salts).cast("int")


def loads(rows: DataFrame) -> DataFrame:
    """Return the records of each partition of the topic."""
    return rows.groupBy("partition").agg(F.count("*").alias("records"))


def hottest(rows: DataFrame, count: int = 5) -> DataFrame:
    """Return the most frequent keys."""
    return (
        rows.groupBy(KEY.alias("key")).agg(F.count("*").alias("records")).orderBy(F.desc("records"), "key").limit(count)
    )


def task_loads(rows: DataFrame, tasks: int, salts: int = 1) -> list[int]:
    """Return how many records each task gets when Spark shuffles the rows by key and salt. The largest number comes first."""
    shuffled = rows.select(KEY.alias("key"), salt(salts).alias("salt")).repartition(tasks, "key", "salt")
    found = shuffled.groupBy(F.spark_partition_id().alias("task")).count().collect()
    return sorted((row["count"] for row in found), reverse=True)


def totals(rows: DataFrame, salts: int) -> DataFrame:
    """Return the sum of each key's amounts, in two stages."""
    partial = rows.groupBy(KEY.alias("key"), salt(salts).alias("salt")).agg(F.sum(AMOUNT).alias("amount"))
    return partial.groupBy("key").agg(F.sum("amount").alias("amount"))


def main(bootstrap: str, topic: str) -> None:
    """Print the skew of a topic, the loads of eight tasks without and with 16 salts, and the sums."""
    spark = SparkSession.builder.appName("hot keys").getOrCreate()
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
    rows = spark.read.format("barnabas").options(**options).load().cache()
    loads(rows).orderBy("partition").show()
    hottest(rows).show()
    print("records of each task, by key:         ", task_loads(rows, 8))
    print("records of each task, by key and salt:", task_loads(rows, 8, salts=16))
    totals(rows, salts=16).orderBy(F.desc("amount")).show()


if __name__ == "__main__":
    main(*sys.argv[1:])
