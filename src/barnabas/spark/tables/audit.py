"""The audit of a table that was written from a topic: has it every committed record once, and nothing else?

The table must keep the columns `topic`, `partition` and `offset`. For each partition the audit reads the log once with `read_committed`
and compares two sets of offsets:

    missing       committed in the log, and not in the table although the table has a later record
    repeated      in the table more than once
    uncommitted   in the table, and in the log only as records of an aborted or open transaction
    unknown       in the table, and not in the log at all
    behind        committed after the last record of the table: not an error, because a query that runs is always a little behind

Offsets before the beginning of the log cannot be compared, because retention deleted the records; they are only checked for repetitions.
A compacted topic cannot be audited: the removed records are unknown.

Of a part of the table (`audited_part`) the same is asked: which of the log's records of the part the table does not have in any row, and
which rows of the part are repeated, uncommitted or unknown. The whole log of the part's partitions is read all the same.

Only the offsets of the table are read, and the part's columns; 9 bytes of memory are needed for each row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import unquote, urlparse

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.dataset as ds

from barnabas.spark.security_options import NO_SECURITY, SecurityOptions
from barnabas.spark.source.fetcher import RangeFetcher
from barnabas.spark.source.offset_reader import Leader, OffsetReader
from barnabas.spark.source.options import IsolationLevel, SourceOptions, parse_batch_options
from barnabas.spark.source.ranges import OffsetRange
from barnabas.spark.tables.audited_part import LOG_COLUMNS, Mask, Part
from barnabas.spark.tables.audited_part import parse_part as parse_part
from barnabas.spark.tables.iceberg_catalog import open_catalog
from barnabas.words.nearest import did_you_mean
from barnabas.words.printable import printable

if TYPE_CHECKING:
    from pyiceberg.table import Table

Offsets = npt.NDArray[np.int64]
Rows: TypeAlias = "ds.Dataset | IcebergRows"

_COLUMNS = ("topic", "partition", "offset")
_NONE: Offsets = np.empty(0, np.int64)
_EVERYTHING = Part()
_SOMEONE_ELSE = "something else than a query of the topic wrote to it, so it cannot be audited"


class Found(NamedTuple):
    """Offsets of a log or a table, and which of them belong to the part."""

    offsets: Offsets
    in_part: Mask

    @property
    def part(self) -> Offsets:
        return self.offsets[self.in_part]


_NOTHING = Found(_NONE, np.empty(0, np.bool_))


@dataclass(frozen=True)
class PartitionAudit:
    """The findings of one partition; the arrays are sorted offsets, each once.

    Attributes:
        committed: how many records of the log were compared.
        rows: how many rows the table has.
        behind: how many committed records come after the table's last one.
    """

    partition: int
    committed: int
    rows: int
    behind: int = 0
    missing: Offsets = field(default_factory=lambda: _NONE)
    repeated: Offsets = field(default_factory=lambda: _NONE)
    uncommitted: Offsets = field(default_factory=lambda: _NONE)
    unknown: Offsets = field(default_factory=lambda: _NONE)

    @property
    def wrong(self) -> dict[str, Offsets]:
        """The wrong offsets, by the word for the fault."""
        found = {name: getattr(self, name) for name in ("missing", "repeated", "uncommitted", "unknown")}
        return {name: offsets for name, offsets in found.items() if offsets.size}


def compare(
    partition: int,
    committed: Offsets,
    table: Offsets,
    log_start: int,
    *,
    from_first: bool = False,
    to_end: bool = False,
) -> PartitionAudit:
    """Compare the committed offsets of a log with those of a table; other offsets count as unknown.

    Args:
        committed: sorted.
        table: in any order, with repetitions.
        log_start: the table may have offsets before it.
        from_first: committed offsets before the table's first one are not missing.
        to_end: committed offsets after the table's last one are missing.
    """
    unique, counts = np.unique(table, return_counts=True)
    in_log = unique[unique >= log_start]
    if from_first and unique.size:
        committed = committed[committed >= unique[0]]
    last = int(unique[-1]) if unique.size else -1
    absent = np.setdiff1d(committed, in_log, assume_unique=True)
    return PartitionAudit(
        partition,
        int(committed.size),
        int(table.size),
        behind=0 if to_end else int((absent > last).sum()),
        missing=absent if to_end else absent[absent <= last],
        repeated=unique[counts > 1],
        unknown=np.setdiff1d(in_log, committed, assume_unique=True),
    )


def narrowed(
    found: PartitionAudit, log: Offsets, table: Found, *, from_first: bool = False, to_end: bool = False
) -> PartitionAudit:
    """Return what the findings say of a part.

    Args:
        log: the committed offsets of the part, sorted; none if the log does not know the part.
        table: all offsets of the table.
    """
    rows, every = table.part, table.offsets
    if from_first and every.size:
        log = log[log >= every.min()]
    behind = 0 if to_end else int((log > (every.max() if every.size else -1)).sum())
    return PartitionAudit(
        found.partition,
        int(log.size),
        int(rows.size),
        behind,
        missing=np.intersect1d(found.missing, log),
        repeated=np.intersect1d(found.repeated, rows),
        uncommitted=np.intersect1d(found.uncommitted, rows),
        unknown=np.intersect1d(found.unknown, rows),
    )


def audit(
    bootstrap: str,
    topic: str,
    table: Rows,
    *,
    from_first: bool = False,
    to_end: bool = False,
    part: Part = _EVERYTHING,
    security: SecurityOptions = NO_SECURITY,
) -> Iterator[PartitionAudit]:
    """Yield the findings of each partition of a topic; the arguments are those of `compare`.

    Args:
        part: what is audited; partitions without records of it have no findings.
        security: TLS and login.

    Raises:
        KafkaError: the topic does not exist, or cannot be read.
        ValueError: the table does not keep the columns, or has a partition that the topic does not have.
    """
    options = parse_batch_options(
        {
            "kafka.bootstrap.servers": bootstrap,
            "subscribe": topic,
            "kafka.isolation.level": "read_committed",
            "columns": ",".join(LOG_COLUMNS),
        },
        0,
    )
    options = replace(options, security=security)
    reader = OffsetReader(options)
    try:
        partitions = reader.partitions()
        begin, end = reader.earliest(partitions), reader.latest(partitions)
        high = reader.high_watermarks(partitions)
        leaders = reader.leaders(partitions)
    finally:
        reader.close()
    rows = table_offsets(table, topic, part)
    if foreign := sorted(set(rows) - {partition for _, partition in partitions}):
        raise ValueError(f"the table has rows of partition {foreign[0]}, which topic {topic} does not have")
    of_log = _EVERYTHING if part.unknown_to_the_log else part
    for at in partitions:
        partition, start, leader = at[1], begin[at], leaders[at]
        if not part.has_partition(partition):
            continue
        committed = _log_offsets(options, OffsetRange(topic, partition, start, end[at]), leader, of_log)
        there = rows.get(partition, _NOTHING)
        found = compare(partition, committed.offsets, there.offsets, start, from_first=from_first, to_end=to_end)
        if found.unknown.size:
            dirty = replace(
                options, consumer=replace(options.consumer, isolation_level=IsolationLevel.READ_UNCOMMITTED)
            )
            everything = _log_offsets(dirty, OffsetRange(topic, partition, start, high[at]), leader, _EVERYTHING)
            is_there = np.isin(found.unknown, everything.offsets)
            found = replace(found, uncommitted=found.unknown[is_there], unknown=found.unknown[~is_there])
        of_part = _NONE if part.unknown_to_the_log else committed.part
        yield narrowed(found, of_part, there, from_first=from_first, to_end=to_end)


def _log_offsets(options: SourceOptions, wanted: OffsetRange, leader: Leader, part: Part) -> Found:
    return _joined(
        [Found(np.asarray(each.column("offset")), part.mask(each)) for each in RangeFetcher(options, wanted, leader)]
    )


def _joined(pieces: list[Found]) -> Found:
    if not pieces:
        return _NOTHING
    return Found(np.concatenate([each.offsets for each in pieces]), np.concatenate([each.in_part for each in pieces]))


def table_offsets(table: Rows, topic: str, part: Part = _EVERYTHING) -> dict[int, Found]:
    """Return the offsets of a topic's rows in a table, by partition.

    Raises:
        ValueError: the table does not keep them, or has rows without them; it does not have the part's columns.
    """
    absent = [name for name in _COLUMNS if name not in table.schema.names]
    if absent:
        raise ValueError(f"the table has no column {absent[0]}: an audit needs topic, partition and offset")
    for name in part.columns:
        if name not in table.schema.names:
            raise ValueError(f"the table has no column {printable(name)}{did_you_mean(name, table.schema.names)}")
    for name in ("partition", "offset"):
        if not pa.types.is_integer(kind := table.schema.field(name).type):
            raise ValueError(f"the table's column {name} is {kind} and not a whole number: {_SOMEONE_ELSE}")
    found: dict[int, list[Found]] = {}
    # The filter is not given to the reader: it would skip files by the writer's statistics, and the audit must not trust them.
    for every in table.to_batches(columns=list(dict.fromkeys([*_COLUMNS, *part.columns]))):
        batch = every.filter(ds.field("topic") == topic)
        if batch.column("partition").null_count or batch.column("offset").null_count:
            raise ValueError(f"the table has rows of topic {topic} without a partition or an offset: {_SOMEONE_ELSE}")
        partitions, offsets = (np.asarray(batch.column(name).cast(pa.int64())) for name in ("partition", "offset"))
        in_part = part.mask(batch)
        for partition in np.unique(partitions).tolist():
            here = partitions == partition
            found.setdefault(partition, []).append(Found(offsets[here], in_part[here]))
    return {partition: _joined(pieces) for partition, pieces in found.items()}


def delta_table(path: str, storage_options: Mapping[str, str] | None = None) -> ds.Dataset:
    """Return the rows of a Delta table.

    Raises:
        ValueError: there is none.
    """
    # An audit of Parquet files does without it.
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        return DeltaTable(path, storage_options=dict(storage_options or {})).to_pyarrow_dataset()
    except TableNotFoundError:
        raise ValueError(f"{path} is not a Delta table") from None


@dataclass(frozen=True)
class IcebergRows:
    """The rows of an Iceberg table, as the audit reads those of a data set."""

    table: Table

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema().as_arrow()

    def to_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        # Without a filter: the reader would skip files by the writer's statistics.
        yield from self.table.scan(selected_fields=tuple(columns)).to_arrow_batch_reader()


def iceberg_table(name: str, catalog: str | Mapping[str, str]) -> IcebergRows:
    """Return the rows of an Iceberg table.

    Raises:
        ValueError: there is none.
    """
    # An audit of other tables does without it.
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    try:
        return IcebergRows(open_catalog(catalog).load_table(name))
    except (NoSuchTableError, NoSuchNamespaceError):
        raise ValueError(f"the catalogue has no table {name}") from None


def parquet_files(path: str) -> ds.Dataset:
    """Return the rows of a folder of Parquet files; only of the files in the log of a streaming query, if there is one.

    Raises:
        ValueError: there are no Parquet files.
    """
    folder = Path(path)
    log = folder / "_spark_metadata"
    try:
        files = sorted(_logged_files(log)) if log.is_dir() else path
        return ds.dataset(files, format="parquet")
    except (FileNotFoundError, pa.ArrowInvalid):
        raise ValueError(f"{path} has no Parquet files that can be read") from None


def _logged_files(log: Path) -> Iterable[str]:
    """Return the files that a file sink of Spark's has committed: the last compacted entry of its log, and the entries since."""
    entries = {
        int(found[1]): path for path in log.iterdir() if (found := re.fullmatch(r"(\d+)(\.compact)?", path.name))
    }
    compacted = [number for number, path in entries.items() if path.suffix]
    files: dict[str, str] = {}
    for number in sorted(entries):
        if number >= max(compacted, default=0):
            for line in entries[number].read_text().splitlines()[1:]:
                entry = json.loads(line)
                files[entry["path"]] = entry["action"]
    return [unquote(urlparse(path).path) for path, action in files.items() if action == "add"]
