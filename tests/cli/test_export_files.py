from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.export_files import FORMATS, HashedFile, UnfinishedFile, check_file, file_format
from barnabas.cli.export_manifest import DataFile
from barnabas.cli.failure import Failure
from barnabas.retries.record import Record
from barnabas.words.requirements import NotInstalled
from tests.cli.exports import names, odd_records


def made_file(folder: Path, name: str, records: list[Record]) -> DataFile:
    """Write records to a file of a format, and give it its name."""
    unfinished = UnfinishedFile(folder, name, file_format(name), records[0], 1 << 20)
    for each in records:
        unfinished.add(each, 1)
    done = unfinished.end()
    unfinished.path.rename(folder / done.name)
    return done


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_knows_what_it_has(tmp_path: Path, name: str) -> None:
    records = [replace(each, partition=4) for each in odd_records(20)]
    done = made_file(tmp_path, name, records)
    data = (tmp_path / done.name).read_bytes()
    assert (done.first_offset, done.last_offset, done.records, done.partition) == (0, 19, 20, 4)
    assert (done.bytes, done.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    pieces: list[int] = []
    check_file(tmp_path, done, file_format(name), pieces.append)
    assert sum(pieces) == done.bytes


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (Path.unlink, "of the export is gone"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "was changed since the export"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b"plain", b"plane")), "was changed since the export"),
    ],
    ids=["gone", "shorter", "changed"],
)
def test_a_harmed_file_is_found(tmp_path: Path, name: str, harm: Callable[[Path], Any], words: str) -> None:
    done = made_file(tmp_path, name, odd_records(20))
    path = tmp_path / done.name
    before = path.read_bytes()
    harm(path)
    if path.exists() and path.read_bytes() == before:
        pytest.skip("a compressed file has no such text")
    with pytest.raises(Failure, match=words):
        check_file(tmp_path, done, file_format(name), lambda count: None)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_whose_checksum_fits_is_still_read(tmp_path: Path, name: str) -> None:
    done = made_file(tmp_path, name, odd_records(20))
    with pytest.raises(Failure, match="has 20 records, and the manifest says 19"):
        check_file(tmp_path, replace(done, records=19), file_format(name), lambda count: None)
    (tmp_path / done.name).write_bytes(b"x")
    harmed = replace(done, sha256=hashlib.sha256(b"x").hexdigest())
    with pytest.raises(Failure, match="cannot be read: "):
        check_file(tmp_path, harmed, file_format(name), lambda count: None)


@pytest.mark.parametrize("name", FORMATS)
def test_a_disk_that_fills_up_leaves_no_file(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: HashedFile, data: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    records = odd_records(20)
    unfinished = UnfinishedFile(tmp_path, name, file_format(name), records[0], 1 << 20)
    for each in records:
        unfinished.add(each, 0)
    with monkeypatch.context() as patched:
        patched.setattr(HashedFile, "write", full)
        with pytest.raises(OSError, match="No space left"):
            unfinished.end()
    unfinished.abandon()
    assert names(tmp_path) == []


def test_a_format_that_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")

    monkeypatch.setattr("barnabas.cli.export_files.import_module", missing)
    with pytest.raises(NotInstalled, match=r"The format parquet needs pyarrow: .*pip install .*pyarrow>="):
        file_format("parquet")
