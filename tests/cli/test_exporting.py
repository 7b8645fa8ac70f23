from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Consumer

from barnabas.cli import exporting
from barnabas.cli.export_files import HashedFile, file_format
from barnabas.cli.export_folder import MANIFEST, UNFINISHED, ExportFolder, opened_folder
from barnabas.cli.exporting import Export
from barnabas.cli.failure import Failure
from barnabas.retries.record import Record
from tests.cli.exports import manifest, names, odd_records


class Created:
    """A message with the producer's time."""

    def timestamp(self) -> tuple[int, int]:
        return 1, 0


def reading(
    consumer: object, begin: dict[tuple[str, int], int], ends: dict[tuple[str, int], int], **named: Any
) -> Iterator[tuple[Created, Record]]:
    ((topic, partition),) = begin
    for each in odd_records(20):
        if each.partition == partition and begin[topic, partition] <= each.offset < ends[topic, partition]:
            yield Created(), each


@pytest.mark.parametrize("file_bytes", [1, 1 << 20])
def test_a_full_disk_leaves_what_is_finished_and_the_next_run_goes_on(
    tmp_path: Path, file_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "read_messages", reading)
    monkeypatch.setattr("barnabas.cli.export_json_lines._BUFFER_BYTES", 1)
    written = HashedFile.write
    left = 4

    def filling(self: HashedFile, data: object) -> int:
        nonlocal left
        left -= 1
        if left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(self, data)

    monkeypatch.setattr(HashedFile, "write", filling)
    made, asked = file_format("jsonl"), manifest()
    consumer = cast("Consumer", None)
    ExportFolder(tmp_path).note(asked)
    with pytest.raises(Failure, match="no space left on device"), opened_folder(tmp_path) as folder:
        Export(folder, asked, made, lambda record: True, file_bytes).run(consumer)
    assert len(names(tmp_path)) == (4 if file_bytes == 1 else 2)
    assert MANIFEST not in names(tmp_path)
    with opened_folder(tmp_path) as folder:
        found, _ = folder.found()
        assert found is not None
        work = Export(folder, found, made, lambda record: record.offset != 3, file_bytes)
        work.run(consumer)
        folder.finish()
    # Offsets 4, 6 and 8 of the first partition, 1 of the second; 3 was left out.
    assert work.records == found.records == 4
    assert UNFINISHED not in names(tmp_path)
