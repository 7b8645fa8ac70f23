"""The fixtures of Spark tests."""

from tests.spark.session import servers, spark, topics

__all__ = ["servers", "spark", "topics"]
