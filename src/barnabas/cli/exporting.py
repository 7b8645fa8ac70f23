"""Writes the records of a topic into the folder of an export, one partition after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, KafkaException

from barnabas.cli.export_files import FileFormat, UnfinishedFile
from barnabas.cli.export_folder import ExportFolder
from barnabas.cli.export_manifest import Manifest, Place
from barnabas.cli.failure import Failure
from barnabas.cli.librdkafka import connected
from barnabas.cli.sending_once import explained_library
from barnabas.cli.session import Session
from barnabas.retries.committed_records import READER_SETTINGS, read_messages
from barnabas.retries.record import Record

_SETTINGS: dict[str, Any] = {**READER_SETTINGS, "group.id": "barnabas-export"}


class Export:
    """An export under way.

    Args:
        chosen: whether a record is exported.
        file_bytes: a file that has grown to so many bytes is ended.
    """

    def __init__(
        self,
        folder: ExportFolder,
        manifest: Manifest,
        made: FileFormat,
        chosen: Callable[[Record], bool],
        file_bytes: int,
    ) -> None:
        self._folder = folder
        self._manifest = manifest
        self._made = made
        self._chosen = chosen
        self._file_bytes = file_bytes
        self.records = manifest.records
        self.size_bytes = manifest.size_bytes

    def __repr__(self) -> str:
        return f"<Export records={self.records}>"

    def run(self, consumer: Consumer) -> None:
        """Write the files that are missing; the manifest has them then, and is not finished.

        Raises:
            KafkaException: a partition cannot be read; or offsets were deleted before they were read.
            OSError: the disk is full, or fails.
        """
        for place in self._manifest.places:
            self._write_partition(consumer, place)

    def _write_partition(self, consumer: Consumer, place: Place) -> None:
        file: UnfinishedFile | None = None
        try:
            for record, timestamp_type in self._records(consumer, place):
                if file is None:
                    file = UnfinishedFile(
                        self._folder.path, self._manifest.file_format, self._made, record, self._file_bytes
                    )
                before = file.size_bytes
                file.add(record, timestamp_type)
                self.records += 1
                self.size_bytes += file.size_bytes - before
                if file.is_full:
                    self._keep(file)
                    file = None
            if file is not None:
                self._keep(file)
                file = None
        finally:
            if file is not None:
                file.abandon()

    def _keep(self, file: UnfinishedFile) -> None:
        self._folder.keep(file.path, file.end(), self._manifest)

    def _records(self, consumer: Consumer, place: Place) -> Iterator[tuple[Record, int]]:
        where = (self._manifest.topic, place.partition)
        begin = self._manifest.position(place)
        for message, record in read_messages(consumer, {where: begin}, {where: place.end}, skips_deleted=False):
            if self._chosen(record):
                yield record, int(message.timestamp()[0] == TIMESTAMP_LOG_APPEND_TIME)


@contextmanager
def reader(session: Session, isolation_level: str) -> Iterator[Consumer]:
    """Yield the consumer of an export.

    Raises:
        Failure: it cannot read.
    """
    consumer: Consumer = connected(Consumer, session, (), {**_SETTINGS, "isolation.level": isolation_level})
    with explained_library("the export was interrupted: the same command goes on"):
        try:
            yield consumer
        except KafkaException as error:
            if error.args[0].code() == KafkaError._AUTO_OFFSET_RESET:
                raise Failure(
                    "records were deleted before the export had read them", "the same command goes on after them"
                ) from None
            raise
        finally:
            consumer.close()
