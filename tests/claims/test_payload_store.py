"""The operations of a store, the same in each kind of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.claims.folder_store import FolderStore
from barnabas.claims.payload_store import PayloadStore, WrongSize
from barnabas.claims.store import open_store
from tests.claims.memory_store import MemoryStore
from tests.spark.object_store import KEYS, object_store


@pytest.fixture(params=["memory", "folder", pytest.param("s3", marks=pytest.mark.conform)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PayloadStore]:
    if request.param == "memory":
        yield MemoryStore()
    elif request.param == "folder":
        yield FolderStore(tmp_path)
    else:
        keys = {"aws_access_key_id": KEYS[0], "aws_secret_access_key": KEYS[1]}
        with object_store() as url:
            options = {**keys, "aws_endpoint": url, "aws_region": "us-east-1", "allow_http": "true"}
            yield open_store("s3://lake/kafka", options)


def test_a_payload_is_written_whole_and_replaced(store: PayloadStore) -> None:
    store.put("c/t/name", b"one")
    first = store.stat("c/t/name")
    assert first is not None
    assert (first.path, first.size) == ("c/t/name", 3)
    assert store.get("c/t/name", 3) == b"one"
    with pytest.raises(WrongSize) as wrong:
        store.get("c/t/name", 4)
    assert wrong.value.size == 3
    store.put("c/t/name", b"two")
    assert store.get("c/t/name", 3) == b"two"
    again = store.stat("c/t/name")
    assert again is not None
    assert again.modified_ms >= first.modified_ms


def test_a_list_has_all_below_a_prefix_and_no_other(store: PayloadStore) -> None:
    for path in ("c/t/name", "c/t/condemned/name", "c/tt/name", "c/other/name"):
        store.put(path, b"", durable=False)
    assert sorted(each.path for each in store.list("c/t")) == ["c/t/condemned/name", "c/t/name"]
    assert [each for each in store.list("c/t") if each.path == "c/t/name"] == [store.stat("c/t/name")]
    assert len(list(store.list("c"))) == 4
    assert list(store.list("c/nothing")) == []


def test_what_is_absent(store: PayloadStore) -> None:
    store.put("c/t/name", b"one")
    for _ in range(2):
        store.delete("c/t/name")
    assert store.stat("c/t/name") is None
    with pytest.raises(FileNotFoundError):
        store.get("c/t/name", 3)
