"""The manifest of an export: `manifest.json`, the last file that it writes.

    {"kind": "barnabas-export", "version": 1, "topic": "orders", "topic_id": …, "cluster_id": …, "partitions": 2,
     "settings": {"retention.ms": "604800000"}, "choice": "--from start --isolation-level read_committed",
     "file_format": "jsonl", "columns": {"offset": "int64", …},
     "places": [{"partition": 0, "begin": 0, "end": 4210, "deleted": 0, "log_start": 0}, …], "records": 4200,
     "files": [{"name": "00000-00000000000000000000.jsonl", "partition": 0, "first_offset": 0, "last_offset": 4209,
                "records": 4200, "bytes": 812345, "sha256": …}, …]}

An end is not included. `deleted` counts offsets that the log lost, by retention or a trim, before they were read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

KIND = "barnabas-export"
VERSION = 1
_DATA_FILE = re.compile(r"\d{5,10}-\d{20}\.(jsonl|parquet)", re.ASCII)


class NotAManifest(ValueError):
    """The bytes are no manifest that this release reads; the message is the end of a sentence about them."""


@dataclass(frozen=True)
class DataFile:
    """A finished file: records of one partition, in the order of their offsets."""

    name: str
    partition: int
    first_offset: int
    last_offset: int
    records: int
    bytes: int
    sha256: str


@dataclass
class Place:
    """The exported part of a partition: the offsets from `begin` on, before `end`.

    Attributes:
        deleted: how many of these offsets were gone when they were to be read.
        log_start: the log start offset when the last run began.
    """

    partition: int
    begin: int
    end: int
    deleted: int = 0
    log_start: int = 0


@dataclass
class Manifest:
    """An export, finished or not.

    Attributes:
        partitions: how many the topic has.
        settings: those that were set for the topic.
        choice: the options that choose records, as they were typed.
        columns: the name and type of each field of a record.
        files: in the order of an import: by partition, then by offset.
    """

    topic: str
    topic_id: str
    cluster_id: str
    partitions: int
    settings: Mapping[str, str]
    choice: str
    file_format: str
    columns: Mapping[str, str]
    places: list[Place]
    files: list[DataFile] = field(default_factory=list)

    @property
    def records(self) -> int:
        """How many records the files have."""
        return sum(each.records for each in self.files)

    @property
    def size_bytes(self) -> int:
        """How many bytes the files have."""
        return sum(each.bytes for each in self.files)

    def position(self, place: Place) -> int:
        """Return the first offset of a partition that no finished file has covered."""
        read = [each.last_offset + 1 for each in self.files if each.partition == place.partition]
        return max(place.begin, place.log_start, *read)

    def to_json(self) -> bytes:
        """Return the content of `manifest.json`."""
        fields = {"kind": KIND, "version": VERSION, **asdict(self)}
        fields["records"] = self.records
        fields["files"] = fields.pop("files")
        return json.dumps(fields, indent=1).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes) -> Manifest:
        """Read the content of `manifest.json`.

        Raises:
            NotAManifest: the file is not a manifest, or another release wrote it.
        """
        try:
            fields = json.loads(data)
        except ValueError:
            raise NotAManifest("is not JSON") from None
        if not isinstance(fields, dict) or fields.pop("kind", None) != KIND:
            raise NotAManifest("is not that of an export")
        version = fields.pop("version", None)
        if version != VERSION:
            raise NotAManifest(f"has version {version}, and this release reads version {VERSION}: use a newer release")
        return cls._of_fields(fields)

    @classmethod
    def _of_fields(cls, fields: dict[str, Any]) -> Manifest:
        try:
            records = fields.pop("records")
            files = [DataFile(**each) for each in fields.pop("files")]
            places = [Place(**each) for each in fields.pop("places")]
            found = cls(**fields, places=places, files=files)
            is_whole = found.records == records and all(
                # A name with a folder in it could lead anywhere.
                _DATA_FILE.fullmatch(each.name) and 0 <= each.partition < found.partitions
                for each in files
            )
        except (TypeError, KeyError, AttributeError):
            is_whole = False
        if not is_whole:
            raise NotAManifest("is damaged")
        return found

    def digest(self) -> str:
        """Return the SHA-256 of the manifest: two exports with the same one have the same records."""
        return hashlib.sha256(self.to_json()).hexdigest()


def data_file_name(partition: int, offset: int, file_format: str) -> str:
    """Return the name of a file whose first record has this offset."""
    return f"{partition:05d}-{offset:020d}.{file_format}"


def is_data_file(name: str) -> bool:
    """Return whether a data file has this name, or one that is being written."""
    return _DATA_FILE.fullmatch(name.removesuffix(".tmp")) is not None
