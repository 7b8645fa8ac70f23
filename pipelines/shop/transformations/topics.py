"""The topic that the pipeline sends: order lines that are not valid, as dead letters, each once."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

from shop import transform

spark = SparkSession.active()
SERVERS = spark.conf.get("spark.shop.bootstrap.servers", "localhost:9092")
TOPIC = {"topic": "orders.rejected", "createTopics": "orders.rejected:2"}
dp.create_sink("rejected_orders", "barnabas", {**transform.connection(spark, SERVERS), **TOPIC})


@dp.append_flow(target="rejected_orders")
def dead_letters() -> DataFrame:
    records = transform.read_topic(spark, SERVERS, "orders", "shop-dead-letters")
    return transform.dead_letters(transform.rejected(transform.checked_orders(records)))
