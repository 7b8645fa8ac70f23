"""Opens the store of a URI."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from barnabas.claims.errors import StoreError
from barnabas.claims.folder_store import FolderStore
from barnabas.claims.object_store import ObjectStore
from barnabas.claims.payload_store import PayloadStore
from barnabas.words.printable import printable


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
        if parts.netloc not in ("", "localhost"):
            raise StoreError(f"'{printable(uri)}' names the host {printable(parts.netloc)}: write file:///FOLDER")
        if options:
            raise StoreError(f"{printable(uri)} is a folder, and takes no options of an object store")
        return FolderStore(unquote(parts.path) if parts.scheme else uri)
    return ObjectStore(uri, options or {})
