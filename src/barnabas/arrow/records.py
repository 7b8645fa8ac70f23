"""The records of a range, as Arrow: what `barnabas.read` returns.

The range was fixed before, so each reading has the same records, in order of topic, partition and offset. Only records
that are removed meanwhile make a difference, and that is an error (`DataLoss`).

One reading has one connection and two fetches in memory, whatever the range's size: the rows that are decoded, and the
response that arrives meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from barnabas.arrow.text_columns import as_text, text_schema
from barnabas.spark.source.columnar import arrow_schema
from barnabas.spark.source.fetcher import RangeFetcher
from barnabas.spark.source.offset_reader import Leader
from barnabas.spark.source.options import SourceOptions
from barnabas.spark.source.ranges import OffsetRange


@dataclass(frozen=True, slots=True)
class LedRange:
    """A range, and its partition's leader when the range was fixed."""

    wanted: OffsetRange
    leader: Leader


class Records:
    """The records of topics in a fixed range, as an Arrow stream.

    Iterating yields `pyarrow.RecordBatch`es. Whatever takes an Arrow stream (`__arrow_c_stream__`) takes this object:
    `pyarrow.table`, `polars.DataFrame`, DuckDB's `FROM`. Each reading fetches the same records again.

    Attributes:
        schema: the columns, a `pyarrow.Schema`.
        ranges: which offsets of which partitions, those without records included.
    """

    def __init__(self, options: SourceOptions, ranges: Sequence[LedRange], texts: Sequence[str] = ()) -> None:
        self._options = options
        self._ranges = ranges
        self._texts = [name for name in texts if name in options.columns]
        self.schema: pa.Schema = text_schema(arrow_schema(options.columns), self._texts)
        self.ranges = [each.wanted for each in ranges]

    def __repr__(self) -> str:
        topics = ",".join(dict.fromkeys(each.topic for each in self.ranges))
        return f"<Records topics={topics} offsets={sum(each.size for each in self.ranges)}>"

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.batches()

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the records.

        Args:
            columns: of this object's columns; None for all. The others are not decoded.

        Raises:
            DataLoss: records of the range are gone.
            NotText: a key or value that is read as text is not UTF-8.
            QueryError: records did not arrive in time.
            KafkaError: the broker returned an error that is not retriable, or the records are damaged.
        """
        names = self.schema.names if columns is None else list(columns)
        texts = [name for name in self._texts if name in names]
        # The error about a value that is not text names its offset.
        decoded = [*names, "offset"] if texts and "offset" not in names else names
        options = replace(self._options, columns=tuple(decoded))
        for each in self._ranges:
            for rows in RangeFetcher(options, each.wanted, each.leader):
                yield as_text(rows, texts, each.wanted.topic, each.wanted.partition).select(names)

    def reader(self) -> pa.RecordBatchReader:
        """Return a `pyarrow.RecordBatchReader`, which reads once; errors are those of `batches`."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def table(self) -> pa.Table:
        """Return all records as one `pyarrow.Table`, in memory; errors are those of `batches`."""
        return self.reader().read_all()

    def only(self, topic: str) -> Records:
        """Return the records of one topic of several."""
        return Records(self._options, [each for each in self._ranges if each.wanted.topic == topic], self._texts)
