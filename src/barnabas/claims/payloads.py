"""Stores one payload and returns its claim; loads the payload of a claim and compares it."""

from __future__ import annotations

from barnabas.claims.claim import Claim, NotAClaim, digest, marker_of
from barnabas.claims.errors import PayloadError, StoreError
from barnabas.claims.payload_store import PayloadStore, WrongSize

THRESHOLD_BYTES = 512 * 1024
"""From this size on a value goes to the store: half of a topic's default `max.message.bytes`, 1,048,588,
which leaves room for key and headers, and for a second record in the batch."""
_NAMES = 100

Place = tuple[str | None, int | None, int | None]
"""Topic, partition and offset of a record, for errors."""


def store_payload(store: PayloadStore, prefix: str, payload: bytes) -> Claim:
    """Store a payload below a prefix, and return its claim when the payload is durable.

    The record must be in the log within the grace of the sweeps.

    Raises:
        StoreError: the store does not take it.
    """
    sha256 = digest(payload)
    for number in range(_NAMES):
        path = f"{prefix}/{sha256}-{number}" if number else f"{prefix}/{sha256}"
        store.put(path, payload)
        # After the payload, never before: a sweep writes its marker, and then looks whether the payload was written
        # again.
        if store.stat(marker_of(path)) is None:
            return Claim(path, len(payload), sha256)
    raise StoreError(f"sweeps have condemned {_NAMES} names of the payload {prefix}/{sha256} in {store.uri}")


def load_payload(store: PayloadStore, claim: Claim, place: Place = (None, None, None)) -> bytes:
    """Return the payload of a claim.

    Raises:
        PayloadError: it is gone or damaged.
        StoreError: the store does not answer.
    """
    uri = f"{store.uri}/{claim.path}"
    try:
        payload = store.get(claim.path, claim.size)
    except FileNotFoundError:
        raise PayloadError(*place, uri, "is gone") from None
    except WrongSize as error:
        raise PayloadError(*place, uri, f"is damaged, it has {error.size} bytes instead of {claim.size}") from None
    if digest(payload) != claim.sha256:
        raise PayloadError(*place, uri, "is damaged, it has another SHA-256 than its claim")
    return payload


def not_valid(error: NotAClaim, place: Place) -> PayloadError:
    """Return the error of a record whose claim cannot be read."""
    return PayloadError(*place, None, str(error))
