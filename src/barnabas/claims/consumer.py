"""A consumer whose messages have the payloads of their claims."""

from __future__ import annotations

from typing import Any

from barnabas.claims.claim import Claim, NotAClaim, is_marked, parse_claim, without_mark
from barnabas.claims.payload_store import PayloadStore
from barnabas.claims.payloads import Place, load_payload, not_valid
from barnabas.claims.store import open_store


class ClaimedMessage:
    """A message with a claim, as it was before its value went to the store.

    `value` loads the payload when it is first called, `headers` are without the mark, and all other methods are the
    message's own.

    Attributes:
        raw: the message as the consumer returned it: its value is the claim.
    """

    def __init__(self, raw: Any, store: PayloadStore) -> None:
        self.raw = raw
        self._store = store
        self._payload: bytes | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)

    def __len__(self) -> int:
        return self.claim().size

    def __repr__(self) -> str:
        return f"<ClaimedMessage {self.raw.topic()}-{self.raw.partition()}@{self.raw.offset()}>"

    def claim(self) -> Claim:
        """Return the claim; this reads nothing from the store.

        Raises:
            PayloadError: it is not valid.
        """
        try:
            found = parse_claim(self.raw.headers(), self.raw.value())
        except NotAClaim as error:
            raise not_valid(error, self._place()) from None
        assert found is not None, "the consumer wraps only what is marked and has a value"
        return found

    def value(self) -> bytes:
        """Return the payload, which is compared with the claim's size and SHA-256 when it is loaded.

        Raises:
            PayloadError: it is gone or damaged, or the claim is not valid; names topic, partition, offset and URI.
            StoreError: the store does not answer: call this again.
        """
        if self._payload is None:
            self._payload = load_payload(self._store, self.claim(), self._place())
        return self._payload

    def headers(self) -> list[tuple[str, Any]] | None:
        """Return the headers that the producer was given; None if it was given none."""
        return without_mark(self.raw.headers()) or None

    def _place(self) -> Place:
        return self.raw.topic(), self.raw.partition(), self.raw.offset()


class ClaimConsumer:
    """confluent-kafka's Consumer, or anything with its `poll` and `consume`, whose messages have the payloads.

    All other methods are the consumer's own. A message without a claim is returned as it is.

    Args:
        consumer: reads the records.
        store: the store, or its URI.

    Raises:
        StoreError: the store cannot be opened.
    """

    def __init__(self, consumer: Any, store: PayloadStore | str) -> None:
        self._consumer = consumer
        self._store = open_store(store) if isinstance(store, str) else store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)

    def poll(self, *args: Any, **options: Any) -> Any:
        """Return the next message, as the consumer's `poll`; one with a claim is a ClaimedMessage."""
        return self._wrapped(self._consumer.poll(*args, **options))

    def consume(self, *args: Any, **options: Any) -> list[Any]:
        """Return the next messages, as the consumer's `consume`; a message's `value` loads its payload."""
        return [self._wrapped(each) for each in self._consumer.consume(*args, **options)]

    def commit(self, *args: Any, **options: Any) -> Any:
        """Commit, as the consumer's `commit`."""
        return self._consumer.commit(*map(_raw, args), **{name: _raw(value) for name, value in options.items()})

    def store_offsets(self, *args: Any, **options: Any) -> Any:
        """Store offsets to commit, as the consumer's `store_offsets`."""
        return self._consumer.store_offsets(*map(_raw, args), **{name: _raw(value) for name, value in options.items()})

    def _wrapped(self, message: Any) -> Any:
        if (
            message is None
            or message.error() is not None
            or message.value() is None
            or not is_marked(message.headers())
        ):
            return message
        return ClaimedMessage(message, self._store)


def _raw(value: Any) -> Any:
    return value.raw if isinstance(value, ClaimedMessage) else value
