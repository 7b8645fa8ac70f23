"""The errors of claims and payloads; each message is a sentence for the user.

ClaimError
├── NoClaims        a sweep found old payloads and no claim: is the store that of another cluster?
├── PayloadError    a record's payload is gone or damaged, or its claim is not valid: to try again is useless
└── StoreError      the store does not answer or refuses: try again
"""

from __future__ import annotations


class ClaimError(Exception):
    """A value cannot be stored or loaded."""


class StoreError(ClaimError):
    """The store does not answer, refuses a request, or cannot be opened."""


class NoClaims(ClaimError):
    """A sweep found old payloads and no record with a claim; it deleted nothing."""


class PayloadError(ClaimError):
    """The payload of a record is gone or damaged, or the record's claim is not valid.

    Attributes:
        topic: None if the reader does not know it; so are the next two.
        partition: of the record.
        offset: of the record.
        uri: the payload; None if the claim names none.
        reason: what is wrong, without the place.
    """

    def __init__(
        self, topic: str | None, partition: int | None, offset: int | None, uri: str | None, reason: str
    ) -> None:
        where = "a record" if topic is None else f"{topic}-{partition}@{offset}"
        super().__init__(
            f"the claim of {where} is not valid: {reason}" if uri is None else f"the payload of {where} {reason}: {uri}"
        )
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.uri = uri
        self.reason = reason

    def __reduce__(self) -> tuple[type[PayloadError], tuple[str | None, int | None, int | None, str | None, str]]:
        return PayloadError, (self.topic, self.partition, self.offset, self.uri, self.reason)
