"""Deliberate bugs that only a cluster with an older node shows: what the present barnabas writes, and the older one cannot read.

They count in worlds with `--older` only; without one they do no harm.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from barnabas.metadata import metadata_batch_loader, quorum_controller
from barnabas.metadata.record_codec import MetadataRecord
from tests.simulation.bug import Bug
from tests.simulation.deliberate_bugs import replaced

_ENCODE: Any = vars(quorum_controller)["encode_record"]
_DECODE: Any = vars(metadata_batch_loader)["decode_record"]
_FORMAT, _NEXT_FORMAT = b"\x01", b"\x02"
"""The first byte of a record: the format of its frame."""


@contextmanager
def write_records_of_the_next_format() -> Iterator[None]:
    """A controller writes settings in a format that no metadata.version has allowed. An older node cannot go on behind such a record."""

    def encode(record: MetadataRecord, metadata_version: int) -> bytes:
        written: bytes = _ENCODE(record, metadata_version)
        return _NEXT_FORMAT + written[1:] if record.NAME == "ConfigRecord" else written

    def decode(value: bytes) -> MetadataRecord:
        record: MetadataRecord = _DECODE(_FORMAT + bytes(value[1:]))
        return record

    with replaced(quorum_controller, "encode_record", encode), replaced(metadata_batch_loader, "decode_record", decode):
        yield


BUGS: dict[str, Bug] = {
    "write_records_of_the_next_format": Bug(write_records_of_the_next_format, 3),
}
