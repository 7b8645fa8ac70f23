"""What a store of payloads can do, and which kind a URI names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from barnabas.claims.errors import StoreError
from barnabas.words.printable import printable


class Stored(NamedTuple):
    """What a store has at a path.

    Attributes:
        path: below the store's root, its parts separated by `/`.
        size: bytes.
        modified_ms: when it was written last, by the store's clock; milliseconds since 1970.
        version: another one after each write.
    """

    path: str
    size: int
    modified_ms: int
    version: str


class WrongSize(Exception):
    """A payload has another size than wanted.

    Attributes:
        size: its bytes.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


class PayloadStore(Protocol):
    """A folder or a part of a bucket. Every method raises StoreError if the store does not answer or refuses."""

    @property
    def uri(self) -> str:
        """The store's root, for messages."""

    def put(self, path: str, payload: bytes, *, durable: bool = True) -> None:
        """Write the whole payload or nothing; it replaces what is there. It is durable when this returns, unless it need not be."""

    def get(self, path: str, size: int) -> bytes:
        """Return a payload of this size.

        Raises:
            FileNotFoundError: nothing is there.
            WrongSize: it has another size.
        """

    def stat(self, path: str) -> Stored | None:
        """Return what is at a path; None if nothing is there."""

    def list(self, prefix: str) -> Iterator[Stored]:
        """Yield everything below a prefix, in any order."""

    def delete(self, path: str) -> None:
        """Delete what is at a path, if anything is."""


def open_store(uri: str, options: Mapping[str, str] | None = None) -> PayloadStore:
    """Return the store of a URI.

    Args:
        uri: a folder (`/srv/payloads`, `file:///srv/payloads`), which must exist, or a place in an object store
            (`s3://bucket/kafka`, `gs://…`, `az://…`), which needs the extra `claims`.
        options: what obstore needs to reach an object store, such as `aws_endpoint`; the variables of the environment
            (`AWS_ACCESS_KEY_ID`, …) count, too.

    Raises:
        StoreError: the folder does not exist, or the URI or an option is not valid.
        NotInstalled: an object store needs obstore.
    """
    parts = urlsplit(uri)
    if parts.scheme in ("", "file"):
        from barnabas.claims.folder_store import FolderStore

        if parts.netloc not in ("", "localhost"):
            raise StoreError(f"'{printable(uri)}' names the host {printable(parts.netloc)}: write file:///FOLDER")
        if options:
            raise StoreError(f"{printable(uri)} is a folder, and takes no options of an object store")
        return FolderStore(unquote(parts.path) if parts.scheme else uri)
    from barnabas.claims.object_store import ObjectStore

    return ObjectStore(uri, options or {})
