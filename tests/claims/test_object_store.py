"""Payloads in an object store on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.claims.claim import marker_of
from barnabas.claims.errors import PayloadError, StoreError
from barnabas.claims.payload_store import PayloadStore, WrongSize
from barnabas.claims.payloads import load_payload, store_payload
from barnabas.claims.store import open_store
from barnabas.claims.sweep import sweep
from tests.hidden_packages import hide
from tests.spark.object_store import KEYS, client_of, object_store

OPTIONS = {
    "allow_http": "true",
    "aws_region": "us-east-1",
    "aws_access_key_id": KEYS[0],
    "aws_secret_access_key": KEYS[1],
}


def test_an_option_or_a_uri_that_is_not_valid_is_one_sentence() -> None:
    with pytest.raises(StoreError, match=r"^the store s3://b/p cannot be opened: .*nothing"):
        open_store("s3://b/p", {"nothing": "x"})
    with pytest.raises(StoreError, match="no TLS, which needs the option allow_http=true"):
        open_store("s3://b/p", {"aws_endpoint": "http://127.0.0.1:1", "aws_skip_signature": "true"}).put("c/t/x", b"")
    with pytest.raises(StoreError, match=r"^the store ftp://b/p cannot be opened: "):
        open_store("ftp://b/p")


def test_without_obstore_a_sentence_says_what_to_install(tmp_path: Path) -> None:
    hide(tmp_path, "obstore")
    done = subprocess.run(
        [sys.executable, "-m", "barnabas.main", "claims", "audit", "t", "--store", "s3://b/p", "-b", "localhost:1"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("error: ")) == (1, 1)
    assert "an object store of payloads needs obstore" in " ".join(done.stderr.split())
    assert "pip install" in done.stderr


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with object_store() as url:
        yield url


@pytest.fixture
def store(url: str) -> PayloadStore:
    return open_store("s3://lake/payloads/", {**OPTIONS, "aws_endpoint": url})


@pytest.mark.conform
def test_what_a_store_does(store: PayloadStore, url: str) -> None:
    payload = b"x" * (10 << 20)
    claim = store_payload(store, "c/t", payload)
    assert load_payload(store, claim) == payload
    found = store.stat(claim.path)
    assert found is not None
    assert (found.path, found.size) == (claim.path, len(payload))
    assert abs(found.modified_ms / 1000 - time.time()) < 120
    store.put("c/tt/name", b"")
    assert [each._replace(version="") for each in store.list("c/t")] == [found._replace(version="")]
    assert [each.version for each in store.list("c/t")] == [found.version]
    with pytest.raises(WrongSize):
        store.get(claim.path, 1)
    keys = [each["Key"] for each in client_of(url).list_objects_v2(Bucket="lake")["Contents"]]
    assert f"payloads/{claim.path}" in keys
    assert "Uploads" not in client_of(url).list_multipart_uploads(Bucket="lake")
    for _ in range(2):
        store.delete(claim.path)
    assert store.stat(claim.path) is None
    with pytest.raises(PayloadError, match=rf"is gone: s3://lake/payloads/{claim.path}$"):
        load_payload(store, claim)
    assert list(store.list("nothing")) == []


@pytest.mark.conform
def test_a_sweep_deletes_what_is_old(store: PayloadStore) -> None:
    orphan = store_payload(store, "c/swept", b"orphan")
    grace_ms = 600_000
    for later_ms, deleted in ((0, 0), (grace_ms + 60_000, 1)):
        now_ms = time.time_ns() // 1_000_000 + later_ms
        found = sweep(
            store,
            ["c/swept"],
            lambda: iter(()),
            now_ms=now_ms,
            grace_ms=grace_ms,
            elapsed_ms=lambda: 0,
            without_claims=True,
        )
        assert found.deleted == deleted
    assert [each.path for each in store.list("c/swept")] == [marker_of(orphan.path)]
    assert store_payload(store, "c/swept", b"orphan").path == f"{orphan.path}-1"


@pytest.mark.conform
def test_a_bucket_that_is_not_there_is_one_sentence(url: str) -> None:
    store = open_store("s3://nowhere/payloads", {**OPTIONS, "aws_endpoint": url})
    with pytest.raises(StoreError, match=r"^cannot write c/t/\w+ in s3://nowhere/payloads: .*NoSuchBucket"):
        store_payload(store, "c/t", b"x")
    with pytest.raises(StoreError, match=r"^cannot list c/t in s3://nowhere/payloads: "):
        list(store.list("c/t"))
