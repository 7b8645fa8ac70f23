"""A topic as a table, Delta or Iceberg: each record once; the table's upkeep; and the audit that compares it with the topic.

`batch_writer` appends a batch to a table of either format, and proves of a repeated batch that it is the same (`batch_proof`).
`data_files` is what its tasks do. `delta_table` and `iceberg_table` know how the formats name files and remember batches.

Each name is imported when it is first used: the audit needs no Spark, and a Delta table no pyiceberg.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.imported_when_used import imported_when_used

if TYPE_CHECKING:
    from barnabas.spark.tables.delta_table import Delta as Delta
    from barnabas.spark.tables.delta_table import delta_writer as delta_writer
    from barnabas.spark.tables.iceberg_table import Iceberg as Iceberg
    from barnabas.spark.tables.iceberg_table import iceberg_writer as iceberg_writer
    from barnabas.spark.tables.upkeep import compact as compact
    from barnabas.spark.tables.upkeep import vacuum as vacuum

__all__ = ["Delta", "Iceberg", "compact", "delta_writer", "iceberg_writer", "vacuum"]

__getattr__ = imported_when_used(
    __name__,
    delta_writer="barnabas.spark.tables.delta_table",
    iceberg_writer="barnabas.spark.tables.iceberg_table",
    Delta="barnabas.spark.tables.delta_table",
    Iceberg="barnabas.spark.tables.iceberg_table",
    compact="barnabas.spark.tables.upkeep",
    vacuum="barnabas.spark.tables.upkeep",
)
