"""One payload, stored and loaded."""

from __future__ import annotations

import pytest

from barnabas.claims.claim import Claim, digest, marker_of
from barnabas.claims.errors import PayloadError, StoreError
from barnabas.claims.payloads import load_payload, store_payload
from tests.claims.memory_store import MemoryStore

PLACE = ("videos", 0, 17)


def test_a_payload_comes_back_and_has_one_name() -> None:
    store = MemoryStore()
    claim = store_payload(store, "c/videos", b"payload")
    assert claim == Claim(f"c/videos/{digest(b'payload')}", 7, digest(b"payload"))
    assert load_payload(store, claim, PLACE) == b"payload"
    assert store_payload(store, "c/videos", b"payload") == claim
    assert len(store.files) == 1


def test_a_condemned_name_is_not_taken() -> None:
    store = MemoryStore()
    name = f"c/videos/{digest(b'payload')}"
    store.put(marker_of(name), b"")
    claim = store_payload(store, "c/videos", b"payload")
    assert claim.path == f"{name}-1"
    assert load_payload(store, claim) == b"payload"
    for number in range(1, 100):
        store.put(marker_of(f"{name}-{number}"), b"")
    with pytest.raises(StoreError, match="sweeps have condemned 100 names of the payload"):
        store_payload(store, "c/videos", b"payload")


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        (None, "is gone"),
        (b"", "is damaged, it has 0 bytes instead of 7"),
        (b"payloaD", "is damaged, it has another SHA-256 than its claim"),
    ],
)
def test_a_payload_that_is_gone_or_damaged(there: bytes | None, reason: str) -> None:
    store = MemoryStore()
    claim = store_payload(store, "c/videos", b"payload")
    store.delete(claim.path)
    if there is not None:
        store.put(claim.path, there)
    with pytest.raises(PayloadError) as found:
        load_payload(store, claim, PLACE)
    error = found.value
    assert str(error) == f"the payload of videos-0@17 {reason}: memory://store/{claim.path}"
    assert (error.topic, error.partition, error.offset, error.reason) == (*PLACE, reason)
