"""The session of a project's folder, where `spark-submit` has started Spark before the project's code."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from shop.project import ProjectError
from shop.session import open_session


@pytest.mark.parametrize("submitted_with", ["the exports", "nothing"])
def test_a_session_without_the_settings_of_the_folder_is_refused(tmp_path, monkeypatch, submitted_with):
    found = {"spark.sql.catalogImplementation": "hive" if submitted_with == "the exports" else "in-memory"}
    asked = []
    catalog = SimpleNamespace(databaseExists=lambda name: True)
    spark = SimpleNamespace(conf=found, catalog=catalog, sql=asked.append)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: spark)
    for name in ("SPARK_CONF_DIR", "PYSPARK_PYTHON", "PYTHONPATH"):
        monkeypatch.setenv(name, "")
    if submitted_with == "the exports":
        assert open_session(tmp_path) is spark
        assert asked == ["USE live"]
    else:
        with pytest.raises(ProjectError, match=f"export SPARK_CONF_DIR={tmp_path}/conf"):
            open_session(tmp_path)
        assert not asked
