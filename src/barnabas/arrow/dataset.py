"""The records as a pyarrow dataset, so that a query decodes only the columns that it needs.

DuckDB passes the query's columns and filters to a dataset's `scanner`, and reads a plain Arrow stream whole. A column
that is not asked for is not decoded. The broker still sends it, because a batch travels as it was produced. The filter
is applied to each batch, because DuckDB does not repeat what it has passed on.

pyarrow has no dataset of one's own kind: `pyarrow.dataset.Dataset` is the shell of a C++ object. This class is a shell
without one, as that of `pylance` is. So the methods that would reach for the C++ object are closed; those that begin
with a scan work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.dataset as ds

from barnabas.arrow.records import Records


class Scan:
    """One reading of some columns: DuckDB and pyarrow take its `to_reader`."""

    def __init__(
        self,
        records: Records,
        columns: Sequence[str],
        only: ds.Expression | None,
        note: Callable[[Exception], None],
    ) -> None:
        self._note = note
        self._records = records
        self._columns = list(columns)
        self._only = only
        self.projected_schema: pa.Schema = pa.schema([records.schema.field(name) for name in self._columns])
        self.dataset_schema: pa.Schema = records.schema

    def __repr__(self) -> str:
        return f"<Scan columns={','.join(self._columns)} only={self._only}>"

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a reader."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows; errors are those of `Records.batches`."""
        try:
            yield from self._rows()
        except Exception as error:
            self._note(error)
            raise

    def _rows(self) -> Iterator[pa.RecordBatch]:
        if self._only is None:
            yield from self._records.batches(self._columns)
            return
        # An expression does not list its columns, but its text has them. One too many is only decoded in vain.
        text = str(self._only)
        also = [name for name in self._records.schema.names if name in text and name not in self._columns]
        for rows in self._records.batches([*self._columns, *also]):
            yield rows.filter(self._only).select(self._columns)

    def to_table(self) -> pa.Table:
        """Return the rows as a table, in memory."""
        return self.to_reader().read_all()

    def count_rows(self) -> int:
        """Return the number of rows."""
        return sum(rows.num_rows for rows in self.to_batches())

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows; no more are fetched."""
        found: list[pa.RecordBatch] = []
        for rows in self.to_batches():
            found.append(rows.slice(0, num_rows - sum(each.num_rows for each in found)))
            if sum(each.num_rows for each in found) >= num_rows:
                break
        return pa.Table.from_batches(found, self.projected_schema)


class RecordsDataset(ds.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """Records as DuckDB, polars and pyarrow scan a dataset.

    Args:
        records: the rows.
        note: called with an error that ends a scan; DuckDB passes on its text alone.
    """

    def __init__(self, records: Records, note: Callable[[Exception], None] = lambda error: None) -> None:
        self._records = records
        self._note = note

    @property
    def schema(self) -> pa.Schema:
        return self._records.schema

    def __repr__(self) -> str:
        return f"<RecordsDataset records={self._records!r}>"

    def scanner(
        self, columns: Sequence[str] | None = None, filter: ds.Expression | None = None, **_settings: Any
    ) -> Scan:
        """Return a new reading; settings about threads and files have no effect."""
        return Scan(self._records, self.schema.names if columns is None else columns, filter, self._note)

    def to_table(self, **scan: Any) -> pa.Table:
        """Return the rows as a table, in memory; the arguments are those of `scanner`."""
        return self.scanner(**scan).to_table()

    def to_batches(self, **scan: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows; the arguments are those of `scanner`."""
        return self.scanner(**scan).to_batches()

    def count_rows(self, **scan: Any) -> int:
        """Return the number of rows; the arguments are those of `scanner`."""
        return self.scanner(columns=["offset"], **scan).count_rows()

    def head(self, num_rows: int, **scan: Any) -> pa.Table:
        """Return the first rows; the other arguments are those of `scanner`."""
        return self.scanner(**scan).head(num_rows)


def _closed(name: str) -> Any:
    def method(self: RecordsDataset, *_arguments: Any, **_named: Any) -> NoReturn:
        raise NotImplementedError(f"a topic has no {name}: use scanner, to_table, to_batches, head or count_rows")

    return method


# Each of these reads the C++ object that is not there, and would end the process.
for _name in ("get_fragments", "replace_schema", "filter", "sort_by", "join", "join_asof", "take", "_get_fragments"):
    setattr(RecordsDataset, _name, _closed(_name))
RecordsDataset.partition_expression = property(_closed("partition_expression"))
