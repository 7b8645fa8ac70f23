"""`format("barnabas")`: the name under which Spark finds the source.

Spark imports all installed top-level modules called `pyspark_…`, whatever a query reads, and takes the class
`DefaultSource` from each. Therefore this module imports only Spark's base class. A query imports the rest when it needs
it, and reports a missing package in one sentence.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from barnabas.spark.plain_errors import plain_errors
from barnabas.words.requirements import needed_by

if TYPE_CHECKING:
    from types import FrameType

    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """Topics of barnabas or Apache Kafka as a Spark source and sink, with the columns and options of Spark's own.

    A batch, from two hours ago to the end:

        orders = (
            spark.read.format("barnabas")
            .option("kafka.bootstrap.servers", "localhost:9092")
            .option("subscribe", "orders")
            .option("startingTimestamp", "-2h")
            .load()
        )
        orders.selectExpr("cast(key as string)", "cast(value as string)").show()

    A stream that resumes where it stopped, and shows its progress as the offsets of a consumer group:

        query = (
            spark.readStream.format("barnabas")
            .option("kafka.bootstrap.servers", "localhost:9092")
            .option("subscribe", "orders")
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", 100_000)
            .option("kafka.group.id", "orders-to-table")
            .load()
            .writeStream.option("checkpointLocation", "checkpoints/orders")
            .toTable("orders")
        )

    A stream into a topic, each row exactly once for consumers that read committed records:

        (
            orders.selectExpr("key", "value")
            .writeStream.format("barnabas")
            .option("kafka.bootstrap.servers", "localhost:9092")
            .option("topic", "orders.clean")
            .option("checkpointLocation", "checkpoints/clean")
            .start()
        )

    Every option is described in `docs/spark.md` and `docs/spark-sink.md`.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(...)`."""
        return "barnabas"

    def schema(self) -> str:
        """Return the columns: those of the option `columns`, else all, with `headers` if `includeHeaders` is true."""
        from barnabas.spark.source.options import schema_of

        with plain_errors():
            return schema_of(dict(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of `spark.read`."""
        _check_installation()
        from barnabas.spark.source.batch import BatchReader, FilteringBatchReader
        from barnabas.spark.source.options import parse_batch_options

        with plain_errors():
            self._check_schema(schema)
            kind = FilteringBatchReader if _offers_filters(sys._getframe(1)) else BatchReader
            return kind(parse_batch_options(dict(self.options), _now_ms()))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of `spark.readStream`."""
        _check_installation()
        from barnabas.spark.source.options import parse_stream_options
        from barnabas.spark.source.stream import StreamReader

        # Not plain: Spark stops the reader also if there is none, and shows only that error without the traceback of ours.
        self._check_schema(schema)
        return StreamReader(parse_stream_options(dict(self.options), _now_ms()))

    def _check_schema(self, schema: StructType) -> None:
        """Raise ValueError for columns of the user's that are not the source's."""
        given = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema.fields)
        ours = self.schema()
        if given.replace(" ", "") != ours.replace(" ", ""):
            raise ValueError(
                f'format("barnabas") has fixed columns, which .schema(...) cannot change: {ours}. '
                "Leave .schema(...) out, choose columns by the option columns, and cast or parse them."
            )

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of `df.write`."""
        _check_installation()
        from barnabas.spark.sink.writers import batch_sink

        with plain_errors():
            return batch_sink(dict(self.options), _columns(schema), overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer of `df.writeStream`. In complete mode every result is appended, as in Spark's own sink."""
        _check_installation()
        from barnabas.spark.sink.writers import stream_sink

        with plain_errors():
            return stream_sink(dict(self.options), _columns(schema))


def _offers_filters(caller: FrameType) -> bool:
    """Return whether Spark offers filters to the reader that it asks for.

    Spark rejects a reader that takes filters while `spark.sql.python.filterPushdown.enabled` is false, which is the
    default, and tells the source nothing of this setting. But it asks from another module.
    """
    return str(caller.f_globals.get("__name__")).endswith(".data_source_pushdown_filters")


def _columns(schema: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema}


def _check_installation() -> None:
    import pyspark

    if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) < (4, 2):
        raise RuntimeError(
            f'format("barnabas") needs PySpark 4.2 or newer, not {pyspark.__version__}: '
            f'{sys.executable} -m pip install --upgrade "pyspark>=4.2"'
        )
    with needed_by('format("barnabas")', "spark"):
        import numpy  # noqa: F401
        import pyarrow  # noqa: F401


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
