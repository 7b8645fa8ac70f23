"""A producer that stores large values and sends claims."""

from __future__ import annotations

from typing import Any

from barnabas.claims.claim import Headers, marked, prefix_of
from barnabas.claims.payload_store import PayloadStore
from barnabas.claims.payloads import THRESHOLD_BYTES, store_payload
from barnabas.claims.store import open_store

_METADATA_SECONDS = 30.0


class ClaimProducer:
    """confluent-kafka's Producer, or anything with its `produce` and `list_topics`, whose large values go to a store.

    All other methods are the producer's own: `poll`, `flush`, those of transactions.

    Args:
        producer: sends the records. Its `message.timeout.ms` must be shorter than the grace of the sweeps.
        store: the store, or its URI.
        threshold: a value of so many bytes or more goes to the store.
        cluster: the name of the cluster in payloads' paths; None asks the producer for the cluster's id. The sweep
            needs the same one.

    Raises:
        StoreError: the store cannot be opened.
    """

    def __init__(
        self,
        producer: Any,
        store: PayloadStore | str,
        *,
        threshold: int = THRESHOLD_BYTES,
        cluster: str | None = None,
    ) -> None:
        self._producer = producer
        self._store = open_store(store) if isinstance(store, str) else store
        self._threshold = threshold
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def __len__(self) -> int:
        return len(self._producer)

    def produce(
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        *,
        headers: Headers | None = None,
        **options: Any,
    ) -> None:
        """Send a record; a large value is durable in the store before this hands the record to the producer.

        A delivery report has the claim as its value. If this raises, the same call may be made again.

        Args:
            topic: where to.
            value: what to send; a string is its UTF-8 bytes.
            key: never goes to the store.
            headers: must not have the mark of claims.
            options: those of the producer's `produce`.

        Raises:
            StoreError: the store does not take the value; nothing was sent.
            ValueError: a header marks a claim, or the cluster's id cannot be a part of a path.
            BufferError: the producer's queue is full: call `poll`, then this again.
        """
        payload = value.encode() if isinstance(value, str) else value
        if payload is not None and len(payload) >= self._threshold:
            claim = store_payload(self._store, prefix_of(self._cluster_of(topic), topic), payload)
            self._producer.produce(topic, claim.encoded(), key, headers=marked(headers), **options)
            return
        if headers:
            given = list(marked(headers)[:-1])
            self._producer.produce(topic, value, key, headers=given, **options)
        else:
            self._producer.produce(topic, value, key, **options)

    def _cluster_of(self, topic: str) -> str:
        if self._cluster is None:
            found = self._producer.list_topics(topic, timeout=_METADATA_SECONDS).cluster_id
            if not found:
                raise ValueError("the broker did not name its cluster: give ClaimProducer a cluster")
            self._cluster = str(found)
        return self._cluster
