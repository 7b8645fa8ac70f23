"""Which producers a worker uses again, and when."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import barnabas
from barnabas.client.admin import Admin
from barnabas.spark.sink import task_producers
from barnabas.spark.sink.options import SinkOptions, parse_stream_options
from barnabas.spark.sink.protocol import SinkBatch
from barnabas.spark.sink.task_producers import TaskProducers, of_this_process

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker() -> Iterator[barnabas.Broker]:
    with barnabas.Broker() as running:
        yield running


@pytest.fixture
def options(broker: barnabas.Broker) -> SinkOptions:
    return parse_stream_options({"kafka.bootstrap.servers": broker.bootstrap_servers})


def use(producers: TaskProducers, options: SinkOptions, batch: int, sink: str = "s") -> str | None:
    wanted = SinkBatch(sink, "q", "r", batch)
    producer = producers.begin(options, wanted)
    producers.keep(wanted, producer)
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


def test_a_producer_that_was_fenced_is_replaced(broker, options):
    producers = TaskProducers(worker="fenced")
    assert use(producers, options, 0) == "s/fenced/0"
    with Admin(broker.bootstrap_servers) as admin:
        admin.fence_producers(["s/fenced/0"])
    assert use(producers, options, 2) == "s/fenced/1"


def test_a_new_epoch_for_every_transaction(options):
    producers = TaskProducers(worker="epochs")
    epochs = []
    for batch in (0, 2, 4):
        wanted = SinkBatch("s", "q", "r", batch)
        producer = producers.begin(options, wanted)
        epochs.append(producer.transaction.epoch)
        producers.keep(wanted, producer)
    assert epochs == [0, 1, 2]


def test_a_worker_forgets_the_oldest(options, monkeypatch):
    monkeypatch.setattr(task_producers, "_KEPT", 2)
    producers = TaskProducers(worker="few")
    for _ in range(3):
        use(producers, options, 0)
    assert [use(producers, options, 2) for _ in range(3)] == ["s/few/1", "s/few/2", "s/few/3"]


def test_one_for_each_process(monkeypatch):
    mine = of_this_process()
    assert of_this_process() is mine
    monkeypatch.setattr(task_producers.os, "getpid", lambda: -1)
    assert of_this_process() is not mine
    monkeypatch.undo()
    task_producers._of_process.clear()
