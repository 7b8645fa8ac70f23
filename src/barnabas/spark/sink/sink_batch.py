"""A batch of the sink, and what its tasks report of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.client.producer_transactions import Transaction


@dataclass(frozen=True, slots=True)
class SinkBatch:
    """A batch: the sink's name with Spark's query, run and batch ids; a batch write has no run."""

    name: str
    query: str
    run: str
    batch: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """The result of a task.

    Attributes:
        transaction: its open transaction, None if it had no rows.
        two_phase: whether the transaction has no timeout.
        digest: of its rows; tasks' digests add up to the batch's.
    """

    transaction: Transaction | None
    rows: int
    two_phase: bool = False
    digest: int = 0


def transactions_of(prepared: Iterable[Prepared]) -> list[Transaction]:
    """Return the transactions of a batch, sorted."""
    return sorted(each.transaction for each in prepared if each.transaction is not None)


def totals(prepared: Iterable[Prepared]) -> tuple[int, int]:
    """Return the count and the digest of a batch's rows."""
    tasks = list(prepared)
    return sum(each.rows for each in tasks), sum(each.digest for each in tasks) % 2**64


def is_two_phase(prepared: Iterable[Prepared]) -> bool:
    """Return whether no transaction of a batch has a timeout."""
    return all(each.two_phase for each in prepared if each.transaction is not None)


def taken_over(batch: SinkBatch, two_phase: bool) -> str:
    """Return what the user reads when a transaction of a batch ended under it."""
    reason = f"another write or driver of {batch.name} took over while batch {batch.batch} was written"
    if not two_phase:
        reason += (
            ", or its transactions outlived kafka.transaction.timeout.ms (then raise it, and the brokers'"
            " transaction.max.timeout.ms, or make batches smaller)"
        )
    return f"{reason}. Two must not overlap. Nothing of this batch is visible; run it again afterwards"
