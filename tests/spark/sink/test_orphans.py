"""What a query that does not come back leaves open is shown by its sink, and ended as its decision says."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

import barnabas
from barnabas.cli.spark import spark
from barnabas.cli.txn import txn
from barnabas.client.admin import Admin, NewTopic
from barnabas.client.outcome import result
from barnabas.client.wire import BlockingConnection
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import DescribeTransactionsResponse
from barnabas.spark.sink.orphans import OpenSink, open_sinks, query_of
from barnabas.spark.sink.task_producers import open_cluster
from tests.spark.sink.sink_run import Fault, Killed, Query, Watched, committed

BATCHES = [["a", "b", "c", "d"], ["e", "f", "g", "h"]]
CONFIG = {"transaction.two.phase.commit.enable": True}


@pytest.fixture
def servers() -> Iterator[str]:
    with barnabas.Broker(config=CONFIG) as broker:
        yield broker.bootstrap_servers


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def query(servers: str) -> Query:
    topic = f"out-{uuid.uuid4().hex[:8]}"
    with Admin(servers) as admin:
        result(admin.create_topics([NewTopic(topic, 2, 1)])[topic])
    return Query(servers, topic, BATCHES, lambda values: [values[:2], values[2:]], "orders")


def orphans(servers: str, *arguments: str) -> Result:
    return CliRunner().invoke(spark, ["orphans", "-b", servers, *arguments])


def found_by(servers: str) -> list[OpenSink]:
    with Admin(servers) as admin:
        return open_sinks(admin.cluster, now_ms())


def test_nothing_is_open(servers):
    query(servers).run()
    assert orphans(servers).output == "no transaction of a Spark sink is open\n"
    assert json.loads(orphans(servers, "--output", "json").output) == []


def test_tasks_of_a_dead_query_are_named_and_aborted(servers):
    ran = query(servers)
    ran.begin()
    ran.run_tasks(ran.batch(0))
    (shown,) = json.loads(orphans(servers, "--output", "json").output)
    assert (shown["sink"], shown["transactions"], shown["topics"]) == ("barnabas-sink/orders", 2, [ran.options.topic])
    assert orphans(servers, "--longer-than", "1h").output == "no transaction of a Spark sink is open\n"

    ended = orphans(servers, "--abort", "barnabas-sink/orders", "--output", "json")
    assert json.loads(ended.output) == [{"sink": "barnabas-sink/orders", "committed": 0, "aborted": 2}]
    assert found_by(servers) == []
    # The query may come back all the same.
    ran.run()
    assert committed(servers, ran.options.topic) == Counter(value for batch in BATCHES for value in batch)


def test_what_was_decided_is_committed(servers):
    """Killed between its decision and its commits."""
    ran = query(servers)
    ran.begin()
    batch = ran.batch(0)
    prepared = ran.run_tasks(batch)
    with open_cluster(ran.options, KilledInItsCommits().connect) as cluster, pytest.raises(Killed):
        ran.driver(cluster, batch).commit(prepared)
    assert [(each.name, each.transactions) for each in found_by(servers)] == [("barnabas-sink/orders", 2)]
    ended = orphans(servers, "--abort", "barnabas-sink/orders", "--output", "json")
    assert json.loads(ended.output) == [{"sink": "barnabas-sink/orders", "committed": 2, "aborted": 0}]
    assert committed(servers, ran.options.topic) == Counter(BATCHES[0])


class KilledInItsCommits(Watched):
    """The first EndTxn is that of the decision, and the second is not sent."""

    def count(self, name: str) -> Fault | None:
        super().count(name)
        return Fault.KILLED_BEFORE if self.seen.count("EndTxn") == 2 else None


def test_a_sink_without_open_transactions_cannot_be_ended(servers):
    found = orphans(servers, "--abort", "barnabas-sink/other")
    assert found.exit_code == 1
    assert "sink barnabas-sink/other has no such transaction" in found.output
    assert "Missing argument" in orphans(servers, "--abort").output


class Refused(BlockingConnection):
    """The coordinator does not describe transactions to this client."""

    def receive(self, *, timeout_ms: int | None = None) -> Any:
        answer = super().receive(timeout_ms=timeout_ms)
        if isinstance(answer, DescribeTransactionsResponse):
            for each in answer.transaction_states:
                each.error_code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return answer


def test_a_coordinator_that_refuses_is_not_taken_for_nothing_open(servers):
    ran = query(servers)
    ran.begin()
    ran.run_tasks(ran.batch(0))
    with (
        open_cluster(ran.options, Refused) as cluster,
        pytest.raises(KafkaError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
    ):
        open_sinks(cluster, now_ms())


@pytest.fixture
def hours_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands run two hours and a half after the queries."""
    begun = time.time()
    later = SimpleNamespace(time=lambda: begun + 2.5 * 3600)
    for module in ("spark", "txn"):
        monkeypatch.setattr(f"barnabas.cli.{module}.time", later)


@pytest.mark.usefixtures("hours_later")
def test_a_dead_query_was_last_seen_long_ago(servers):
    ran = query(servers)
    ran.begin()
    ran.run_tasks(ran.batch(0))
    (shown,) = json.loads(orphans(servers, "--output", "json").output)
    assert re.fullmatch(r"2h(29|30)m ago", shown["last_sign"])


@pytest.mark.usefixtures("hours_later")
def test_the_doctor_names_the_sink(servers):
    ran = query(servers)
    ran.begin()
    ran.run_tasks(ran.batch(0))
    rows = json.loads(CliRunner().invoke(txn, ["doctor", "-b", servers, "--output", "json"]).output)
    advice = {re.sub("2h(29|30)m", "2h30m", row["advice"]) for row in rows}
    assert advice == {
        "a Spark query's, last sign of life 2h30m ago; if it is dead: barnabas spark orphans --abort barnabas-sink/orders"
    }


def test_a_query_that_works_was_seen_a_moment_ago(servers):
    begun_ms = now_ms()
    ran = query(servers)
    ran.begin()
    ran.run_tasks(ran.batch(0))
    (sink,) = found_by(servers)
    assert sink.seen_ms >= sink.since_ms >= begun_ms


def test_the_query_in_a_name():
    assert query_of("shop/orders") == "orders"
