"""Event sourcing: the balance of each account, rebuilt from the first event on.

    python examples/event_sourcing.py localhost:9092 transfers
    python examples/event_sourcing.py localhost:9092 transfers cut:end-of-year

The topic holds what happened: the key is the account, the value an amount in cents, negative for a withdrawal. A
withdrawal that the balance does not cover is rejected, so the order of events decides. All events of an account have one
key, so they are in one partition, and their offsets are their order.

Nothing else is stored. The balance at an earlier moment is the same computation up to an earlier end: a cut
(`barnabas cut create`), a moment (`2026-01-01T00:00`), or offsets. The topic must keep its events for ever
(`retention.ms=-1`); a first offset above 0 is an error here, because balances without their beginning are wrong.
"""

from __future__ import annotations

import sys

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from barnabas.client.admin import EARLIEST, Admin, TopicPartition, result


def applied(balance: Column, event: Column) -> Column:
    """Return the balance after an event."""
    after = balance + event["amount"]
    return F.when(after >= 0, after).otherwise(balance)


def balances(events: DataFrame) -> DataFrame:
    """Return the balance of each account, in cents, and the number of its events."""
    event = F.struct("offset", F.col("value").cast("string").cast("bigint").alias("amount"))
    history = events.groupBy(F.col("key").cast("string").alias("account")).agg(
        F.sort_array(F.collect_list(event)).alias("history")
    )
    balance = F.aggregate("history", F.lit(0).cast("bigint"), applied)
    return history.select("account", balance.alias("balance"), F.size("history").alias("events"))


def events(spark: SparkSession, bootstrap: str, topic: str, until: str = "latest") -> DataFrame:
    """Return the events of a topic from its first one until a position.

    Raises:
        ValueError: the topic no longer has its first events.
    """
    with Admin(bootstrap) as admin:
        partitions = result(admin.describe_topics([topic])[topic]).partitions
        starts = admin.list_offsets({TopicPartition(topic, each.partition): EARLIEST for each in partitions})
    for at, start in starts.items():
        if result(start).offset > 0:
            raise ValueError(f"{at} begins at offset {result(start).offset}: its first events were deleted")
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "kafka.isolation.level": "read_committed"}
    return spark.read.format("barnabas").options(**options, endingOffsets=until).load()


def main(bootstrap: str, topic: str, until: str = "latest") -> None:
    """Print the balances."""
    spark = SparkSession.builder.appName("event sourcing").getOrCreate()
    balances(events(spark, bootstrap, topic, until)).orderBy("account").show()


if __name__ == "__main__":
    main(*sys.argv[1:])
