"""The former name of the room of tables."""

from __future__ import annotations

import barnabas.spark.lake
import barnabas.spark.tables


def test_the_former_name_is_the_same_function() -> None:
    assert barnabas.spark.lake.delta_writer is barnabas.spark.tables.delta_writer
