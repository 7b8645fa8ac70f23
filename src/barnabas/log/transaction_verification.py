"""Verifies, before a transaction's first batch, that the transaction includes this partition.

    Produce ─► begin_verification ─► guard ─► the transaction coordinator answers ─► append with the guard

A transactional batch may only be appended if the transaction coordinator knows that the partition is in the open transaction.
Otherwise the coordinator would never write the marker that ends it here, and the last stable offset would stay for ever ("hanging
transaction"), or a late retry of one transaction would become part of the next. Two things prove it:

- an open transaction of this producer and epoch in this log: its first batch was verified, and its marker is still to come;
- a *guard*, an object made when the verification began. It is good once: an append or a marker discards it, so that a response
  about an earlier transaction proves nothing (the ABA problem).

During a verification the smallest sequence is kept: when a lower batch has to be retried, a higher one must not overtake it.

Not durable: after a restart the producer's next batch is verified again, or belongs to a transaction that the log knows. A truncation and
the loss of leadership discard every verification, which knew events that the log may have lost, or has missed; Kafka keeps them.

Source: Kafka's `VerificationGuard`, `VerificationStateEntry`; KIP-890.
"""

from __future__ import annotations


class VerificationGuard:
    """The proof that a verification began after all earlier events in the log; compared by identity."""

    __slots__ = ()


class Verification:
    """A producer's verification in one log.

    Attributes:
        supports_epoch_bump: the client uses transaction version 2, which begins each transaction with sequence 0.
        lowest_sequence: of the batches of this epoch that are being verified.
        since_ms: when it began; unused verifications expire as producers do.
    """

    __slots__ = ("epoch", "guard", "lowest_sequence", "since_ms", "supports_epoch_bump")

    def __init__(self, since_ms: int, sequence: int, epoch: int, supports_epoch_bump: bool) -> None:
        self.since_ms = since_ms
        self.guard = VerificationGuard()
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.supports_epoch_bump = supports_epoch_bump

    def __repr__(self) -> str:
        return f"<Verification epoch={self.epoch} lowest_sequence={self.lowest_sequence}>"

    def note(self, sequence: int, epoch: int) -> None:
        """Add another batch to the verification; a newer epoch starts it again."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence
