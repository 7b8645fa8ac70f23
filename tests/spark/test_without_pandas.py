"""Source, sink and `decode` in an environment without pandas and matplotlib, which the extra `spark` does not bring.

A driver and workers of their own, in which neither can be imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import barnabas
from tests.hidden_packages import hide
from tests.spark.session import SHORT_LIVED, SPARK_PROGRAM

pytestmark = [*SPARK_PROGRAM, pytest.mark.conform]

_PROGRAM = """
import sys
from importlib.util import find_spec

from pyspark.sql import SparkSession
from barnabas.spark import decode, start

servers, folder = sys.argv[1:]
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config(
    "spark.log.level", "ERROR"
).getOrCreate()
cluster = {"kafka.bootstrap.servers": servers}
spark.range(20).selectExpr("to_json(struct(id)) as value").write.format("barnabas").options(
    **cluster, topic="one", queryId="q", batchId=0
).mode("append").save()
rows = spark.readStream.format("barnabas").options(**cluster, subscribe="one", startingOffsets="earliest").load()
writer = rows.select("value").writeStream.format("barnabas").options(**cluster, topic="two", checkpointLocation=folder)
start(writer.trigger(availableNow=True)).awaitTermination()
found = spark.read.format("barnabas").options(**cluster, subscribe="two").load()
ids = decode(found, schema="id BIGINT").selectExpr("decoded.id").toArrow()
print(sorted(ids["id"].to_pylist()) == list(range(20)))
print([name for name in ("pandas", "matplotlib") if find_spec(name) is not None])
"""


def test_a_pipeline_without_pandas(tmp_path: Path) -> None:
    hide(tmp_path, "pandas", "matplotlib")
    variables = {"PYTHONPATH": str(tmp_path), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with barnabas.Broker() as broker:
        for topic in ("one", "two"):
            broker.create_topic(topic)
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, broker.bootstrap_servers, str(tmp_path / "checkpoint")],
            env=os.environ | SHORT_LIVED | variables, capture_output=True, text=True, timeout=1000, check=False,
        )  # fmt: skip
    assert done.stdout.splitlines() == ["True", "[]"], done.stdout + done.stderr
