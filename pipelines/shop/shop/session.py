"""The Spark session of a project's folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from shop.project import ProjectError
from shop.streams import DATABASE


def open_session(folder: Path, master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start Spark with the settings of `conf/spark-defaults.conf`; the tables and their catalogue are in the folder.

    Args:
        folder: the project's folder; on a cluster, one that every worker can reach.
        master: where to run; None leaves it to `spark-submit`.
        settings: more settings, which count before those of the file.

    Raises:
        ProjectError: Spark was started by another, `spark-submit`, without those settings.
    """
    os.environ["SPARK_CONF_DIR"] = str(folder / "conf")
    # Workers run the interpreter that runs this, and find the package `shop` in the folder.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    builder = (
        SparkSession.builder.appName("shop")
        .config("spark.executorEnv.PYTHONPATH", str(folder))
        .config("spark.sql.warehouse.dir", str(folder / "spark-warehouse"))
        .config(
            "spark.hadoop.javax.jdo.option.ConnectionURL",
            f"jdbc:derby:;databaseName={folder / 'metastore_db'};create=true",
        )
    )
    if master is not None:
        builder = builder.master(master)
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    if spark.conf.get("spark.sql.catalogImplementation") != "hive":
        raise ProjectError(
            f"Spark has not read {folder}/conf (before spark-submit: export SPARK_CONF_DIR={folder}/conf)"
        )
    if not spark.catalog.databaseExists(DATABASE):
        spark.sql(f"CREATE DATABASE {DATABASE}")
    spark.sql(f"USE {DATABASE}")
    return spark
