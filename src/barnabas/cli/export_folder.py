"""The folder of an export: who may write it, and what each kill leaves in it.

    unfinished.json                   the manifest so far: what was asked for, and the finished files
    00000-00000000000000000000.jsonl  a finished file
    …jsonl.tmp                        the file that is being written
    manifest.json                     the manifest, when all is there

The order of writes, and what a kill between two of them leaves:

1. `unfinished.json` before the first record. A kill before it leaves an empty folder, or its `.tmp`.
2. A data file as `.tmp`, synced, renamed. A kill leaves a file that no manifest has: the next run removes it.
3. `unfinished.json` with the file, synced and renamed. The next run goes on after the file's last offset.
4. At the end `unfinished.json` is renamed to `manifest.json`, in one step. So a folder never has a manifest that is not whole.

The folder is locked while an export writes it; the lock ends with the process. Nothing else is removed or overwritten: a folder with other
files in it is an error.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.cli.export_manifest import DataFile, Manifest, NotAManifest, is_data_file
from barnabas.cli.failure import Failure

if sys.platform != "win32":  # where no folder is locked
    import fcntl

MANIFEST = "manifest.json"
UNFINISHED = "unfinished.json"
_BEING_WRITTEN = f"{UNFINISHED}.tmp"


class ExportFolder:
    """The folder of one export, while it is written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"<ExportFolder {self.path}>"

    def found(self) -> tuple[Manifest | None, bool]:
        """Return the manifest that the folder has, and whether the export is finished; None for a new or an empty folder.

        Raises:
            Failure: the folder has something else.
        """
        if (self.path / MANIFEST).exists():
            return read_manifest(self.path, MANIFEST), True
        if (self.path / UNFINISHED).exists():
            return read_manifest(self.path, UNFINISHED), False
        other = sorted(each.name for each in self.path.iterdir() if each.name != _BEING_WRITTEN)
        if other:
            raise Failure(
                f"folder {self.path} is not an export, and has other files, such as {other[0]}", "name another folder"
            )
        return None, False

    def remove_unfinished(self, manifest: Manifest) -> None:
        """Remove the files of a killed export that its manifest does not have."""
        kept = {each.name for each in manifest.files}
        for each in self.path.iterdir():
            if is_data_file(each.name) and each.name not in kept:
                each.unlink()

    def keep(self, unnamed: Path, file: DataFile, manifest: Manifest) -> None:
        """Give a synced file its name, and note it in the manifest."""
        os.replace(unnamed, self.path / file.name)
        manifest.files.append(file)
        self.note(manifest)

    def note(self, manifest: Manifest) -> None:
        """Write the manifest so far."""
        temporary = self.path / _BEING_WRITTEN
        with temporary.open("wb") as file:
            file.write(manifest.to_json())
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path / UNFINISHED)
        _sync(self.path)

    def finish(self) -> None:
        """Make the manifest so far the manifest."""
        os.replace(self.path / UNFINISHED, self.path / MANIFEST)
        _sync(self.path)


@contextmanager
def opened_folder(path: Path) -> Iterator[ExportFolder]:
    """Create the folder if it is absent, and lock it within the block.

    Raises:
        Failure: another process writes it; or the disk is full, or fails.
    """
    with explained_disk(path):
        path.mkdir(parents=True, exist_ok=True)
        with _locked(path):
            yield ExportFolder(path)


@contextmanager
def explained_disk(path: Path) -> Iterator[None]:
    """Turn errors of the disk into failures.

    Raises:
        Failure: the disk is full, or fails.
    """
    try:
        yield
    except OSError as error:
        where = error.filename or path
        words = (error.strerror or str(error)).lower()
        raise Failure(f"{where}: {words}", "mend it, and run the same command: it goes on from there") from None


def read_manifest(path: Path, name: str = MANIFEST) -> Manifest:
    """Return the manifest of a folder.

    Raises:
        Failure: the folder has no manifest, or this release cannot read it.
    """
    try:
        return Manifest.from_json((path / name).read_bytes())
    except FileNotFoundError:
        pass
    except NotADirectoryError:
        raise Failure(f"{path} is not a folder", "name the folder of an export") from None
    except NotAManifest as error:
        raise Failure(f"{path / name} {error}") from None
    if not path.exists():
        raise Failure(f"there is no folder {path}", "`barnabas topic export TOPIC DIR` makes one")
    if (path / UNFINISHED).exists():
        raise Failure(f"the export in {path} is not finished", "run its `barnabas topic export` again: it goes on")
    raise Failure(
        f"folder {path} is not an export: it has no {MANIFEST}", "`barnabas topic export TOPIC DIR` makes one"
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failure(f"another export writes folder {path}", "wait for it, or name another folder") from None
        yield
    finally:
        os.close(descriptor)


def _sync(path: Path) -> None:
    """Sync the names in a folder, where the system can."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # some file systems cannot
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
