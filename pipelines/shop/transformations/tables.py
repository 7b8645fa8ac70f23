"""The streaming tables: each topic becomes a table, and each record one row of it, once."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from shop import transform

spark = SparkSession.active()
SERVERS = spark.conf.get("spark.shop.bootstrap.servers", "localhost:9092")


@dp.table(comment="every record of the topic orders, parsed, with the reason if it is not a valid order line")
def checked_orders() -> DataFrame:
    return transform.checked_orders(transform.read_topic(spark, SERVERS, "orders", "shop-checked-orders"))


@dp.table(comment="what happened to payments")
def payment_events() -> DataFrame:
    return transform.payment_events(transform.read_topic(spark, SERVERS, "payments", "shop-payment-events"))


@dp.table(comment="what happened to the stock")
def stock_events() -> DataFrame:
    return transform.stock_events(transform.read_topic(spark, SERVERS, "inventory", "shop-stock-events"))
