"""Sends the records of an export to a topic, each of them once.

A batch of records and the note how far the import is (`import_progress`) are one transaction. The transactional id is made of the import's
name, so a second run of the name fences the first, and reads its notes; the next run continues a killed one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from barnabas.cli.export_files import FileFormat
from barnabas.cli.export_manifest import Manifest
from barnabas.cli.failure import Failure
from barnabas.cli.import_progress import STATE_TOPIC, ImportProgress, read_import_progress, transactional_id
from barnabas.cli.librdkafka import connected
from barnabas.cli.sending_once import explained_library, transactional_producer
from barnabas.cli.session import Session
from barnabas.retries.committed_records import READER_SETTINGS, last_of_key
from barnabas.retries.forwarding import Forwarder
from barnabas.retries.record import Output, Record

_TRANSACTION_BYTES = 8 << 20


class Import:
    """An import under way.

    Args:
        progress: of an import that begins; `run` replaces it by what is stored under its name.
    """

    def __init__(self, folder: Path, manifest: Manifest, made: FileFormat, progress: ImportProgress) -> None:
        self._folder = folder
        self._manifest = manifest
        self._made = made
        self.progress = progress
        self.sent_before = 0
        self.was_finished = False
        self.size_bytes = 0
        self.without_time = 0

    def __repr__(self) -> str:
        return f"<Import {self.progress}>"

    def run(self, session: Session) -> None:
        """Send what is left.

        Raises:
            Failure: the records cannot be sent; or the import of this name is another one.
        """
        settings = {**READER_SETTINGS, "group.id": "barnabas-import"}
        consumer: Consumer = connected(Consumer, session, (), settings)
        library_admin = connected(AdminClient, session, (), {})
        with closing(consumer), explained_library("the import was interrupted: the same command goes on"):
            # The forwarder first: no earlier run of the name can note anything after it.
            forwarder = Forwarder(transactional_producer(session, transactional_id(self.progress.name)))
            stored = self._stored(consumer, library_admin)
            if stored is None:
                forwarder.send([self.progress.note()], [])
            else:
                self.progress = stored
                self.was_finished = stored.is_finished
            self.sent_before = self.progress.sent
            forwarder.send_noted(self._outputs(), lambda: [self.progress.note()])

    def _stored(self, consumer: Consumer, admin: AdminClient) -> ImportProgress | None:
        """Return how far the import of this name is; None if it has not begun."""
        new = self.progress
        try:
            found = last_of_key(consumer, admin, STATE_TOPIC, new.name.encode())
            stored = None if found is None else read_import_progress(found)
        except ValueError as error:
            raise Failure(str(error)) from None
        if stored is None:
            return None
        if (stored.export, stored.target) != (new.export, new.target):
            raise Failure(
                f"import {new.name} began with another export, or into another topic ({stored.target})",
                "give another --name",
            )
        if stored.target_id != new.target_id:
            raise Failure(
                f"topic {new.target} was deleted and created again since import {new.name} began",
                "begin another with --name",
            )
        return stored

    def _outputs(self) -> Iterator[Output | None]:
        batch_bytes = 0
        for record in self._records():
            if record.timestamp_ms == 0:
                self.without_time += 1
            size = len(record.key or b"") + len(record.value or b"")
            self.size_bytes += size
            batch_bytes += size
            self.progress.sent += 1
            yield Output(
                self.progress.target, record.value, record.key, record.headers, record.partition, record.timestamp_ms
            )
            if batch_bytes >= _TRANSACTION_BYTES:
                batch_bytes = 0
                yield None

    def _records(self) -> Iterator[Record]:
        """Yield the records that are not sent yet, in the order of the export."""
        skipped = self.progress.sent
        for file in self._manifest.files:
            if skipped >= file.records:
                skipped -= file.records
                continue
            try:
                for record in self._made.read(self._folder / file.name, self._manifest.topic, skipped):
                    if record.partition != file.partition:
                        raise ValueError(f"a record of partition {record.partition} is in it")
                    yield record
            except ValueError as error:
                raise Failure(f"file {self._folder / file.name} cannot be read: {error}") from None
            skipped = 0
