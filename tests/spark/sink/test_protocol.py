"""The sink without Spark: killed or cut off at every request that it sends, and with other drivers beside it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import re
import uuid
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest

import barnabas
from barnabas.client.admin import Admin, NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.outcome import result
from barnabas.client.partition_records import append_batch
from barnabas.client.producer_transactions import Transaction, add_partitions_to_transaction, end_transactions
from barnabas.client.transactions import list_transactions
from barnabas.client.wire import BlockingConnection
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.records.builder import build_batch
from barnabas.spark.plain_errors import QueryError
from barnabas.spark.sink import protocol as sink_protocol
from barnabas.spark.sink import sink_transactions
from barnabas.spark.sink.decision_topic import TOPIC
from barnabas.spark.sink.decisions import Decision, DecisionLog
from barnabas.spark.sink.protocol import SinkDriver
from barnabas.spark.sink.sink_batch import Prepared
from barnabas.spark.sink.sink_transactions import SinkTransactions
from barnabas.spark.sink.task_producers import TaskProducers, open_cluster
from barnabas.spark.sink.task_writer import write_task
from tests.spark.sink.sink_run import Fault, Killed, Query, Split, Watched, committed, random_split, rows_of

pytestmark = pytest.mark.slow

BATCHES = [[f"{batch}-{row}" for row in range(8)] for batch in range(3)]
EVERY_ROW = Counter(value for batch in BATCHES for value in batch)
SEEDS = 4
CONFIG = {"transaction.two.phase.commit.enable": True, "transaction.state.log.num.partitions": 2}


@pytest.fixture(scope="module", params=["barnabas", pytest.param("kafka", marks=pytest.mark.conform)])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker: barnabas with two-phase commit, and in `make conform` Apache Kafka without."""
    if request.param == "barnabas":
        with barnabas.Broker(config=CONFIG) as running:
            yield running.bootstrap_servers
        return
    import apache_kafka

    if not apache_kafka.home().exists():
        pytest.skip("Apache Kafka is not here: python tools/apache_kafka.py install")
    with apache_kafka.ApacheKafka(tmp_path_factory.mktemp("broker")) as running:
        yield running.bootstrap_servers


@pytest.fixture
def admin(servers: str) -> Iterator[Admin]:
    with Admin(servers) as found:
        yield found


def query(servers: str, seed: int = 0, split: Split | None = None, **options: str) -> Query:
    topic = f"out-{uuid.uuid4().hex[:8]}"
    with Admin(servers) as admin:
        result(admin.create_topics([NewTopic(topic, 2, 1)])[topic])
    return Query(servers, topic, BATCHES, split or random_split(seed), uuid.uuid4().hex, **options)


def check(servers: str, ran: Query, times: int = 1) -> None:
    assert ran.options.topic is not None
    assert committed(servers, ran.options.topic) == dict.fromkeys(EVERY_ROW, times)


def test_every_row_once(servers, admin):
    ran = query(servers)
    ran.run()
    check(servers, ran)
    ours = [each for each in admin.list_transactions() if ran.query in each.transactional_id]
    assert {tuple(each.transactional_id.split("/")[:2]) for each in ours} == {("barnabas-sink", ran.query)}
    assert {each.state for each in ours} == {"CompleteCommit"}


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("fault", [Fault.KILLED_BEFORE, Fault.KILLED_AFTER])
def test_killed_at_every_request(servers, seed, fault):
    watched = Watched()
    query(servers, seed).run(watched.connect)
    numbers = range(seed, len(watched.seen), SEEDS)
    killed = 0
    for number in numbers:
        ran = query(servers, seed)
        try:
            ran.run(Watched(number, fault).connect)
        except Killed:
            killed += 1
        ran.run()
        check(servers, ran)
    # How often a broker answers CONCURRENT_TRANSACTIONS varies, and with it the number of requests.
    assert killed > len(numbers) // 2


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("fault", [Fault.LOST_BEFORE, Fault.LOST_AFTER])
def test_a_connection_lost_at_any_request_is_no_reason_to_stop(servers, seed, fault):
    watched = Watched()
    query(servers, seed).run(watched.connect)
    # The first request of a connection is ApiVersions.
    for number in range(1 + seed, len(watched.seen), SEEDS):
        ran = query(servers, seed)
        ran.run(Watched(number, fault).connect)
        check(servers, ran)


@pytest.mark.parametrize("ends", [0, 1, 2, 4])
def test_a_broker_that_restarts_while_transactions_end(tmp_path, ends):
    """Before the n-th EndTxn: the first is that of the decision."""
    with barnabas.Broker(tmp_path, config=CONFIG) as broker:
        servers = broker.bootstrap_servers
        watched = Watched()
        ran = query(servers, split=lambda values: [values[:3], values[3:]])

        class Restarting(BlockingConnection):
            def send(self, message, version=None, *, highest=None):
                if watched.seen.count("EndTxn") == ends and type(message).__name__ == "EndTxnRequest":
                    broker.stop()
                    broker.start()
                watched.count(type(message).__name__.removesuffix("Request"))
                return super().send(message, version, highest=highest)

        ran.run(Restarting)
        assert watched.seen.count("EndTxn") > 5
        check(servers, ran)


def test_killed_again_and_again(servers):
    ran = query(servers)
    for number in range(8, 400, 7):
        try:
            ran.run(Watched(number).connect)
            break
        except Killed:
            continue
    check(servers, ran)


def test_the_decision_is_carried_out_after_a_failed_commit(servers, monkeypatch):
    ran = query(servers)
    with _commits_that_fail(monkeypatch), pytest.raises(KafkaError):
        ran.run()
    ran.run()
    check(servers, ran)


@contextlib.contextmanager
def _commits_that_fail(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let drivers decide, and fail before they commit."""

    def fail(driver: SinkDriver, decision: object, transactions: object) -> None:
        raise KafkaError(15, "the test fails it")

    with monkeypatch.context() as patched:
        patched.setattr(SinkDriver, "_commit", fail)
        yield


def test_a_decision_whose_answer_is_lost(servers, monkeypatch):
    """The driver looks again, and finds its own."""
    ran = query(servers)
    write = DecisionLog.write

    def write_and_fail(log: DecisionLog, decision: Decision) -> None:
        write(log, decision)
        raise KafkaError(ErrorCode.PRODUCER_FENCED)

    monkeypatch.setattr(DecisionLog, "write", write_and_fail)
    ran.run()
    check(servers, ran)


def test_two_drivers_at_one_batch(servers):
    ran = query(servers)
    ran.workers = [TaskProducers()]
    batch = ran.batch(0)
    first, second = ran.run_tasks(batch), ran.run_tasks(batch)
    ran.commit(batch, second)
    ran.commit(batch, first)
    ran.done = 1
    ran.run()
    check(servers, ran)


def test_a_driver_that_wakes_up_late(servers):
    """It stopped before its commit; another one has gone on meanwhile."""
    ran = query(servers)
    ran.workers = [TaskProducers()]
    late = ran.run_tasks(ran.batch(0))
    ran.run()
    with pytest.raises(QueryError, match=r"batch 0 of query .* is older than batch 2"):
        ran.commit(ran.batch(0), late)
    check(servers, ran)


def test_a_driver_that_is_fenced_while_it_decides(servers, monkeypatch):
    """Between its claim and its decision another driver decides the same batch."""
    ran = query(servers)
    ran.workers = [TaskProducers()]
    batch = ran.batch(0)
    first, second = ran.run_tasks(batch), ran.run_tasks(batch)
    look = SinkTransactions.look

    def overtaken(transactions, mine, known):
        monkeypatch.setattr(SinkTransactions, "look", look)
        found = look(transactions, mine, known)
        ran.commit(batch, second)
        return found

    monkeypatch.setattr(SinkTransactions, "look", overtaken)
    ran.commit(batch, first)
    ran.done = 1
    ran.run()
    check(servers, ran)


def test_a_second_attempt_of_a_task_is_left_out(servers):
    """A speculative attempt, or one on an executor that was taken for lost: only one of the two is reported."""
    ran = query(servers)
    ran.workers = [TaskProducers()]
    batch = ran.batch(0)
    ran.run_tasks(batch)
    ran.commit(batch, ran.run_tasks(batch))
    ran.done = 1
    ran.run()
    check(servers, ran)


def test_another_query_with_a_similar_name_is_left_alone(servers):
    one, other = query(servers), query(servers)
    other.query = one.query + "-b"
    other.workers = [TaskProducers()]
    batch = other.batch(0)
    prepared = other.run_tasks(batch)
    one.run()
    other.commit(batch, prepared)
    other.done = 1
    other.run()
    check(servers, one)
    check(servers, other)


def test_a_failed_batch_leaves_nothing_open(servers):
    ran = query(servers)
    ran.workers = [TaskProducers()]
    batch = ran.batch(0)
    prepared = ran.run_tasks(batch)
    with open_cluster(ran.options) as cluster:
        ran.driver(cluster, batch).abort(prepared)
    assert committed(servers, ran.options.topic) == {}
    ran.run()
    check(servers, ran)


def test_without_the_topic_of_decisions_the_last_batch_may_be_there_twice(servers, admin, caplog):
    ran = query(servers)
    ran.run()
    admin.delete_topics([TOPIC])
    ran.done = 2
    with caplog.at_level(logging.WARNING):
        ran.run()
    assert "may be written twice" in caplog.text
    found = committed(servers, ran.options.topic)
    assert found == EVERY_ROW + Counter(BATCHES[2])


def test_a_query_that_begins_without_rows_is_not_taken_for_one_whose_decisions_are_gone(servers, admin, caplog):
    ran = query(servers)
    ran.batches = [[], [], *BATCHES]
    with caplog.at_level(logging.WARNING, "barnabas.spark"):
        ran.run()
    check(servers, ran)
    assert "no decision of" not in caplog.text
    # The first batch is on record, though it is empty; a batch that is repeated has no second record.
    ran.done = 4
    ran.run()
    check(servers, ran)


def test_a_deleted_checkpoint_is_another_query(servers):
    ran = query(servers)
    ran.run()
    ran.query, ran.done = uuid.uuid4().hex, 0
    ran.run()
    check(servers, ran, times=2)


def test_a_prefix_of_its_own_for_a_copied_checkpoint(servers):
    ran = query(servers)
    ran.run()
    copy = query(servers, transactionalIdPrefix="copy")
    copy.query = ran.query
    copy.run()
    check(servers, copy)


def test_a_transaction_that_timed_out_before_the_decision(servers, admin, caplog):
    ran = query(servers)
    ran.workers = [TaskProducers()]
    batch = ran.batch(0)
    prepared = ran.run_tasks(batch)
    first = next(each.transaction for each in prepared if each.transaction is not None)
    admin.fence_producers([first.transactional_id])
    with pytest.raises(QueryError, match="took over while batch 0 was written"):
        ran.commit(batch, prepared)
    ran.run()
    check(servers, ran)


def test_a_list_without_an_open_transaction_proves_nothing(servers, monkeypatch):
    """When a coordinator has died, the next one may not have begun to load: it lists nothing, and means it."""
    listed = []

    def list_nothing(cluster, **how):
        listed.append(list_transactions(cluster, **how))
        return []

    monkeypatch.setattr(sink_transactions, "list_transactions", list_nothing)
    ran = query(servers)
    ran.run()
    assert any(listed)
    check(servers, ran)


def test_a_decided_transaction_that_is_lost_is_an_error(servers, admin, monkeypatch):
    ran = query(servers)
    ran.workers = [TaskProducers()]
    batch = ran.batch(0)
    prepared = ran.run_tasks(batch)
    with _commits_that_fail(monkeypatch), pytest.raises(KafkaError):
        ran.commit(batch, prepared)
    first = next(each.transaction for each in prepared if each.transaction is not None)
    admin.fence_producers([first.transactional_id])
    with pytest.raises(QueryError, match="rows are lost: 1 of"):
        ran.run()


def test_brokers_without_two_phase_commit_are_warned_of_once(caplog):
    with barnabas.Broker() as plain, caplog.at_level(logging.WARNING):
        ran = query(plain.bootstrap_servers)
        ran.run()
        check(plain.bootstrap_servers, ran)
    assert caplog.text.count("restart it within kafka.transaction.timeout.ms") == 1


def test_a_repeated_batch_write_is_skipped_or_finished(servers, monkeypatch):
    ran = query(servers)
    ran.workers = [TaskProducers()]
    batch = ran.batch(0)
    prepared = ran.run_tasks(batch)

    def recover(number):
        with open_cluster(ran.options) as cluster:
            return ran.driver(cluster, ran.batch(number)).recover()

    assert not recover(0)
    with _commits_that_fail(monkeypatch), pytest.raises(KafkaError):
        ran.commit(batch, prepared)
    # The program ignored the error, and goes on.
    assert not recover(1)
    assert committed(servers, ran.options.topic) == Counter(BATCHES[0])
    assert recover(0)
    ran.done = 1
    ran.run()
    check(servers, ran)
    with pytest.raises(QueryError, match="is older than batch 2"):
        recover(1)


def planned_again(ran: Query, rows: list[str]) -> None:
    """Run a query; then plan its last batch again, with other rows, as after a checkpoint that lost its last files."""
    ran.run()
    ran.batches = [*BATCHES[:2], rows]
    ran.done = 2
    ran.run()


@pytest.mark.parametrize(
    "rows",
    [[*BATCHES[2], "more"], BATCHES[2][1:], ["other", *BATCHES[2][1:]], []],
    ids=["more", "fewer", "other", "none"],
)
def test_a_batch_that_was_planned_again_with_other_rows_is_an_error(servers, rows):
    ran = query(servers)
    message = (
        rf"batch 2 of query {ran.query} was written before with 8 rows \(digest \w{{16}}\), and now it has {len(rows)}"
    )
    with pytest.raises(QueryError, match=message):
        planned_again(ran, rows)
    check(servers, ran)


def test_another_prefix_writes_a_batch_that_was_planned_again(servers):
    ran = query(servers)
    with pytest.raises(QueryError, match="choose another transactionalIdPrefix"):
        planned_again(ran, [*BATCHES[2], "more"])
    ran.options = dataclasses.replace(ran.options, prefix="another")
    ran.run()
    assert committed(servers, ran.options.topic) == EVERY_ROW + Counter([*BATCHES[2], "more"])


def test_rows_that_differ_each_time_are_dropped_if_the_user_says_so(servers, caplog):
    ran = query(servers, failOnDifferentBatch="false")
    with caplog.at_level(logging.WARNING):
        planned_again(ran, [*BATCHES[2], "more"])
    assert re.search(
        r"with 8 rows \(digest \w+\), and now it has 9 rows \(digest \w+\): these are dropped", caplog.text
    )
    check(servers, ran)


def test_a_record_of_an_older_release_compares_nothing(servers, monkeypatch):
    ran = query(servers)
    to_json = Decision.to_json

    def older(decision: Decision) -> bytes:
        fields = json.loads(to_json(decision))
        known = ("query", "batch", "run", "rows", "transactions")
        return json.dumps({"version": 1, **{name: fields[name] for name in known}}).encode()

    monkeypatch.setattr(Decision, "to_json", older)
    planned_again(ran, ["other"])
    check(servers, ran)


def test_two_writes_with_one_query_and_batch_id_into_two_topics(servers):
    """In one foreachBatch: good rows and bad rows."""
    ran, other = query(servers), query(servers)
    other.query = ran.query
    ran.workers = other.workers = [TaskProducers()]
    ran.run_batch(0)
    message = f"into topic {ran.options.topic}, and now it is to go into topic {other.options.topic}"
    with open_cluster(other.options) as cluster, pytest.raises(QueryError, match=message):
        other.driver(cluster, other.batch(0)).recover()
    with pytest.raises(QueryError, match=message):
        other.run_batch(0)
    assert committed(servers, other.options.topic) == {}
    assert committed(servers, ran.options.topic) == Counter(BATCHES[0])


def test_a_write_whose_record_vanishes_while_its_rows_are_compared(servers):
    ran = query(servers)
    ran.workers = [TaskProducers()]
    prepared = [Prepared(None, each.rows, digest=each.digest) for each in ran.run_tasks(ran.batch(0))]
    with pytest.raises(QueryError, match="is gone: the topic was deleted"):
        ran.commit(ran.batch(0), prepared)


@contextlib.contextmanager
def _ids_that_expired(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the coordinators know no id of an earlier batch, as after `transactional.id.expiration.ms`."""

    def forgotten(cluster, transactions, *, commit, timeout_ms):
        if not commit:
            return end_transactions(cluster, transactions, commit=commit, timeout_ms=timeout_ms)
        return dict.fromkeys(transactions, KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING))

    with monkeypatch.context() as patched:
        patched.setattr(sink_protocol, "end_transactions", forgotten)
        yield


@contextlib.contextmanager
def _nothing_noted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let drivers fail to note that a decision is carried out."""

    def fail(log: DecisionLog, batch: int) -> None:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)

    with monkeypatch.context() as patched:
        patched.setattr(DecisionLog, "note_done", fail)
        yield


def test_a_batch_that_is_done_needs_no_coordinator(monkeypatch):
    """A batch write that is repeated after a week, or a query whose driver died before Spark noted its batch."""
    with barnabas.Broker() as plain:
        ran = query(plain.bootstrap_servers)
        ran.run()
        with _ids_that_expired(monkeypatch), open_cluster(ran.options) as cluster:
            assert ran.driver(cluster, ran.batch(2)).recover()
            ran.done = 2
            ran.run()
        check(plain.bootstrap_servers, ran)


def test_ids_that_expired_without_a_timeout_were_committed(servers, monkeypatch):
    with barnabas.Broker(config=CONFIG) as broker:
        ran = query(broker.bootstrap_servers)
        with _nothing_noted(monkeypatch):
            ran.run()
        with _ids_that_expired(monkeypatch), open_cluster(ran.options) as cluster:
            assert ran.driver(cluster, ran.batch(2)).recover()
        # It is noted now.
        with open_cluster(ran.options) as cluster:
            log = DecisionLog(cluster, ran.batch(2).name, 20_000)
            log.claim()
            found = log.read()
        assert found is not None
        assert found.is_done
        check(broker.bootstrap_servers, ran)


def test_ids_that_expired_with_a_timeout_prove_nothing(monkeypatch):
    with barnabas.Broker() as plain:
        ran = query(plain.bootstrap_servers)
        with _nothing_noted(monkeypatch):
            ran.run()
        ran.done = 2
        sentence = "nothing here tells which. Look for rows of the batch"
        with _ids_that_expired(monkeypatch), pytest.raises(QueryError, match=sentence) as caught:
            ran.run()
        # What the sentence says.
        noted = re.search(r"`echo '(.*)' \| barnabas produce (\S+) -k '(.*)'`", str(caught.value))
        assert noted is not None
        value, topic, key = noted.groups()
        with Cluster(plain.bootstrap_servers) as cluster:
            append_batch(cluster, TopicPartition(topic, 0), build_batch([(0, key.encode(), value.encode(), ())]))
        with _ids_that_expired(monkeypatch):
            ran.run()
        check(plain.bootstrap_servers, ran)


def opened(ran: Query, number: int = 0) -> list[Transaction]:
    """Return transactions of a batch that no driver will hear of: attempts that died, in a run that died."""
    return [each.transaction for each in ran.run_tasks(ran.batch(number)) if each.transaction is not None]


def states(admin: Admin, transactions: list[Transaction]) -> set[str]:
    found = admin.describe_transactions([each.transactional_id for each in transactions]).values()
    return {each.state for each in found}  # type: ignore[union-attr]


def test_a_batch_that_failed_leaves_nothing_of_tasks_that_did_not_report(servers, admin):
    """One task raised, and Spark killed the worker of another one."""
    ran = query(servers)
    ran.workers = [TaskProducers()]
    left = opened(ran)
    with open_cluster(ran.options) as cluster:
        ran.driver(cluster, ran.batch(0)).abort([])
    assert states(admin, left) <= {"PrepareAbort", "CompleteAbort", "Empty"}
    assert committed(servers, ran.options.topic) == {}
    ran.run()
    check(servers, ran)


def test_a_batch_without_rows_ends_what_a_run_before_left_open(servers):
    ran = query(servers)
    ran.workers = [TaskProducers()]
    ran.run_batch(0)
    opened(ran, 1)
    ran.batches = [BATCHES[0], [], *BATCHES[1:]]
    ran.done = 1
    ran.run_batch(1)
    assert committed(servers, ran.options.topic) == Counter(BATCHES[0])
    ran.done = 2
    ran.run()
    check(servers, ran)


def test_a_driver_that_was_overtaken_leaves_the_other_one_alone(servers):
    """Its batch was decided by another run, whose next batch is being written."""
    ran = query(servers)
    ran.workers = [TaskProducers()]
    late = ran.batch(0)
    ran.run_tasks(late)
    ran.begin()
    ran.run_batch(0)
    batch = ran.batch(1)
    prepared = ran.run_tasks(batch)
    with open_cluster(ran.options) as cluster:
        ran.driver(cluster, late).abort([])
    ran.commit(batch, prepared)
    ran.done = 2
    ran.run()
    check(servers, ran)


def test_what_is_aborted_is_fenced(servers, admin):
    """A task that lives on cannot begin another transaction, without the rows that were aborted."""
    ran = query(servers)
    ran.workers = [TaskProducers()]
    (left, *_) = opened(ran)
    ran.run_batch(0)
    with (
        open_cluster(ran.options) as cluster,
        pytest.raises(KafkaError, match=r"PRODUCER_FENCED|INVALID_PRODUCER_EPOCH"),
    ):
        add_partitions_to_transaction(
            cluster, left, [TopicPartition(str(ran.options.topic), 0)], timeout_ms=cluster.timeout_ms
        )
    assert committed(servers, ran.options.topic) == Counter(BATCHES[0])


def test_the_loser_of_two_overlapping_writes_gets_one_sentence(servers):
    """Another write of the sequence commits while the rows of this one are written."""
    ran = query(servers)
    ran.workers = [TaskProducers()]
    batch = ran.batch(1)

    def rows():
        # More than a producer keeps, so that the transaction begins.
        yield pa.record_batch({"value": [b"x" * 900_000] * 10})
        ran.run_batch(0)
        yield rows_of(["more"])

    with pytest.raises(QueryError, match=r"took over while batch 1 was written.*run it again afterwards"):
        write_task(TaskProducers(), ran.options, batch, 0, rows())
    assert committed(servers, ran.options.topic) == Counter(BATCHES[0])
    ran.done = 1
    ran.run()
    check(servers, ran)


def test_a_driver_that_stops_before_it_aborts_does_not_abort_what_is_decided_meanwhile(servers, monkeypatch):
    """It has listed what it aborts; then another driver claims the sink and commits one of these transactions."""
    ran = query(servers)
    ran.workers = [TaskProducers()]
    batch = ran.batch(0)
    prepared = ran.run_tasks(batch)
    fence, overtaken = SinkTransactions.fence, []

    def stopped(transactions: SinkTransactions, wanted: set[Transaction]) -> None:
        wanted = set(wanted)
        if wanted and not overtaken:
            overtaken.append(wanted)
            with pytest.raises(QueryError, match="took over while batch 0 was written"):
                ran.commit(batch, prepared)
        fence(transactions, wanted)

    monkeypatch.setattr(SinkTransactions, "fence", stopped)
    with open_cluster(ran.options) as cluster:
        ran.driver(cluster, batch).abort([])
    assert overtaken == [{each.transaction for each in prepared if each.transaction is not None}]
    assert committed(servers, ran.options.topic) == {}
    ran.run()
    check(servers, ran)


def test_a_driver_that_wakes_up_late_does_not_abort_another_transaction_of_its_ids(servers):
    """Its batch was committed by another run, and the worker has used the ids again."""
    ran = query(servers, split=lambda values: [values])
    ran.workers = [TaskProducers()]
    late = ran.run_tasks(ran.batch(0))
    with open_cluster(ran.options) as cluster:
        ran.driver(cluster, ran.batch(0)).commit(late)
    ran.run_batch(1)
    batch = ran.batch(2)
    prepared = ran.run_tasks(batch)
    assert prepared[0].transaction is not None
    assert late[0].transaction is not None
    assert prepared[0].transaction.transactional_id == late[0].transaction.transactional_id
    with open_cluster(ran.options) as cluster, pytest.raises(QueryError, match="is older than batch 1"):
        ran.driver(cluster, ran.batch(0)).commit(late)
    ran.commit(batch, prepared)
    check(servers, ran)


def test_a_batch_write_that_another_one_overtook_leaves_it_alone(servers):
    """Batch writes have no run: a later number says that another write is at work."""
    ran = query(servers)
    ran.workers = [TaskProducers()]
    ran.run_batch(0)
    ran.run_batch(1)
    batch = ran.batch(2)
    prepared = ran.run_tasks(batch)
    with open_cluster(ran.options) as cluster:
        ran.driver(cluster, ran.batch(0)).abort([])
    ran.commit(batch, prepared)
    check(servers, ran)
