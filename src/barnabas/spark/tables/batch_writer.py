"""A batch is appended to a table once, whatever the table's format: also if it is repeated, or if two drivers write it.

A batch is written in two steps. Its tasks write Parquet files where no reader looks yet (`data_files`). Then the driver makes one commit,
which names the files, the query, the number of the batch and its proof. So the rows become visible together, and a batch whose number the
table has is not written again: `batch_proof` shows that it is the same batch. A batch with other rows, or with a lower number, is an
error: the checkpoint is not the table's.

Each cut ends well:

    killed while tasks write    files that the table does not name; the batch is repeated with new ones
    killed after the commit     the repeated batch finds its number and is read to be compared; it writes nothing
    two drivers, one batch      both write files, one commit wins; the other finds the number then, and deletes its files
    a driver is overtaken       it finds a higher number, deletes its files and fails
    the commit's answer is lost the table names the driver's own files: they stay, and the batch is written

The rows do not pass through the driver, only what it must know of the files. Files that no commit names stay until a vacuum.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from barnabas.spark.tables.batch_proof import BatchProof, proof_of, row_digest
from barnabas.spark.tables.columns import arrow_schema
from barnabas.spark.tables.data_files import FILES_IN_SPARK, ROW_DIGEST, DataFile, FileTarget, task_writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger("barnabas.spark")

_QUERY_ID = "sql.streaming.queryId"


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """The last batch of a query that a table has; the proof is None if an older version of the writer wrote it."""

    number: int
    proof: BatchProof | None


class CommitConflict(Exception):
    """Another commit has this batch of the query, or a later one, or contradicts this one; the table has not changed."""


class BatchTable(ABC):
    """A table of one of the formats.

    Attributes:
        name: what errors call it.
    """

    @property
    @abstractmethod
    def name(self) -> str: ...
    @abstractmethod
    def refresh(self) -> None:
        """Read the table's newest state; a table that is absent is no error."""

    @abstractmethod
    def has_records(self) -> bool: ...
    @abstractmethod
    def written(self, query_id: str) -> WrittenBatch | None: ...
    @abstractmethod
    def prepare(self, schema: pa.Schema) -> FileTarget:
        """Create the table, or give it the columns that are new; return where the tasks put their files.

        Raises:
            ValueError: the table cannot have such rows.
        """

    @abstractmethod
    def commit(self, files: Sequence[DataFile], query_id: str, batch_id: int, proof: BatchProof) -> None:
        """Make files part of the table, as one batch.

        Raises:
            CommitConflict: the table has the batch, or another commit contradicts this one.
        """

    @abstractmethod
    def names(self, files: Sequence[DataFile]) -> bool:
        """Return whether the table has one of the files."""

    @abstractmethod
    def delete(self, files: Sequence[DataFile]) -> None:
        """Delete files that the table does not name."""


def batch_function(
    table: Callable[[], BatchTable],
    query_id: str | None,
    fail_on_different_batch: bool,
    fail_on_missing_batch: bool,
) -> Callable[[DataFrame, int], None]:
    """Return the function for `foreachBatch`."""

    def write(batch: DataFrame, batch_id: int) -> None:
        query = query_id or _id_of_query(batch)
        write_batch(table(), batch, batch_id, query, fail_on_different_batch, fail_on_missing_batch)

    return write


def write_batch(
    table: BatchTable,
    batch: DataFrame,
    batch_id: int,
    query_id: str,
    fail_on_different_batch: bool = True,
    fail_on_missing_batch: bool = True,
) -> bool:
    """Append a batch to a table; return False if the table has it already.

    Raises:
        ValueError: as `delta_writer` says.
    """
    proof = (lambda: proof_of(batch)) if fail_on_different_batch else None
    if is_written(table, query_id, batch_id, proof, fail_on_missing_batch):
        logger.info("%s has batch %d of query %s already", table.name, batch_id, query_id)
        return False
    target = table.prepare(arrow_schema(batch))
    rows = batch.withColumn(ROW_DIGEST, row_digest(batch))
    found = rows.mapInArrow(task_writer(target), FILES_IN_SPARK).collect()
    files = [DataFile(row.path, row.rows, row.digest, bytes(row.entry)) for row in found]
    return commit_batch(table, files, query_id, batch_id, fail_on_different_batch)


def is_written(
    table: BatchTable,
    query_id: str,
    batch_id: int,
    proof: Callable[[], BatchProof] | None,
    fail_on_missing_batch: bool = True,
) -> bool:
    """Read a table's newest state, and return whether it has a batch.

    Args:
        proof: reads the batch, for the comparison; None compares nothing.

    Raises:
        ValueError: the table has a later batch, this one with other rows, or not the one before; or another query's rows.
    """
    table.refresh()
    if _has(table, query_id, batch_id):
        if proof is not None:
            _check_same(table, query_id, batch_id, proof)
        return True
    last = table.written(query_id)
    if last is None and table.has_records():
        raise ValueError(
            f"{table.name} has records, and none of query {query_id}: its checkpoint is new, so it would write records a second time. "
            "Use the checkpoint that belongs to the table, or another table"
        )
    if fail_on_missing_batch:
        _check_next(table.name, last, query_id, batch_id)
    return False


def commit_batch(
    table: BatchTable,
    files: Sequence[DataFile],
    query_id: str,
    batch_id: int,
    fail_on_different_batch: bool = True,
) -> bool:
    """Commit what the tasks of a batch wrote; return False if the table has the batch from another driver.

    Raises:
        ValueError: the table has a later batch, or this one with other rows.
        CommitConflict: another commit contradicts this one.
    """
    proof = BatchProof(sum(each.rows for each in files), sum(each.digest for each in files))
    try:
        table.commit(files, query_id, batch_id, proof)
    except CommitConflict:
        table.refresh()
        last = table.written(query_id)
        if last is None or last.number < batch_id:
            raise
        # A store may do what it was asked and lose the answer; the repeated request then finds its own commit.
        if table.names(files):
            return True
        table.delete(files)
        if _has(table, query_id, batch_id) and fail_on_different_batch:
            _check_same(table, query_id, batch_id, lambda: proof)
        logger.warning("another driver has written batch %d of query %s to %s", batch_id, query_id, table.name)
        return False
    return True


def _id_of_query(batch: DataFrame) -> str:
    # Spark Connect has no context, and runs the batch's jobs without the query's properties.
    context = getattr(batch.sparkSession, "sparkContext", None)
    if context is None:
        raise ValueError("a batch's query has an id, and Spark Connect does not name it: give the writer a query_id")
    found = context.getLocalProperty(_QUERY_ID)
    if not found:
        raise ValueError("this batch belongs to no streaming query: give the writer a query_id")
    return str(found)


def _has(table: BatchTable, query_id: str, batch_id: int) -> bool:
    """Return whether a batch is the last one of its query in a table.

    Raises:
        ValueError: the table has a later one.
    """
    last = table.written(query_id)
    if last is not None and last.number > batch_id:
        raise ValueError(
            f"{table.name} has batch {last.number} of query {query_id}, and this is batch {batch_id}: the query's checkpoint is older than "
            "the table, or is another one's. Use the checkpoint that belongs to the table, or another table"
        )
    return last is not None and last.number == batch_id


def _check_next(name: str, last: WrittenBatch | None, query_id: str, batch_id: int) -> None:
    """Raise ValueError if a table does not have the batch before."""
    # Older versions of this writer kept no batch without rows, and no proof.
    if last is not None and last.proof is None:
        return
    if batch_id > (0 if last is None else last.number + 1):
        there = "no batch" if last is None else f"batches up to {last.number}"
        raise ValueError(
            f"{name} has {there} of query {query_id}, and this is batch {batch_id}: rows of the batches before it are not in the table. "
            "It was deleted, or is older than the query's checkpoint. Begin with a new checkpointLocation and another table; "
            "fail_on_missing_batch=False is for a table that gets only some of the batches"
        )


def _check_same(table: BatchTable, query_id: str, batch_id: int, proof: Callable[[], BatchProof]) -> None:
    """Raise ValueError if the table's last batch of a query has other rows than the batch that repeats it."""
    last = table.written(query_id)
    if last is None or last.proof is None:
        return
    now = proof()
    if now != last.proof:
        raise ValueError(
            f"{table.name} has batch {batch_id} of query {query_id} with {last.proof}, and Spark repeats it with {now}: the query's "
            "checkpoint is older than the table, or rows are computed otherwise each time. Use the checkpoint that belongs to the table, "
            "or another table; fail_on_different_batch=False skips such a batch, with the rows that the table does not have"
        )
