"""Payloads as the files of a folder.

    ROOT/CLUSTER/TOPIC/NAME                 a payload
    ROOT/CLUSTER/TOPIC/condemned/NAME       a marker of a sweep, empty
    ROOT/CLUSTER/TOPIC/unfinished/RANDOM    a payload that is being written

A payload is written to `unfinished`, synced, and renamed; then its folder is synced. What a kill or a power cut leaves:

- before the rename: a file in `unfinished`. No claim names it; a sweep deletes it after the grace;
- between the rename and the sync of the folder: the payload, or nothing after a power cut. Its record was not sent yet;
- after that: the payload. Folders are synced up to the root before the first payload in them counts.

A file is never changed in place, so a reader has the whole payload or none.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from barnabas.claims.claim import UNFINISHED
from barnabas.claims.errors import StoreError
from barnabas.claims.payload_store import PayloadStore, Stored, WrongSize
from barnabas.words.printable import printable

_NOT_A_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has none


class FolderStore(PayloadStore):
    """A folder that exists.

    Args:
        root: the folder.
        new_name: returns a name that no other file has.

    Raises:
        StoreError: it does not exist. It is not created: a file system that is not mounted must not become a folder of
            its name.
    """

    def __init__(self, root: str | Path, new_name: Callable[[], str] = lambda: uuid.uuid4().hex) -> None:
        self._root = Path(root).absolute()
        self.uri = self._root.as_uri()
        self._new_name = new_name
        self._synced: set[Path] = set()
        if not self._root.is_dir():
            raise StoreError(f"the folder {printable(str(self._root))} of the store does not exist: create it")

    def __repr__(self) -> str:
        return f"<FolderStore {self._root}>"

    def put(self, path: str, payload: bytes, *, durable: bool = True) -> None:
        target = self._root / path
        unfinished = self._root.joinpath(*path.split("/")[:2], UNFINISHED, self._new_name())
        try:
            try:
                file = self._created(unfinished, target.parent)
                with os.fdopen(file, "wb") as stream:
                    stream.write(payload)
                    stream.flush()
                    if durable:
                        os.fsync(stream.fileno())
                os.replace(unfinished, target)
            except BaseException:
                unfinished.unlink(missing_ok=True)
                raise
            if durable:
                _sync(target.parent)
        except OSError as error:
            raise self._failed("write", path, error) from error

    def get(self, path: str, size: int) -> bytes:
        try:
            # A payload is a file of its own: a link could lead out of the store.
            with os.fdopen(os.open(self._root / path, os.O_RDONLY | _NOT_A_LINK), "rb") as stream:
                found = os.fstat(stream.fileno()).st_size
                if found != size:
                    raise WrongSize(found)
                return stream.read()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._failed("read", path, error) from error

    def stat(self, path: str) -> Stored | None:
        try:
            found = os.stat(self._root / path, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed("read", path, error) from error
        return Stored(path, found.st_size, found.st_mtime_ns // 1_000_000, f"{found.st_ino} {found.st_mtime_ns}")

    def list(self, prefix: str) -> Iterator[Stored]:
        def stop(error: OSError) -> None:
            # The folder of a topic without payloads, or a folder that is gone since its parent was read.
            if not isinstance(error, FileNotFoundError):
                raise self._failed("list", prefix, error) from error

        for folder, _, names in os.walk(self._root / prefix, onerror=stop):
            below = Path(folder).relative_to(self._root).as_posix()
            for name in names:
                found = self.stat(f"{below}/{name}")
                if found is not None:
                    yield found

    def delete(self, path: str) -> None:
        try:
            (self._root / path).unlink(missing_ok=True)
        except OSError as error:
            raise self._failed("delete", path, error) from error

    def _created(self, unfinished: Path, folder: Path) -> int:
        """Create the file, and what folders it needs, each durable."""
        if folder not in self._synced or not unfinished.parent.is_dir():
            for each in (unfinished.parent, folder):
                each.mkdir(parents=True, exist_ok=True)
            above = folder
            while above != self._root:
                above = above.parent
                _sync(above)
            self._synced.add(folder)
        return os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)

    def _failed(self, verb: str, path: str, error: OSError) -> StoreError:
        return StoreError(f"cannot {verb} {printable(path)} in {self.uri}: {error.strerror or error}")


def _sync(folder: Path) -> None:
    if os.name == "nt":  # Windows opens no folder; NTFS has a journal for names
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
