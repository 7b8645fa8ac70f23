from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.salted_keys import SaltedKeys
from tests.spark.session import SPARK, spark

pytestmark = SPARK
__all__ = ["spark"]

KEYS = SaltedKeys({"celebrity": 3, "star": 2})


def test_columns_are_salted_as_a_producer_salts_and_the_reader_gets_them_back(spark: Any) -> None:
    from pyspark.sql import functions as F

    from barnabas.spark.salted_keys import original, salted

    written = ["celebrity"] * 200 + ["star"] * 200 + ["somebody", "somebody-1", None]
    rows = spark.createDataFrame(list(enumerate(written)), "id int, key string")
    made = rows.withColumn("salted", salted(KEYS, F.col("key"), F.col("id")))
    found = made.withColumn("original", original(KEYS, F.col("salted"))).orderBy("id").collect()
    assert [row.original and row.original.decode() for row in found] == written
    for key in ("celebrity", "star"):
        assert {bytes(row.salted) for row in found if row.key == key} == set(KEYS.forms[key.encode()])
    again = [row.salted for row in made.repartition(3).orderBy("id").collect()]
    assert again == [row.salted for row in found]


def test_a_key_that_looks_like_a_salted_one_fails_the_query(spark: Any) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    from barnabas.spark.salted_keys import salted

    rows = spark.createDataFrame([(1, "star-1")], "id int, key string")
    with pytest.raises(PySparkException, match="the column has keys that the hot key 'star' becomes: rename one"):
        rows.select(salted(KEYS, F.col("key"), F.col("id"))).collect()
