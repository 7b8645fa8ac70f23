"""What a producer is to the checker, and how it may fail.

The three failures decide what a history says of an operation, so a producer raises the most careful one that it is sure of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

TopicPartition = tuple[str, int]


class ProducerError(Exception):
    """Something did not work."""


class Abortable(ProducerError):
    """The transaction can only be aborted; the producer lives on."""


class Refused(ProducerError):
    """It certainly did not happen, and this producer is finished: fenced, for instance."""


class Unknown(ProducerError):
    """Nobody knows whether it happened."""


class Producer(Protocol):
    """One producer. Without a transactional id, only `send`, `flush` and `close` are used.

    Every call ends within the timeout the producer was made with.
    """

    def begin(self) -> None:
        """Begins a transaction."""

    def send(self, topic: str, partition: int, value: bytes) -> None:
        """Sends a record, or queues it.

        Raises:
            ProducerError: it is in no log, unless the error says Unknown.
        """

    def flush(self) -> list[int | None]:
        """Waits until everything sent since the last flush is acknowledged.

        Returns:
            The offsets in the order sent; None for an acknowledgement that does not tell.

        Raises:
            Abortable: in a transaction.
            Refused, Unknown: otherwise.
        """

    def send_offsets(self, positions: Mapping[TopicPartition, int], group_metadata: bytes) -> None:
        """Adds a group's offsets to the transaction.

        Args:
            group_metadata: what confluent-kafka's `Consumer.consumer_group_metadata` gives.

        Raises:
            Abortable, Refused
        """

    def commit(self) -> None:
        """Commits.

        Raises:
            Abortable: it is not committed yet, and cannot be.
            Refused, Unknown
        """

    def abort(self) -> None:
        """Aborts.

        Raises:
            Refused, Unknown: the transaction is not committed in either case, since nobody asked for it.
        """

    def close(self) -> None:
        """Lets go of everything, without a goodbye to the broker."""
