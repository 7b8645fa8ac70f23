"""Checked orders: values decoded by a schema registry, encoded by another schema of it, and the bad ones set aside.

    python examples/checked_orders.py localhost:9092 orders invoices http://localhost:8081

The subject `orders-value` has the Avro schema of the orders (id, quantity, price), `invoices-value` that of the
invoices (id, total). Instead of the registry's address the last argument may be a folder, which
`barnabas schemas pull` has filled: then the query starts without a registry.

A value that is not an order, and an invoice that does not fit its schema, go to `invoices.dlq` with the reason in a
header. Each order is in one of the two topics.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from barnabas.spark import decode, encode


def invoices(orders: DataFrame, schemas: str, subject: str, topic: str) -> DataFrame:
    """Return the records to write: invoices for a topic, and orders without one for `TOPIC.dlq`."""
    order = decode(orders, format="avro", framing="confluent", schemas=schemas, subject=subject, error="unread")
    invoice = order.withColumn("id", F.col("decoded.id")).withColumn(
        "total", F.expr("decoded.quantity * decoded.price")
    )
    written = encode(invoice, ["id", "total"], "avro", schemas=schemas, topic=topic)
    reason = F.coalesce("unread", "error")
    header = F.struct(F.lit("reason").alias("key"), reason.cast("binary").alias("value"))
    return written.select(
        F.when(reason.isNull(), topic).otherwise(f"{topic}.dlq").alias("topic"),
        "key",
        F.when(reason.isNull(), F.col("encoded")).otherwise(F.col("value")).alias("value"),
        F.when(reason.isNull(), F.array().cast("array<struct<key: string, value: binary>>"))
        .otherwise(F.array(header))
        .alias("headers"),
    )


def main(bootstrap: str, source: str, sink: str, schemas: str) -> None:
    """Write the invoices of the orders that the topic has now."""
    spark = SparkSession.builder.appName("checked-orders").getOrCreate()
    servers = {"kafka.bootstrap.servers": bootstrap}
    orders = spark.read.format("barnabas").options(**servers, subscribe=source).load()
    found = invoices(orders, schemas, f"{source}-value", sink)
    found.write.format("barnabas").options(**servers).mode("append").save()


if __name__ == "__main__":
    main(*sys.argv[1:])
