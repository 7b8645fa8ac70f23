"""The fixtures of Spark tests."""

from tests.spark.session import spark

__all__ = ["spark"]
