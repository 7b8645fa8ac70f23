"""The upkeep of a table that a query writes for a long time.

    compact    puts small files together, in one commit; a query may write meanwhile
    vacuum     deletes the files that no state of the table of the last days needs, those of killed tasks among them, and the log before

After a vacuum the table can no longer be read as it was before that time: a Delta table's older versions have lost their files, an Iceberg
table's older snapshots have expired. What the table keeps of each query's last batch stays.

Two of our compactions may run at once. deltalake's own `optimize.compact` must not run at that time: version 1.6 commits it even if the
same files were put together meanwhile, and each row is then in the table twice.

A vacuum cannot tell the files of a killed task from those of a task at work but by their age. So the age must be more than a batch takes.
"""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass

import pyarrow.fs as pafs
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestFile

from barnabas.spark.tables import delta_compaction, iceberg_compaction
from barnabas.spark.tables.batch_writer import BatchTable
from barnabas.spark.tables.delta_table import Delta, DeltaFiles
from barnabas.spark.tables.iceberg_table import Iceberg

LEAST_AGE = datetime.timedelta(hours=1)
_ATTEMPTS = 20
_LOG_ENTRY = re.compile(r"(\d{20})\.(json|crc|checkpoint\.parquet)")
_ENDS = (".parquet", ".avro", ".metadata.json")


@dataclass(frozen=True, slots=True)
class Compacted:
    """How many files were put together, and how many they are now."""

    before: int
    after: int


def compact(table: BatchTable, target_bytes: int, now: datetime.datetime) -> Compacted:
    """Put a table's small files together, until they have about the wanted size.

    Raises:
        ValueError: there is no such table, or others changed the files meanwhile.
    """
    table.refresh()
    if isinstance(table, Iceberg):
        return Compacted(*iceberg_compaction.compact(table, target_bytes))
    assert isinstance(table, Delta)
    return Compacted(*delta_compaction.compact(table, target_bytes, int(now.timestamp() * 1000)))


def vacuum(table: BatchTable, age: datetime.timedelta, now: datetime.datetime) -> int:
    """Delete the files that no state of the table since an age ago needs; return how many.

    Raises:
        ValueError: there is no such table, or the age is too short.
    """
    if age < LEAST_AGE:
        raise ValueError("files of the last hour may be those of a batch that is being written: give an hour or more")
    table.refresh()
    if isinstance(table, Iceberg):
        return _vacuum_iceberg(table, now - age)
    assert isinstance(table, Delta)
    return _vacuum_delta(table, now - age)


def _vacuum_delta(table: Delta, before: datetime.datetime) -> int:
    opened = table.opened()
    # deltalake counts whole hours, and from its own clock.
    hours = math.ceil((datetime.datetime.now(datetime.UTC) - before) / datetime.timedelta(hours=1))
    found = opened.vacuum(retention_hours=max(hours, 0), dry_run=False, enforce_retention_duration=False, full=True)
    return len(found) + _cut_log(table, before)


def _cut_log(table: Delta, before: datetime.datetime) -> int:
    """Delete the entries of a Delta table's log that only versions from before a time need; return how many."""
    table.refresh()
    table.opened().create_checkpoint()
    store = DeltaFiles.of(table).store()
    entries = [
        (int(match[1]), each)
        for each in store.get_file_info(pafs.FileSelector("_delta_log"))
        if (match := _LOG_ENTRY.fullmatch(each.base_name)) and each.mtime is not None
    ]
    checkpoints = [version for version, each in entries if each.extension == "parquet" and each.mtime < before]
    found = [each for version, each in entries if version < max(checkpoints, default=0)]
    for each in found:
        store.delete_file(each.path)
    return len(found)


def _vacuum_iceberg(table: Iceberg, before: datetime.datetime) -> int:
    location, io = table.opened().location(), table.opened().io
    if not isinstance(io, PyArrowFileIO):
        raise ValueError(f"the files of {table.name} are read by {type(io).__name__}, which cannot list them")
    scheme, netloc, folder = PyArrowFileIO.parse_location(location, io.properties)
    store = io.fs_by_scheme(scheme, netloc)
    # First the list, then the table's state: a file that is committed in between is in the state.
    old = [
        each.path
        for each in store.get_file_info(pafs.FileSelector(folder, recursive=True))
        if each.type == pafs.FileType.File and each.path.endswith(_ENDS) and each.mtime and each.mtime < before
    ]
    _expire(table, before)
    needed = {PyArrowFileIO.parse_location(path, io.properties)[2].lstrip("/") for path in _needed(table)}
    found = [path for path in old if path.lstrip("/") not in needed]
    for path in found:
        store.delete_file(path)
    return len(found)


def _expire(table: Iceberg, before: datetime.datetime) -> None:
    """Take the snapshots from before out of the table's metadata; the newest of each branch stays."""
    for _ in range(_ATTEMPTS):
        table.refresh()
        expiring = table.opened().maintenance.expire_snapshots().older_than(before)
        try:
            expiring.commit()
        except CommitFailedException:
            continue
        table.refresh()
        return
    raise ValueError(f"{table.name} was changed by others during each of {_ATTEMPTS} attempts to expire snapshots")


def _needed(table: Iceberg) -> set[str]:
    """Return each file that the table's metadata names, itself among them."""
    current = table.opened()
    found = {current.metadata_location, *(each.metadata_file for each in current.metadata.metadata_log)}
    found |= {each.statistics_path for each in current.metadata.statistics}
    manifests: dict[str, ManifestFile] = {}
    for snapshot in current.metadata.snapshots:
        found.add(snapshot.manifest_list)
        manifests |= {each.manifest_path: each for each in snapshot.manifests(current.io)}
    for path, manifest in manifests.items():
        found.add(path)
        found |= {each.data_file.file_path for each in manifest.fetch_manifest_entry(current.io)}
    return found
