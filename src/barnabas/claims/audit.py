"""The audit: finds the claims whose payload is gone or damaged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from barnabas.claims.claim import NotAClaim, parse_claim
from barnabas.claims.errors import PayloadError
from barnabas.claims.payload_store import PayloadStore
from barnabas.claims.payloads import Place, load_payload, not_valid
from barnabas.claims.sweep import TopicRecord

_LISTED = 1000
"""Errors that are kept; the others are only counted."""


@dataclass
class Audited:
    """The counts of an audit, and the errors that it found.

    Attributes:
        records: read.
        claims: among them, those that cannot be read too.
        payload_bytes: the size of the payloads that are whole.
        wrong: claims whose payload is gone or damaged, and claims that cannot be read.
        errors: the first of them.
    """

    records: int = 0
    claims: int = 0
    payload_bytes: int = 0
    wrong: int = 0
    errors: list[PayloadError] = field(default_factory=list)


def audit(
    store: PayloadStore, records: Iterator[TopicRecord], *, sizes_only: bool = False, audited: Audited | None = None
) -> Audited:
    """Check the payload of each claim.

    Args:
        store: the payloads.
        records: of topics.
        sizes_only: do not read the payloads, so that a damaged one of the right size is not found.
        audited: the counts, for a caller that shows them meanwhile.

    Raises:
        StoreError: the store does not answer.
    """
    audited = Audited() if audited is None else audited
    for topic, partition, offset, headers, value in records:
        audited.records += 1
        place = topic, partition, offset
        try:
            claim = parse_claim(headers, value)
            if claim is None:
                continue
            audited.claims += 1
            if sizes_only:
                _check_size(store, claim.path, claim.size, place)
            else:
                load_payload(store, claim, place)
            audited.payload_bytes += claim.size
        except NotAClaim as error:
            audited.claims += 1
            _note(audited, not_valid(error, place))
        except PayloadError as error:
            _note(audited, error)
    return audited


def _check_size(store: PayloadStore, path: str, size: int, place: Place) -> None:
    found = store.stat(path)
    if found is None:
        raise PayloadError(*place, f"{store.uri}/{path}", "is gone")
    if found.size != size:
        raise PayloadError(*place, f"{store.uri}/{path}", f"is damaged, it has {found.size} bytes instead of {size}")


def _note(audited: Audited, error: PayloadError) -> None:
    audited.wrong += 1
    if len(audited.errors) < _LISTED:
        audited.errors.append(error)
