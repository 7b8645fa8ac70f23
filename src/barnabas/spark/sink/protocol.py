"""The driver's part of exactly-once writing: it decides which transactions of a batch count, and ends them.

    task    begins a transaction of its own, writes its rows, and leaves the transaction open
    driver  1  claims the sink, which fences every other driver of the same query, and leaves a record
            2  reads the last decision before that record, which a leader that was deposed does not have; if it is this batch, 5 for its transactions, and abort the new ones;
               then an error if the rows differ from those that were written
            3  lists the sink's open transactions: those of this batch must be among them
            4  writes the decision: query, batch, transactions
            5  commits them, and notes that this is done
            6  aborts what is left over: attempts that died, tasks that were lost

Spark repeats a batch, with the same query and batch id, until the commit of that batch returned. What a crash leaves:

| killed                        | open             | what the repeated batch does                                 |
|-------------------------------|------------------|--------------------------------------------------------------|
| in a task, or before 4        | transactions     | writes again; its own decision; aborts the old ones (6)      |
| in 4, before its commit       | one of 4, too    | the same; the claim aborts the record (1)                    |
| after 4, before or in 5       | decided ones     | writes again, finds the decision, commits it, aborts its own |
| in 5, before it is noted      | perhaps left-over| the same, and every commit repeats one that succeeded        |
| after 5, before Spark's log   | perhaps left-over| the same, and nothing is committed again                     |

Why no decided transaction is ever aborted, and no undecided one committed:

- A transactional id belongs to one Python worker. A transaction has an epoch that no other transaction has, and
  every driver ends it by this pair. So a zombie, a second attempt of a task, or a speculative one cannot touch it.
- A worker uses an id again two batches later, so that an EndTxn for the last decision can be repeated at any time.
- A transaction found in 3 is of this batch or an earlier one: a later batch exists only if this batch was decided, and
  then 2 has seen it. 4 succeeds only if no driver claimed between. So 6 aborts nothing that a driver may still decide.
- A batch that is noted as done asks nobody: its ids may have expired. One that is not noted repeats its commits. If an
  id has expired then, its transaction was committed, or aborted by its timeout; without a timeout, it was committed.
- Else only the broker aborts, after `transaction.timeout.ms`. With two-phase commit it never does.

The sink's name contains the query's id, so that two queries never share a record or a transactional id.

Limits: a batch older than the last decision is an error, because the log no longer tells whether its rows are there. A batch
without rows has no decision, but for a stream's batch 0: if none is found later, the topic was deleted. The
transactions of one batch are committed one after the other, not at one instant.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from barnabas.client.cluster import Cluster
from barnabas.client.patience import insist
from barnabas.client.producer_transactions import Transaction, end_transactions
from barnabas.client.transactions import describe_transactions, list_transactions
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.spark.plain_errors import QueryError
from barnabas.spark.sink.decision_scan import done_key
from barnabas.spark.sink.decisions import TOPIC, Decision, DecisionLog, new_token
from barnabas.words.printable import printable

logger = logging.getLogger("barnabas.spark")

_FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE)
SEPARATOR = "/"
"""Between the sink's name and the rest of a task's transactional id; a sink's name has none."""
_CLAIMS = 5
"""So often a driver that was fenced looks again: another one, of a run that is ending, may be at the same batch."""


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


class SinkDriver:
    """Ends the transactions of one batch.

    Args:
        timeout_ms: each request is repeated so long; brokers may move or restart meanwhile.
        topic: where every row goes; None if the column `topic` says so.
        fail_on_different: a repeated batch whose rows differ is an error; else a warning, and its rows are dropped.
        new_token: returns bytes that no other claim has.
    """

    def __init__(
        self,
        cluster: Cluster,
        batch: SinkBatch,
        timeout_ms: int,
        *,
        topic: str | None = None,
        fail_on_different: bool = True,
        new_token: Callable[[], bytes] = new_token,
    ) -> None:
        self._cluster = cluster
        self._batch = batch
        self._timeout_ms = timeout_ms
        self._topic = topic
        self._fail_on_different = fail_on_different
        self._new_token = new_token

    def __repr__(self) -> str:
        return f"<SinkDriver name={self._batch.name} batch={self._batch.batch}>"

    def commit(self, prepared: Sequence[Prepared]) -> None:
        """Make the batch's rows visible, once.

        Raises:
            QueryError: the batch is older than the last one, it was written with other rows, or a transaction was lost to
                its timeout.
            KafkaError: a broker did not answer in time; repeat the batch.
        """
        for attempt in range(1, _CLAIMS + 1):
            try:
                self._commit_once(prepared)
                return
            except KafkaError as error:
                if error.code not in _FENCED or attempt == _CLAIMS:
                    raise
                logger.warning("another driver works on %s; looking at its decision", self._batch.name)

    def abort(self, prepared: Iterable[Prepared]) -> None:
        """Abort the transactions of a failed batch, except decided ones.

        Spark also calls this when `commit` failed, possibly after the decision.
        """
        mine = _transactions(prepared)
        if not mine:
            return
        with self._claimed() as log:
            last = log.read()
            self._abort(set(mine) - set(last.transactions if last is not None else ()))

    def recover(self) -> bool:
        """Commit the last decision's transactions, and return whether it is this batch: nothing is left to write then.

        For writes whose batch id is known before the tasks start.

        Raises:
            QueryError: the batch is older than the last one, or was written into another topic.
        """
        with self._claimed() as log:
            last = log.read()
            if last is None:
                return False
            self._check_order(last)
            if last.batch == self._batch.batch:
                self._check_topic(last)
                self._carry_out(log, last)
                return True
            self._commit_open(last, self._open_transactions([]))
            return False

    @contextlib.contextmanager
    def _claimed(self) -> Iterator[DecisionLog]:
        log = DecisionLog(self._cluster, self._batch.name, self._timeout_ms, new_token=self._new_token)
        log.claim()
        try:
            yield log
        except Exception:
            log.release()
            raise
        log.release()

    def _commit_once(self, prepared: Sequence[Prepared]) -> None:
        mine = _transactions(prepared)
        with self._claimed() as log:
            last = log.read()
            if last is not None and last.batch >= self._batch.batch:
                # An earlier attempt of this very commit may have written the decision.
                self._abort(set(mine) - set(last.transactions))
                self._check_order(last)
                self._carry_out(log, last)
                self._check_topic(last)
                self._check_rows(last, prepared)
                logger.info("batch %d of %s was written before, nothing is written again", last.batch, self._batch.name)
                return
            rows, digest = _totals(prepared)
            if rows and not mine:
                raise QueryError(
                    f"batch {self._batch.batch} of query {self._batch.query} was written before, and the record of it in"
                    f" {TOPIC} is gone: the topic was deleted a moment ago. Repeat the write"
                )
            if not mine and (self._batch.batch > 0 or not self._batch.run):
                return
            self._warn_once(last, prepared)
            left_over = self._open_transactions(mine)
            two_phase = all(each.two_phase for each in prepared if each.transaction is not None)
            decision = Decision(
                self._batch.query, self._batch.batch, self._batch.run, rows, tuple(mine), digest, self._topic, two_phase
            )
            log.write(decision)
            self._carry_out(log, decision)
            self._commit_open(last, left_over)
            self._abort(left_over - set(last.transactions if last is not None else ()))

    def _carry_out(self, log: DecisionLog, decision: Decision) -> None:
        """Commit a decision's transactions, unless they are known to be."""
        if decision.is_done or not decision.transactions:
            return
        self._commit(decision, decision.transactions)
        try:
            log.note_done(decision.batch)
        except KafkaError as error:
            logger.warning(
                "batch %d of %s is written, and not noted as done: %s", decision.batch, self._batch.name, error
            )

    def _commit_open(self, last: Decision | None, found: set[Transaction]) -> None:
        """Commit transactions of the decision before that are still open: its failure may have been ignored."""
        if last is not None and not last.is_done:
            self._commit(last, sorted(found & set(last.transactions)))

    def _check_order(self, last: Decision) -> None:
        if last.batch > self._batch.batch:
            raise QueryError(
                f"batch {self._batch.batch} of query {self._batch.query} is older than batch {last.batch}, which the"
                " sink has written: the checkpoint was copied, or restored from a backup. To write its rows (again),"
                " choose another transactionalIdPrefix"
            )

    def _check_topic(self, last: Decision) -> None:
        if last.digest is not None and last.topic != self._topic:
            written, wanted = (
                "topics that the column topic named" if topic is None else f"topic {printable(topic)}"
                for topic in (last.topic, self._topic)
            )
            raise QueryError(
                f"batch {last.batch} of query {self._batch.query} was written before into {written}, and now it is to go"
                f" into {wanted}. Two writes need a queryId each; to move a stream, let it finish this batch with the"
                " old option topic"
            )

    def _check_rows(self, last: Decision, prepared: Iterable[Prepared]) -> None:
        rows, digest = _totals(prepared)
        if last.digest is None or (last.rows, last.digest) == (rows, digest):
            return
        difference = (
            f"batch {last.batch} of query {self._batch.query} was written before with {last.rows} rows (digest"
            f" {last.digest:016x}), and now it has {rows} rows (digest {digest:016x})"
        )
        if not self._fail_on_different:
            logger.warning("%s: these are dropped, because failOnDifferentBatch is false", difference)
            return
        raise QueryError(
            f"{difference}: it was planned again, after a checkpoint was restored or repaired, or its rows differ each"
            " time they are computed. Nothing of it was written now. Restore the newer checkpoint; or choose another"
            f" transactionalIdPrefix, which writes the whole batch and doubles the {last.rows} rows; or, for rows that"
            " differ each time, set failOnDifferentBatch=false, which drops these"
        )

    def _warn_once(self, last: Decision | None, prepared: Iterable[Prepared]) -> None:
        if last is None and self._batch.run and self._batch.batch > 0:
            logger.warning(
                "no decision of %s in %s: the query is new to this sink, or the topic was deleted; then rows of batch %d"
                " may be written twice",
                self._batch.name,
                TOPIC,
                self._batch.batch,
            )
        is_first = last is None or last.run != self._batch.run
        if is_first and any(each.transaction is not None and not each.two_phase for each in prepared):
            logger.warning(
                "the brokers offer no two-phase commit: if the driver dies while it commits a batch, restart it within"
                " kafka.transaction.timeout.ms, or rows are lost"
            )

    def _open_transactions(self, mine: list[Transaction]) -> set[Transaction]:
        """Return the sink's open transactions but those of this batch.

        Raises:
            QueryError: a transaction of this batch is not open.
        """
        listed = insist(self._cluster, lambda: list_transactions(self._cluster, states=["Ongoing"]), self._timeout_ms)
        prefix = self._batch.name + SEPARATOR
        ours = {each.transactional_id for each in listed if each.transactional_id.startswith(prefix)}
        unlisted = [each for each in mine if each.transactional_id not in ours]
        others = ours - {each.transactional_id for each in mine}
        still_open = self._ongoing([*others, *(each.transactional_id for each in unlisted)])
        if lost := [each for each in unlisted if each not in still_open]:
            self._abort(mine)
            raise QueryError(
                f"{len(lost)} transactions of batch {self._batch.batch} ended before the batch was complete, by their"
                " timeout: raise kafka.transaction.timeout.ms (and the brokers' transaction.max.timeout.ms), or make"
                " batches smaller. Nothing of the batch is visible; restart the query"
            )
        return still_open - set(mine)

    def _ongoing(self, transactional_ids: Iterable[str]) -> set[Transaction]:
        """Return the open transactions of these ids, as their coordinators know them.

        A list of all transactions may lack some: a coordinator that died is not among the brokers any more, and the one
        that follows it does not know yet that it must load. A coordinator that is asked about an id answers for it.
        """
        names = sorted(transactional_ids)

        def describe() -> set[Transaction]:
            found: set[Transaction] = set()
            for outcome in describe_transactions(self._cluster, names).values():
                if isinstance(outcome, KafkaError):
                    if outcome.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                        raise outcome
                elif outcome.state == "Ongoing":
                    found.add(Transaction(outcome.transactional_id, outcome.producer_id, outcome.producer_epoch))
            return found

        return insist(self._cluster, describe, self._timeout_ms)

    def _commit(self, decision: Decision, transactions: Sequence[Transaction]) -> None:
        outcomes = end_transactions(self._cluster, transactions, commit=True, timeout_ms=self._timeout_ms)
        errors = {each: error for each, error in outcomes.items() if error is not None}
        lost = [each for each, error in errors.items() if error.code in _FENCED]
        if lost:
            names = ", ".join(each.transactional_id for each in lost)
            raise QueryError(
                f"rows are lost: {len(lost)} of {len(outcomes)} transactions of a decided batch ({names}) outlived their"
                " timeout before they could be committed. Two-phase commit prevents this"
                " (transaction.two.phase.commit.enable on barnabas). To write the batch again, with duplicates of the"
                " transactions that were committed, choose another transactionalIdPrefix"
            )
        forgotten = [each for each, error in errors.items() if error.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING]
        if forgotten and not decision.two_phase:
            raise QueryError(self._unknown(decision, len(forgotten)))
        for each, error in errors.items():
            # An id is forgotten when its transaction has ended, which without a timeout only this commit does.
            if each not in forgotten:
                raise error

    def _unknown(self, decision: Decision, forgotten: int) -> str:
        done = done_key(self._batch.name).decode()
        return (
            f"the brokers have forgotten {forgotten} of {len(decision.transactions)} transactional ids of batch"
            f" {decision.batch}, which is decided: they were idle for transactional.id.expiration.ms. They were committed"
            " then, or their timeout had passed; nothing here tells which. Look for rows of the batch in its topic, with"
            " isolation.level=read_committed. If they are there, say so:"
            f""" `echo '{{"version":2,"batch":{decision.batch}}}' | barnabas produce {TOPIC} -k '{done}'`."""
            " If not, another transactionalIdPrefix writes the batch"
        )

    def _abort(self, transactions: Iterable[Transaction]) -> None:
        wanted = sorted(transactions)
        if not wanted:
            return
        outcomes = end_transactions(self._cluster, wanted, commit=False, timeout_ms=self._cluster.timeout_ms)
        for each, error in outcomes.items():
            if error is not None and error.code not in _LOST:
                logger.warning("transaction %s stays open until the next batch: %s", each.transactional_id, error)


_LOST = (*_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
"""A transaction with this pair is not open, and did not end as asked."""


def _totals(prepared: Iterable[Prepared]) -> tuple[int, int]:
    """Return the count and the digest of a batch's rows."""
    tasks = list(prepared)
    return sum(each.rows for each in tasks), sum(each.digest for each in tasks) % 2**64


def _transactions(prepared: Iterable[Prepared]) -> list[Transaction]:
    return sorted(each.transaction for each in prepared if each.transaction is not None)
