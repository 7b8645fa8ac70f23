"""The driver's part of exactly-once writing: it decides which transactions of a batch count, and ends them.

    task    begins a transaction of its own, writes its rows, and leaves the transaction open
    driver  1  claims the sink, which fences every other driver of the same query, and leaves a record
            2  reads up to that record, which a leader that was deposed does not have, and takes the last decision;
               if it is this batch: abort the new transactions, 5 for the decided ones, an error if the rows differ
            3  lists the sink's open transactions: those of this batch must be among them
            4  writes the decision: query, batch, rows and their digest, transactions, and what is aborted in 6
            5  commits them, and notes that this is done
            6  aborts what is left over: attempts that died, tasks that were lost

Spark repeats a batch, with the same query and batch id, until the commit of that batch returned. What a crash leaves:

| killed                        | open             | what the repeated batch does                                 |
|-------------------------------|------------------|--------------------------------------------------------------|
| in a task, or before 4        | transactions     | writes again; its own decision; aborts the old ones (6)      |
| in 4, before its commit       | and that of 4    | the same; the claim aborts the record (1)                    |
| after 4, before or in 5       | decided ones     | writes again, finds the decision, commits it, aborts its own |
| in 5, before it is noted      | left-overs       | the same, and every commit repeats one that succeeded        |
| after 5, before Spark's log   | left-overs       | the same, and nothing is committed again                     |

When a batch fails, `abort` does 1 and 2, writes the last decision again with what it aborts (4), and aborts it (6).

Why no decided transaction is ever aborted, and no undecided one committed:

- A transactional id belongs to one Python worker. A transaction has an epoch that no other one of its id has, and
  every driver ends it by id and epoch. So a zombie, a second attempt of a task, or a speculative one cannot touch it.
- A worker uses an id again two batches later, so that an EndTxn for the last decision can be repeated at any time; and
  only if its transaction was committed. An id whose transaction was not decided is never used again.
- 4 succeeds only if no driver claimed since 1. Whatever 6 aborts is in the record of 4; a later record repeats those that
  are still open; and no driver decides a transaction that is in the last record. So a driver that stops between 4 and
  6, and wakes up much later, aborts nothing that another one has decided.
- What is aborted is fenced: no task begins another transaction with its pair. So what 3 does not find open any more
  stays ended, and needs no record.
- A batch that is noted as done needs no coordinator: its ids may have expired. A driver repeats
  the commits of one that is not noted. If an id has expired by then, its transaction was committed, or aborted by its
  timeout; without a timeout, it was committed.
- Besides drivers only the broker aborts, after `transaction.timeout.ms`. With two-phase commit it never does.

The sink's name is the prefix and the query's id, of which neither has a slash, so that two queries never share a record
or a transactional id.

Limits: a batch older than the last decision is an error, because the log no longer tells whether its rows are there. A batch
without rows has no decision. A stream's batch 0 always has one: if none is found later, the topic was deleted. The
transactions of one batch are committed one after the other, not at one instant. A driver whose batch another run has
decided leaves alone what is open: it belongs to that run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from barnabas.client.cluster import Cluster
from barnabas.client.producer_transactions import Transaction, end_transactions
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.spark.denied import Access, denied
from barnabas.spark.plain_errors import QueryError
from barnabas.spark.sink.decision_scan import done_key
from barnabas.spark.sink.decision_topic import TOPIC, warn_of_few_replicas
from barnabas.spark.sink.decisions import NO_BATCH, Decision, DecisionLog, new_token
from barnabas.spark.sink.repeated_batch import check_order, check_rows, check_topic
from barnabas.spark.sink.sink_batch import Prepared, SinkBatch, is_two_phase, taken_over, totals, transactions_of
from barnabas.spark.sink.sink_transactions import FENCED, SinkTransactions
from barnabas.words.sink_names import SEPARATOR

ResultT = TypeVar("ResultT")

logger = logging.getLogger("barnabas.spark")

_CLAIMS = 5
"""So often a driver that was fenced looks again: another one, of a run that is ending, may be at the same batch."""


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
        self._transactions = SinkTransactions(cluster, batch.name, timeout_ms)

    def __repr__(self) -> str:
        return f"<SinkDriver name={self._batch.name} batch={self._batch.batch}>"

    def commit(self, prepared: Sequence[Prepared]) -> None:
        """Make the batch's rows visible, once.

        Raises:
            QueryError: the batch is older than the last one, it was written with other rows, or a transaction was lost to
                its timeout.
            KafkaError: a broker did not answer in time; repeat the batch.
        """
        self._as_claimed(lambda log, last: self._commit_once(log, last, prepared))

    def abort(self, prepared: Iterable[Prepared]) -> None:
        """Abort every transaction of the sink that is open and not decided: the batch failed.

        Spark also calls this when `commit` failed, possibly after the decision. Tasks that did not report, and runs
        before, may have left transactions.

        Raises:
            KafkaError: a broker did not answer in time; some stay open.
        """
        self._as_claimed(lambda log, last: self._abort_once(log, last, transactions_of(prepared)))

    def recover(self) -> bool:
        """Commit the last decision's transactions, and return whether it is this batch: nothing is left to write then.

        For writes whose batch id is known before the tasks start.

        Raises:
            QueryError: the batch is older than the last one, or was written into another topic.
        """
        return self._as_claimed(self._recover_once)

    def settle(self) -> tuple[int, int]:
        """End everything that is open under the sink's name, in place of a query that does not come back.

        What it had decided is committed, the rest is aborted and fenced. A query that is at work fails its batch.

        Returns:
            How many open transactions were committed, and how many aborted.

        Raises:
            QueryError: transactions of the last decision outlived their timeout.
            KafkaError: a broker did not answer in time; some stay open.
        """
        return self._as_claimed(self._settle_once)

    def _settle_once(self, log: DecisionLog, last: Decision | None) -> tuple[int, int]:
        found, _ = self._transactions.look([], _to_abort(last))
        if last is not None:
            self._carry_out(log, last)
        aborted = self._abort_undecided(log, last, found)
        return len(found) - len(aborted), len(aborted)

    def _recover_once(self, log: DecisionLog, last: Decision | None) -> bool:
        if last is None:
            return False
        check_order(last, self._batch)
        if last.batch == self._batch.batch:
            check_topic(last, self._topic)
            self._carry_out(log, last)
            self._transactions.fence(last.aborted)
            return True
        if not last.is_done:
            self._commit_open(last, self._transactions.look([], [])[0])
        return False

    def _abort_once(self, log: DecisionLog, last: Decision | None, mine: list[Transaction]) -> None:
        self._transactions.fence(_undecided(mine, last))
        if not self._is_overtaken(last):
            # Else what is open belongs to the driver that wrote the decision, which is at work.
            self._abort_others(log, last, mine)

    def _is_overtaken(self, last: Decision | None) -> bool:
        if last is None or last.batch < self._batch.batch:
            return False
        return last.batch > self._batch.batch or last.run != self._batch.run

    def _as_claimed(self, work: Callable[[DecisionLog, Decision | None], ResultT]) -> ResultT:
        """Claim the sink and work on its last decision; again, if another driver claims meanwhile."""
        for _ in range(_CLAIMS - 1):
            try:
                return self._claimed_once(work)
            except KafkaError as error:
                if error.code not in FENCED:
                    raise
                logger.warning("another driver works on %s; looking at its decision", self._batch.name)
        return self._claimed_once(work)

    def _claimed_once(self, work: Callable[[DecisionLog, Decision | None], ResultT]) -> ResultT:
        log = DecisionLog(self._cluster, self._batch.name, self._timeout_ms, new_token=self._new_token)
        try:
            log.claim()
            found = work(log, log.read())
        except KafkaError as error:
            log.release()
            raise self._explained(error) from None
        except Exception:
            log.release()
            raise
        log.release()
        return found

    def _explained(self, error: KafkaError) -> KafkaError:
        if error.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            prefix, separator, _ = self._batch.name.partition(SEPARATOR)
            return denied(error, Access("Write", "transactional-id", prefix + separator, is_prefix=True))
        # A driver writes to no other topic. The one that says how to create it is complete.
        if error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED and error.message == error.code.default_message:
            return denied(error, Access("Read", "topic", TOPIC), Access("Write", "topic", TOPIC))
        return error

    def _commit_once(self, log: DecisionLog, last: Decision | None, prepared: Sequence[Prepared]) -> None:
        mine = transactions_of(prepared)
        if last is not None and last.batch >= self._batch.batch:
            # An earlier attempt of this very commit may have written the decision, and died before it aborted the rest.
            self._transactions.fence(_undecided(mine, last) | set(last.aborted))
            check_order(last, self._batch)
            self._carry_out(log, last)
            check_topic(last, self._topic)
            check_rows(last, prepared, fail=self._fail_on_different)
            logger.info("batch %d of %s was written before, nothing is written again", last.batch, self._batch.name)
            return
        rows, digest = totals(prepared)
        if rows and not mine:
            raise QueryError(
                f"batch {self._batch.batch} of query {self._batch.query} was written before, and the record of it in"
                f" {TOPIC} is gone: the topic was deleted a moment ago. Repeat the write"
            )
        if not mine and (self._batch.batch > 0 or not self._batch.run):
            self._abort_others(log, last, mine)
            return
        self._warn_once(last, prepared)
        left_over = self._look(last, mine, prepared)
        decision = Decision(
            self._batch.query,
            self._batch.batch,
            self._batch.run,
            rows,
            tuple(mine),
            digest,
            self._topic,
            is_two_phase(prepared),
            tuple(sorted(_undecided(left_over, last))),
        )
        log.write(decision)
        self._carry_out(log, decision)
        self._commit_open(last, left_over)
        self._transactions.fence(decision.aborted)

    def _look(self, last: Decision | None, mine: list[Transaction], prepared: Iterable[Prepared]) -> set[Transaction]:
        """Return the sink's open transactions but those of this batch.

        Raises:
            QueryError: a transaction of this batch is not open, or another driver is about to abort it.
        """
        aborted = _to_abort(last)
        left_over, lost = self._transactions.look(mine, aborted)
        if lost or set(mine) & set(aborted):
            self._transactions.fence(mine)
            raise QueryError(taken_over(self._batch, is_two_phase(prepared)))
        return left_over

    def _abort_others(self, log: DecisionLog, last: Decision | None, mine: list[Transaction]) -> None:
        """Abort open transactions that are not decided, and not of this batch."""
        found, _ = self._transactions.look(mine, _to_abort(last))
        self._abort_undecided(log, last, found)

    def _abort_undecided(self, log: DecisionLog, last: Decision | None, found: set[Transaction]) -> set[Transaction]:
        """Abort those of some open transactions that are not decided, and return them.

        First the log says so: a driver that claims later must not decide one of them in the meantime.
        """
        aborted = _undecided(found, last)
        if aborted:
            log.write(replace(last or Decision.nothing(self._batch.query), aborted=tuple(sorted(aborted))))
            self._transactions.fence(aborted)
        return aborted

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

    def _warn_once(self, last: Decision | None, prepared: Iterable[Prepared]) -> None:
        if (last is None or last.batch == NO_BATCH) and self._batch.run and self._batch.batch > 0:
            logger.warning(
                "no decision of %s in %s: the query is new to this sink, or the topic was deleted; then rows of batch %d"
                " may be written twice",
                self._batch.name,
                TOPIC,
                self._batch.batch,
            )
        is_first = last is None or last.run != self._batch.run
        if is_first:
            warn_of_few_replicas(self._cluster)
        if is_first and any(each.transaction is not None and not each.two_phase for each in prepared):
            logger.warning(
                "the brokers offer no two-phase commit: if the driver dies while it commits a batch, restart it within"
                " kafka.transaction.timeout.ms, or rows are lost"
            )

    def _commit(self, decision: Decision, transactions: Sequence[Transaction]) -> None:
        outcomes = end_transactions(self._cluster, transactions, commit=True, timeout_ms=self._timeout_ms)
        errors = {each: error for each, error in outcomes.items() if error is not None}
        lost = [each for each, error in errors.items() if error.code in FENCED]
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


def _to_abort(last: Decision | None) -> tuple[Transaction, ...]:
    return last.aborted if last is not None else ()


def _undecided(transactions: Iterable[Transaction], last: Decision | None) -> set[Transaction]:
    return set(transactions) - set(last.transactions if last is not None else ())
