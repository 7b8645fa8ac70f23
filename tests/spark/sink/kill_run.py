"""A Spark driver of its own: copies a topic to another one, in batches, and ends. `test_sink_kills` kills it.

python kill_run.py SERVERS SOURCE TARGET FOLDER FORMAT SEED
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path


def main(servers: str, source: str, target: str, folder: str, sink: str, seed: str) -> None:
    from pyspark.sql import SparkSession

    from barnabas.spark import start
    from tests.spark.connector import connector_jars

    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    )
    if sink == "kafka":
        builder = builder.config("spark.jars", ",".join(map(str, connector_jars())))
    spark = builder.getOrCreate()
    process = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    (Path(folder) / "pid").write_text(str(process))
    chance = random.Random(seed)
    rows = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", servers)
        .options(subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger=4000)
        # A batch that is repeated is split among other tasks.
        .option("minPartitions", chance.randint(3, 6))
        .load()
        .select("value")
    )
    writer = (
        rows.writeStream.format(sink)
        .option("kafka.bootstrap.servers", servers)
        .options(topic=target, checkpointLocation=f"{folder}/checkpoint")
        .trigger(availableNow=True)
    )
    start(writer).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    main(*sys.argv[1:])
