"""Which producers a worker uses again, and when."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import barnabas
from barnabas.client.admin import Admin
from barnabas.client.cluster_metadata import TopicPartition
from barnabas.client.producer import EncodedRecords
from barnabas.client.producer_transactions import end_transactions
from barnabas.records.builder import encode_record
from barnabas.spark.sink import task_producers
from barnabas.spark.sink.kept_ids import KeptIds
from barnabas.spark.sink.options import SinkOptions, parse_stream_options
from barnabas.spark.sink.sink_batch import SinkBatch
from barnabas.spark.sink.task_producers import TaskProducers, lasting_cluster, of_this_process

pytestmark = pytest.mark.slow
ROW = EncodedRecords(encode_record(0, 0, None, b"row"), 1, 0, 0)


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as running:
        running.create_topic("rows")
        yield running


@pytest.fixture
def options(broker: barnabas.Broker) -> SinkOptions:
    return parse_stream_options({"kafka.bootstrap.servers": broker.bootstrap_servers})


def use(
    producers: TaskProducers, options: SinkOptions, batch: int, sink: str = "s", end: bool | None = True
) -> str | None:
    """Write a row; the driver commits the transaction, or aborts it, or dies."""
    wanted = SinkBatch(sink, "q", "r", batch)
    producer = producers.begin(options, wanted)
    producer.send(TopicPartition("rows", 0), ROW)
    producer.flush()
    if end is not None:
        found = end_transactions(producers.cluster(options), [producer.transaction], commit=end, timeout_ms=10_000)
        assert found == {producer.transaction: None}
    producers.keep(options, wanted, producer)
    return producer.transactional_id


def test_a_producer_serves_again_two_batches_later(options):
    producers = TaskProducers(worker="w")
    used = [use(producers, options, batch) for batch in (0, 0, 1, 2, 2, 3, 3)]
    assert used == ["s/w/0", "s/w/1", "s/w/2", "s/w/0", "s/w/1", "s/w/2", "s/w/3"]


def test_a_batch_that_is_repeated_gets_other_producers(options):
    producers = TaskProducers(worker="w")
    assert len({use(producers, options, 5) for _ in range(4)}) == 4
    assert use(producers, options, 4) == "s/w/4"


def test_each_sink_has_its_own(options):
    producers = TaskProducers(worker="w")
    assert use(producers, options, 0, "one") == "one/w/0"
    assert use(producers, options, 9, "other") == "other/w/1"


def test_each_cluster_has_its_own(options):
    """A query may write to two clusters under one name."""
    producers = TaskProducers(worker="clusters")
    assert use(producers, options, 0) == "s/clusters/0"
    with barnabas.Broker() as other:
        other.create_topic("rows")
        there = parse_stream_options({"kafka.bootstrap.servers": other.bootstrap_servers})
        assert use(producers, there, 2) == "s/clusters/1"
        with Admin(other.bootstrap_servers) as admin:
            assert [each.transactional_id for each in admin.list_transactions()] == ["s/clusters/1"]
    assert use(producers, options, 2) == "s/clusters/0"


def test_the_ids_of_a_worker_that_is_gone_serve_the_next_one(options, tmp_path):
    """Every batch has a new worker; the ids are those of the first two."""
    used = []
    for batch in range(8):
        kept = KeptIds(tmp_path, f"worker{batch}")
        producers = TaskProducers(worker=f"worker{batch}", kept=kept)
        used += [use(producers, options, batch, "kept") for _ in range(2)]
        kept.close()
    assert len(set(used)) == 4


def test_an_id_of_a_worker_that_is_gone_is_not_used_without_its_commit(options, tmp_path):
    for batch, end in enumerate((False, True, True)):
        kept = KeptIds(tmp_path, f"lost{batch}")
        producers = TaskProducers(worker=f"lost{batch}", kept=kept)
        assert use(producers, options, batch, "lost", end) == f"lost/lost{batch}/0"
        kept.close()


def test_a_producer_that_was_fenced_is_replaced(broker, options):
    producers = TaskProducers(worker="fenced")
    assert use(producers, options, 0) == "s/fenced/0"
    with Admin(broker.bootstrap_servers) as admin:
        admin.fence_producers(["s/fenced/0"])
    assert use(producers, options, 2) == "s/fenced/1"


def test_a_new_epoch_for_every_transaction(options):
    producers = TaskProducers(worker="epochs")
    used = [use(producers, options, batch) for batch in (0, 2, 4)]
    assert used == ["s/epochs/0"] * 3
    assert producers.begin(options, SinkBatch("s", "q", "r", 6)).transaction.epoch == 3


@pytest.mark.parametrize("end", [False, None], ids=["aborted", "open"])
def test_an_id_whose_transaction_was_not_committed_is_never_used_again(options, end):
    producers = TaskProducers(worker=f"not-committed-{end}")
    first = use(producers, options, 0, end=end)
    assert use(producers, options, 2) != first
    assert use(producers, options, 4) != first


def test_a_worker_forgets_the_oldest(options, monkeypatch):
    monkeypatch.setattr(task_producers, "_KEPT", 2)
    producers = TaskProducers(worker="few")
    for _ in range(3):
        use(producers, options, 0)
    assert [use(producers, options, 2) for _ in range(3)] == ["s/few/1", "s/few/2", "s/few/3"]


def test_one_for_each_process(monkeypatch):
    mine = of_this_process()
    assert of_this_process() is mine
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert of_this_process() is not mine
    monkeypatch.undo()
    task_producers._of_process.clear()


def test_the_drivers_connections_outlive_a_batch(options):
    with lasting_cluster(options) as first:
        connection = first.any_connection()
    with lasting_cluster(options) as second:
        assert second.any_connection() is connection


def test_an_error_closes_the_drivers_connections(options):
    with lasting_cluster(options) as first:
        connection = first.any_connection()
    with pytest.raises(ZeroDivisionError), lasting_cluster(options):
        _ = 1 / 0
    assert connection.closed
    with lasting_cluster(options) as second:
        assert second.any_connection() is not connection


def test_a_fork_has_connections_of_its_own(options, monkeypatch):
    with lasting_cluster(options) as parents:
        connection = parents.any_connection()
    with monkeypatch.context() as forked:
        forked.setattr("os.getpid", lambda: -1)
        with lasting_cluster(options) as childs:
            assert childs.any_connection() is not connection
