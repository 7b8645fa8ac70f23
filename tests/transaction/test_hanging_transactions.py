"""Which open transactions a leader ends, and which it leaves alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.builder import build_batch
from barnabas.transaction.coordinator_survey import KnownTransaction
from barnabas.transaction.hanging_transactions import HangingTransactions, open_transactions
from barnabas.transaction.marker_writer import LocalMarkerWriter, Marker
from barnabas.transaction.transaction_state import TransactionState
from tests.replication.hosting import NODE, Hosting

PRODUCER, EPOCH = 9, 3
P = ("x", 0)
MAX_TIMEOUT_MS, TIMEOUT_MS, LOOK_MS = 900_000, 60_000, 10_000
ONGOING, EMPTY = TransactionState.ONGOING, TransactionState.EMPTY
COMPLETE, PREPARE = TransactionState.COMPLETE_COMMIT, TransactionState.PREPARE_COMMIT


class Subject:
    """A broker with one partition, the coordinators' answers, and the coordinator that verifies."""

    def __init__(self, hosting: Hosting) -> None:
        self.hosting = hosting
        self.remote_partitions = None
        self.answers: dict[int, KnownTransaction] | ErrorCode = {}
        self.asked: list[set[int]] = []
        self.verdict: ErrorCode | None = None
        self.in_survey: Callable[[], object] = lambda: None
        self.written: list[Marker] = []
        groups: Any = None
        self.local = LocalMarkerWriter(
            hosting.replicas, groups, now_ms=hosting.now_ms, exists=lambda partition: True, commit_timeout_ms=1000
        )
        self.hanging = HangingTransactions(
            hosting.replicas,
            self,
            self,  # type: ignore[arg-type]
            self,
            max_timeout_ms=MAX_TIMEOUT_MS,
            loop=hosting.loop,
            monotonic_ms=hosting.replicas.monotonic_ms,
        )
        self.topic_id = hosting.create_topic(P[0])
        self.append()
        self.elect()

    def append(self, sequence: int = 0) -> None:
        """Append one batch of the transaction."""
        record = (self.hosting.now_ms(), b"k", b"v", [])
        made = build_batch(
            [record], producer_id=PRODUCER, producer_epoch=EPOCH, base_sequence=sequence, transactional=True
        )
        partition = self.hosting.replicas.partition(*P)
        guard = partition.begin_verification(PRODUCER, sequence, EPOCH, supports_epoch_bump=True)
        self.hosting.replicas.append_to(partition, memoryview(made), -1, guard=guard)

    def elect(self) -> None:
        """Begin another leader epoch, which remembers what is open."""
        self.hosting.change(self.topic_id, leader=NODE)

    # Its seams

    async def known(self, producer_ids: Collection[int]) -> dict[int, KnownTransaction]:
        self.asked.append(set(producer_ids))
        self.in_survey()
        if isinstance(self.answers, ErrorCode):
            raise KafkaError(self.answers)
        return self.answers

    async def verify_partitions(self, name: str, producer_id: int, epoch: int, asked: Any) -> dict[Any, ErrorCode]:
        if self.verdict in (None, ErrorCode.TRANSACTION_ABORTABLE):
            return {P: self.verdict or ErrorCode.NONE}
        assert self.verdict is not None
        raise KafkaError(self.verdict)

    def exists(self, partition: tuple[str, int]) -> bool:
        return True

    def drop(self, producer_id: int) -> None:
        """Nothing waits here."""

    async def write(self, marker: Marker, partition: tuple[str, int]) -> None:
        self.written.append(marker)
        await self.local.write(marker, partition)

    # What a test does

    def know(
        self, epoch: int, state: TransactionState, *partitions: tuple[str, int], verdict: ErrorCode | None = None
    ) -> None:
        found = KnownTransaction("tx", PRODUCER, epoch, state, TIMEOUT_MS, frozenset(partitions))
        self.answers, self.verdict = {PRODUCER: found}, verdict

    def look(self, times: int = 2, every_ms: int = LOOK_MS) -> None:
        for _ in range(times):
            self.hanging.look()
            self.hosting.advance(every_ms)

    @property
    def is_open(self) -> bool:
        return bool(list(open_transactions(self.hosting.replicas.partition(*P))))


@pytest.fixture
def subject(tmp_path: Path) -> Iterator[Subject]:
    hosting = Hosting(tmp_path)
    yield Subject(hosting)
    hosting.close()


def test_one_that_no_coordinator_knows_is_aborted_as_by_an_operator(subject: Subject) -> None:
    subject.look(1)
    assert subject.asked == [], "a batch may just have come"
    subject.look(1)
    assert subject.asked == [{PRODUCER}]
    assert subject.written == [Marker(PRODUCER, EPOCH, 0, commit=False, transaction_version=0)]
    assert not subject.is_open
    assert subject.hosting.replicas.partition(*P).log.aborted_transactions(0, 10)


@pytest.mark.parametrize(
    ("epoch", "state", "partitions"),
    [(EPOCH, ONGOING, (P,)), (EPOCH, PREPARE, (P,)), (EPOCH + 1, PREPARE, (P,)), (EPOCH + 1, PREPARE, ())],
)
def test_one_that_its_coordinator_knows_lives(subject: Subject, epoch: int, state: Any, partitions: Any) -> None:
    subject.know(epoch, state, *partitions, verdict=ErrorCode.PRODUCER_FENCED)
    subject.look(200)
    assert subject.asked
    assert subject.is_open


@pytest.mark.parametrize(
    ("epoch", "state", "partitions", "verdict"),
    [
        (EPOCH + 1, EMPTY, (), ErrorCode.PRODUCER_FENCED),
        (EPOCH + 1, ONGOING, (P,), ErrorCode.PRODUCER_FENCED),
        (EPOCH + 1, COMPLETE, (), ErrorCode.PRODUCER_FENCED),
        (EPOCH - 1, EMPTY, (), ErrorCode.PRODUCER_FENCED),
        (EPOCH - 1, EMPTY, (), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
def test_one_of_another_epoch_is_nobodys(
    subject: Subject, epoch: int, state: Any, partitions: Any, verdict: ErrorCode
) -> None:
    subject.know(epoch, state, *partitions, verdict=verdict)
    subject.look()
    assert not subject.is_open


@pytest.mark.parametrize("verdict", [None, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR])
def test_the_coordinator_has_the_last_word(subject: Subject, verdict: ErrorCode | None) -> None:
    subject.know(EPOCH + 1, EMPTY, verdict=verdict)
    subject.look()
    assert subject.asked
    assert subject.is_open


@pytest.mark.parametrize("state", [EMPTY, ONGOING, COMPLETE])
def test_where_its_client_may_not_know_yet_it_has_its_own_timeout(subject: Subject, state: Any) -> None:
    subject.know(EPOCH, state, ("x", 1), verdict=ErrorCode.TRANSACTION_ABORTABLE)
    looks = TIMEOUT_MS // LOOK_MS
    subject.look(looks)
    assert subject.is_open
    subject.append(1)
    subject.look(looks)
    assert subject.is_open, "a batch has come"
    subject.look(1)
    assert not subject.is_open


def test_one_of_this_leader_epoch_is_asked_about_when_it_is_older_than_any_may_be(subject: Subject) -> None:
    subject.look()
    subject.asked.clear()
    subject.append(1)
    subject.look(MAX_TIMEOUT_MS // LOOK_MS)
    assert (subject.asked, subject.is_open) == ([], True)
    subject.look(1)
    assert (subject.asked, subject.is_open) == ([{PRODUCER}], False)


def test_coordinators_that_do_not_answer_are_asked_again(subject: Subject) -> None:
    subject.answers = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    subject.look(3)
    assert (len(subject.asked), subject.is_open) == (2, True)
    subject.answers = {}
    subject.look(1)
    assert not subject.is_open


def test_what_changes_meanwhile_is_left_alone(subject: Subject) -> None:
    subject.in_survey = lambda: subject.append(len(subject.asked))
    subject.look(3)
    assert subject.asked
    assert subject.is_open
    subject.in_survey = subject.elect
    subject.look(3)
    assert subject.is_open, "another leader epoch may have another transaction"
    subject.in_survey = lambda: subject.hosting.delete_topic(subject.topic_id)
    subject.look(2)
    assert subject.written == []


def test_a_marker_that_cannot_be_written_is_tried_again(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(marker: Marker, partition: tuple[str, int]) -> None:
        raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)

    with monkeypatch.context() as patched:
        patched.setattr(subject, "write", fail)
        subject.look()
        assert subject.is_open
    subject.look(1)
    assert not subject.is_open


def test_only_what_this_broker_leads_is_looked_at(subject: Subject) -> None:
    subject.hosting.change(subject.topic_id, leader=2)
    subject.look(3)
    assert subject.asked == []
