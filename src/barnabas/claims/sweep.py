"""The sweep: deletes the payloads that no record of some topics names. `barnabas.claims` has the argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from barnabas.claims.claim import CONDEMNED, UNFINISHED, NotAClaim, is_payload_name, marker_of, parse_claim
from barnabas.claims.errors import ClaimError, NoClaims
from barnabas.claims.payload_store import PayloadStore, Stored
from barnabas.claims.payloads import not_valid

SHORTEST_GRACE_MS = 600_000
"""Twice librdkafka's `message.timeout.ms` of 300 s: by then a stored payload's record is in the log, or will never be."""

TopicRecord = tuple[str, int, int, Sequence[tuple[str, bytes | None]], bytes | None]
"""Topic, partition, offset, headers, value."""


class Kind(Enum):
    """The kinds of files below a topic's prefix."""

    PAYLOAD = "payload"
    MARKER = "marker"
    UNFINISHED = "unfinished"
    OTHER = "other"


@dataclass
class Swept:
    """The counts of a sweep; a dry run counts as deleted what it would delete.

    Attributes:
        records: read.
        claims: among them.
        invalid_claims: records with the mark whose claim cannot be read by any version; they keep no payload.
        payloads: in the store below the topics' prefixes, when the sweep began.
        young: payloads that are not older than the grace.
        named: older payloads in a record's claim.
        spared: older payloads, stored again, or deleted by another sweep, while this sweep worked.
        deleted: payloads.
        deleted_bytes: their size.
        unfinished: files deleted that a killed producer left.
        others: files that are not of this store's making; they stay.
    """

    records: int = 0
    claims: int = 0
    invalid_claims: int = 0
    payloads: int = 0
    young: int = 0
    named: int = 0
    spared: int = 0
    deleted: int = 0
    deleted_bytes: int = 0
    unfinished: int = 0
    others: int = 0


@dataclass
class _Listing:
    """The files of the store below the prefixes, by kind."""

    paths: set[str] = field(default_factory=set)
    candidates: dict[str, Stored] = field(default_factory=dict)
    left_over: list[Stored] = field(default_factory=list)
    markers: list[Stored] = field(default_factory=list)


def sweep(
    store: PayloadStore,
    prefixes: Iterable[str],
    records: Callable[[], Iterator[TopicRecord]],
    *,
    now_ms: int,
    grace_ms: int,
    elapsed_ms: Callable[[], float],
    without_claims: bool = False,
    dry_run: bool = False,
    swept: Swept | None = None,
) -> Swept:
    """Delete the payloads below the prefixes that no record names and that are older than the grace.

    Args:
        store: the payloads.
        prefixes: those of the topics (`claim.prefix_of`).
        records: called once, after the payloads were listed: asks where the logs end, and yields all records before
            there. It must yield those of every topic that may have claims of these prefixes, and of transactions that
            are open or aborted.
        now_ms: the time, milliseconds since 1970.
        grace_ms: longer than a producer takes from the payload to the record in the log.
        elapsed_ms: milliseconds since `now_ms` was read, from a clock that no one sets.
        without_claims: delete also if no record has a claim, which looks like another cluster's store.
        dry_run: only count.
        swept: the counts, for a caller that shows them meanwhile.

    Raises:
        ClaimError: a claim is of a newer format, so that its payload is unknown; or the sweep took longer than the
            grace.
        NoClaims: no record has a claim.
        StoreError: the store does not answer. What is deleted stays deleted, and the next sweep does the rest.
    """
    swept = Swept() if swept is None else swept
    listing = _listed(store, prefixes, now_ms - grace_ms, swept)
    for topic, partition, offset, headers, value in records():
        swept.records += 1
        try:
            claim = parse_claim(headers, value)
        except NotAClaim as error:
            if error.is_newer:
                raise ClaimError(f"{not_valid(error, (topic, partition, offset))}; nothing was deleted") from None
            swept.invalid_claims += 1
            continue
        if claim is not None:
            swept.claims += 1
            if listing.candidates.pop(claim.path, None) is not None:
                swept.named += 1
    if swept.claims and not swept.payloads:
        return swept  # another store, most likely: the caller says so
    if listing.candidates and not swept.claims and not without_claims:
        raise NoClaims(
            f"there is no claim in {swept.records:,} records, and the store has {len(listing.candidates):,} old payloads:"
            " is it another cluster's? Nothing was deleted"
        )

    def delete(path: str) -> None:
        if elapsed_ms() > grace_ms:
            raise ClaimError("the sweep took longer than its grace and stopped: run it again with a longer one")
        if not dry_run:
            store.delete(path)

    for found in listing.candidates.values():
        if not dry_run and not _is_condemned(store, found):
            swept.spared += 1
            continue
        delete(found.path)
        swept.deleted += 1
        swept.deleted_bytes += found.size
    for found in listing.left_over:
        delete(found.path)
        swept.unfinished += 1
    for found in listing.markers:
        # The marker of a payload that is there may be needed: another sweep may have renewed it.
        if _of_marker(found.path) not in listing.paths:
            delete(found.path)
    return swept


def _listed(store: PayloadStore, prefixes: Iterable[str], before_ms: int, swept: Swept) -> _Listing:
    listing = _Listing()
    for prefix in prefixes:
        for found in store.list(prefix):
            is_old = found.modified_ms < before_ms
            match kind_of(prefix, found.path):
                case Kind.PAYLOAD:
                    swept.payloads += 1
                    listing.paths.add(found.path)
                    if is_old:
                        listing.candidates[found.path] = found
                    else:
                        swept.young += 1
                case Kind.MARKER if is_old:
                    listing.markers.append(found)
                case Kind.UNFINISHED if is_old:
                    listing.left_over.append(found)
                case Kind.OTHER:
                    swept.others += 1
    return listing


def _is_condemned(store: PayloadStore, found: Stored) -> bool:
    """Announce that a payload will be deleted; return whether it is still as it was listed."""
    store.put(marker_of(found.path), b"", durable=False)
    # After the marker, never before: a producer that writes the payload later sees the marker, and takes another name.
    now = store.stat(found.path)
    return now is not None and now.version == found.version


def kind_of(prefix: str, path: str) -> Kind:
    """Return what a path below a prefix is."""
    match path.removeprefix(f"{prefix}/").split("/"):
        case [name] if is_payload_name(name):
            return Kind.PAYLOAD
        case [folder, name] if folder == CONDEMNED and is_payload_name(name):
            return Kind.MARKER
        case [folder, _] if folder == UNFINISHED:
            return Kind.UNFINISHED
    return Kind.OTHER


def _of_marker(path: str) -> str:
    prefix, _, name = path.rpartition("/")
    return f"{prefix.rpartition('/')[0]}/{name}"
