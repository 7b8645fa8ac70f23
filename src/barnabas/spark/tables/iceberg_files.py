"""Where the tasks of a batch put the files of an Iceberg table, and what a manifest says of them.

The columns of a file have the table's field ids. A manifest has each column's bounds, counts and sizes, by which readers skip files; the
task takes them from the file's footer, so the driver opens no file.
Source: the Iceberg table specification, "Column Projection" and "Manifests".
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any, cast
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile as ManifestFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionFieldValue, PartitionKey, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.typedef import Record

from barnabas.spark.tables.data_files import FileTarget, Values

# The specification has decimals of few digits as whole numbers.
_PARQUET = {"compression": "zstd", "store_decimal_as_integer": True}


@dataclass(frozen=True)
class IcebergFiles(FileTarget):
    """Where the tasks put their files; it is sent to them, so it has no catalogue and no history of the table."""

    schema: pa.Schema
    partition_by: tuple[str, ...]
    io: FileIO
    location: str
    properties: dict[str, str]
    columns: Schema
    spec: PartitionSpec
    parquet: Mapping[str, Any] = field(default_factory=lambda: _PARQUET)

    @classmethod
    def of(cls, table: Table) -> IcebergFiles:
        columns, spec = table.schema(), table.spec()
        partition_by = tuple(columns.find_column_name(each.source_id) or each.name for each in spec.fields)
        schema = schema_to_pyarrow(columns, include_field_ids=True)
        return cls(schema, partition_by, table.io, table.location(), dict(table.properties), columns, spec)

    def create(self) -> tuple[str, IO[bytes]]:
        place = load_location_provider(self.location, self.properties).new_data_location(f"part-{uuid4()}.parquet")
        return place, cast("IO[bytes]", self.io.new_output(place).create())

    def try_to_write(self) -> None:
        """Raise OSError if the store does not let the query write here; it may let it read all the same."""
        place, stream = self.create()
        stream.write(b"may a query write here?")
        stream.close()
        self.io.delete(place)

    def entry(self, path: str, size: int, values: Values, footer: pq.FileMetaData) -> bytes:
        fields = [PartitionFieldValue(*each) for each in zip(self.spec.fields, values, strict=True)]
        return pickle.dumps(self.describe(path, size, PartitionKey(fields, self.spec, self.columns).partition, footer))

    def describe(self, path: str, size: int, partition: Record, footer: pq.FileMetaData) -> ManifestFile:
        """Return what a manifest says of a file."""
        statistics = data_file_statistics_from_parquet_metadata(
            parquet_metadata=footer,
            stats_columns=compute_statistics_plan(self.columns, self.properties),
            parquet_column_mapping=parquet_path_to_id_mapping(self.columns),
        )
        return ManifestFile.from_args(
            content=DataFileContent.DATA,
            file_path=path,
            file_format=FileFormat.PARQUET,
            partition=partition,
            file_size_in_bytes=size,
            sort_order_id=None,
            spec_id=self.spec.spec_id,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )


def manifest_file(entry: bytes) -> ManifestFile:
    """Return what a manifest says of a file, of the bytes that a task sent."""
    return cast("ManifestFile", pickle.loads(entry))
