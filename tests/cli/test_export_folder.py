from __future__ import annotations

import errno
from pathlib import Path

import pytest

from barnabas.cli.export_folder import MANIFEST, UNFINISHED, ExportFolder, explained_disk, opened_folder, read_manifest
from barnabas.cli.export_manifest import DataFile, data_file_name
from barnabas.cli.failure import Failure
from tests.cli.exports import manifest, names

FILE = DataFile(data_file_name(0, 3, "jsonl"), 0, 3, 7, 4, 5, "ab" * 32)


def test_from_an_absent_folder_to_a_manifest(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder"
    written = manifest()
    with opened_folder(path) as folder:
        assert folder.found() == (None, False)
        folder.note(written)
        assert folder.found() == (written, False)
        unnamed = path / f"{FILE.name}.tmp"
        unnamed.write_bytes(b"lines")
        folder.keep(unnamed, FILE, written)
        assert written.files == [FILE]
        folder.finish()
        assert folder.found() == (written, True)
    assert names(path) == [FILE.name, MANIFEST]
    assert read_manifest(path) == written


def test_only_the_files_of_a_killed_export_are_removed(tmp_path: Path) -> None:
    lost = data_file_name(1, 0, "jsonl")
    for name in (FILE.name, lost, f"{lost}.tmp", "notes.txt"):
        (tmp_path / name).touch()
    ExportFolder(tmp_path).remove_unfinished(manifest("jsonl", FILE))
    assert names(tmp_path) == [FILE.name, "notes.txt"]


def test_a_kill_before_the_first_note_leaves_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / f"{UNFINISHED}.tmp").write_bytes(b"{")
    assert ExportFolder(tmp_path).found() == (None, False)


def test_another_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(Failure, match=r"is not an export, and has other files, such as thesis\.tex"):
        ExportFolder(tmp_path).found()


def test_one_export_at_a_time(tmp_path: Path) -> None:
    with opened_folder(tmp_path), pytest.raises(Failure, match="another export writes"), opened_folder(tmp_path):
        pass
    with opened_folder(tmp_path):
        pass


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Failure) as failed, explained_disk(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert failed.value.format_message() == (
        f"{tmp_path}: no space left on device (mend it, and run the same command: it goes on from there)"
    )


def test_what_cannot_be_imported(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="there is no folder"):
        read_manifest(tmp_path / "absent")
    with pytest.raises(Failure, match=r"is not an export: it has no manifest\.json"):
        read_manifest(tmp_path)
    (tmp_path / MANIFEST).write_bytes(b"{}")
    with pytest.raises(Failure, match=r"manifest\.json is not that of an export"):
        read_manifest(tmp_path)
    with pytest.raises(Failure, match="is not a folder"):
        read_manifest(tmp_path / MANIFEST)
    (tmp_path / MANIFEST).rename(tmp_path / UNFINISHED)
    with pytest.raises(Failure, match="is not finished"):
        read_manifest(tmp_path)
