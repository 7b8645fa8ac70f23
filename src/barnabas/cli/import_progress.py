"""How far an import is: a record of the compacted topic `__barnabas_imports`, written in the transactions that send its records.

    key    NAME
    value  {"version": 1, "name": NAME, "export": SHA-256 of the manifest, "target": "orders", "target_id": …, "sent": 17, "records": 4200}

The records of an export have one order: that of the files in the manifest, and of the records in a file. `sent` counts along it. The
topic's id is kept, because a topic that is deleted and created again is empty.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from barnabas.retries.record import Output, Record
from barnabas.retries.versioned_notes import read, written

STATE_TOPIC = "__barnabas_imports"


@dataclass(slots=True)
class ImportProgress:
    """An import.

    Attributes:
        export: the SHA-256 of the manifest.
        sent: how many records are in the target.
        records: how many the export has.
    """

    name: str
    export: str
    target: str
    target_id: str
    records: int
    sent: int = 0

    @property
    def is_finished(self) -> bool:
        return self.sent == self.records

    def note(self) -> Output:
        """Return the record of the state topic."""
        return Output(STATE_TOPIC, written(asdict(self)), self.name.encode(), (), 0)


def transactional_id(name: str) -> str:
    """Return the transactional id of an import."""
    return f"barnabas-import-{name}"


def read_import_progress(record: Record) -> ImportProgress | None:
    """Return what a record of the state topic says; None if its import was forgotten.

    Raises:
        ValueError: a newer barnabas wrote it.
    """
    if record.value is None:
        return None
    return ImportProgress(**read(record.value, f"import {(record.key or b'').decode()}"))
