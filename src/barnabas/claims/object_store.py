"""Payloads as the objects of a bucket, through obstore.

Each payload is one request: the object is there as a whole or not at all, and durable when the store has answered.
Multipart uploads are not used, because a kill would leave parts that no listing shows and that cost money; so a payload
has at most 5 GiB, S3's limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from barnabas.claims.errors import StoreError
from barnabas.claims.payload_store import PayloadStore, Stored, WrongSize
from barnabas.words.printable import on_one_line, printable
from barnabas.words.requirements import needed_by

_OF_THE_CLIENT = ("allow_http", "aws_allow_http")
"""deltalake has these names among the store's options, and obstore among the client's."""

_CODE = re.compile(r"<Code>(\w+)</Code>")


class ObjectStore(PayloadStore):
    """A place in an object store.

    Args:
        uri: `s3://BUCKET/PREFIX`, or another one that obstore knows.
        options: obstore's settings of this kind of store; `allow_http=true` allows one without TLS.

    Raises:
        StoreError: the URI or an option is not valid.
        NotInstalled: obstore is missing.
    """

    def __init__(self, uri: str, options: Mapping[str, str]) -> None:
        with needed_by("an object store of payloads", "claims"):
            import obstore
            import obstore.exceptions
            import obstore.store
        self._obstore = obstore
        self._absent = (obstore.exceptions.NotFoundError, FileNotFoundError)
        self._refused = (obstore.exceptions.BaseError, OSError)
        self.uri = uri.rstrip("/")
        settings: Any = {name: value for name, value in options.items() if name.lower() not in _OF_THE_CLIENT} or None
        is_plain = any(options.get(name, options.get(name.upper(), "")).lower() == "true" for name in _OF_THE_CLIENT)
        client: Any = {"allow_http": True} if is_plain else None
        try:
            self._store: Any = obstore.store.from_url(self.uri, config=settings, client_options=client)
        except (*self._refused, ValueError, TypeError) as error:
            raise StoreError(f"the store {printable(uri)} cannot be opened: {_words(error)}") from error

    def __repr__(self) -> str:
        return f"<ObjectStore {self.uri}>"

    def put(self, path: str, payload: bytes, *, durable: bool = True) -> None:
        try:
            self._obstore.put(self._store, path, payload, use_multipart=False)
        except self._refused as error:
            raise self._failed("write", path, error) from error

    def get(self, path: str, size: int) -> bytes:
        try:
            found = self._obstore.get(self._store, path)
            if found.meta["size"] != size:
                raise WrongSize(found.meta["size"])
            return bytes(found.bytes())
        except self._absent:
            raise FileNotFoundError(path) from None
        except self._refused as error:
            raise self._failed("read", path, error) from error

    def stat(self, path: str) -> Stored | None:
        try:
            return _stored(self._obstore.head(self._store, path))
        except self._absent:
            return None
        except self._refused as error:
            raise self._failed("read", path, error) from error

    def list(self, prefix: str) -> Iterator[Stored]:
        try:
            for some in self._obstore.list(self._store, f"{prefix}/", chunk_size=1000):
                yield from map(_stored, some)
        except self._refused as error:
            raise self._failed("list", prefix, error) from error

    def delete(self, path: str) -> None:
        try:
            self._obstore.delete(self._store, path)
        except self._absent:
            pass
        except self._refused as error:
            raise self._failed("delete", path, error) from error

    def _failed(self, verb: str, path: str, error: Exception) -> StoreError:
        return StoreError(f"cannot {verb} {printable(path)} in {printable(self.uri)}: {_words(error)}")


def _stored(found: Any) -> Stored:
    modified_s = int(found["last_modified"].timestamp())
    # A listing may know the time to a millisecond where a single answer has seconds, and each may write the ETag in its
    # own way. Seconds are enough: a sweep compares with a payload that is older than its grace.
    return Stored(found["path"], found["size"], modified_s * 1000, str(modified_s))


def _words(error: Exception) -> str:
    """Return the first line of an error, and the store's own code: the other lines are Rust's, or XML."""
    text = str(error)
    first = next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
    first = first.partition(": <?xml")[0]
    if first.endswith("builder error"):
        return "its address has no TLS, which needs the option allow_http=true"
    code = _CODE.search(text)
    return on_one_line(printable(first + (f" ({code[1]})" if code else "")))[:500]
