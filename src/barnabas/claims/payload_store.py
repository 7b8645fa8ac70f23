"""A store of payloads: the operations that a folder and an object store have alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple


class Stored(NamedTuple):
    """A payload, or another file, in a store.

    Attributes:
        path: below the store's root, its parts separated by `/`.
        size: bytes.
        modified_ms: when it was written last, by the store's clock; milliseconds since 1970.
        version: another one after each write, in an object store after each write in a later second.
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


class PayloadStore(ABC):
    """A folder or a part of a bucket. Every method raises StoreError if the store does not answer or refuses.

    Attributes:
        uri: the store's root, for messages.
    """

    uri: str

    @abstractmethod
    def put(self, path: str, payload: bytes, *, durable: bool = True) -> None:
        """Write the whole payload or nothing, over what is there.

        Args:
            path: below the root.
            payload: to write.
            durable: return when it survives a power cut.
        """

    @abstractmethod
    def get(self, path: str, size: int) -> bytes:
        """Return a payload of this size.

        Raises:
            FileNotFoundError: nothing is there.
            WrongSize: it has another size.
        """

    @abstractmethod
    def stat(self, path: str) -> Stored | None:
        """Return what is at a path; None if nothing is there."""

    @abstractmethod
    def list(self, prefix: str) -> Iterator[Stored]:
        """Yield everything below a prefix, in any order."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Delete what is at a path, if anything is."""
