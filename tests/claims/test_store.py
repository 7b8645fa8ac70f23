"""Which store a URI names."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.claims.errors import StoreError
from barnabas.claims.object_store import ObjectStore
from barnabas.claims.store import open_store


def test_uris(tmp_path: Path) -> None:
    assert open_store(str(tmp_path)).uri == open_store(tmp_path.as_uri()).uri == tmp_path.as_uri()
    with pytest.raises(StoreError, match=r"the folder /no/where of the store does not exist: create it"):
        open_store("/no/where")
    with pytest.raises(StoreError, match="names the host host: write file:///FOLDER"):
        open_store("file://host/folder")
    with pytest.raises(StoreError, match="takes no options of an object store"):
        open_store(str(tmp_path), {"aws_endpoint": "x"})
    assert isinstance(open_store("s3://bucket/kafka", {"aws_region": "us-east-1"}), ObjectStore)
