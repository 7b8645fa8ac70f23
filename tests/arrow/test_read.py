"""`barnabas.read`: both ends are fixed at the call, and each committed record between them comes once."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import confluent_kafka
import pytest

import barnabas
from barnabas.arrow import DataLoss, QueryError
from barnabas.arrow.read import READ_WORDS, reading_options
from barnabas.client.admin import Admin, TopicPartition, results
from barnabas.client.group_offsets import CommittedOffset
from tests.arrow.conftest import create
from tests.arrow.consumed import consumed
from tests.hidden_packages import hide

COMMITTED = CommittedOffset(40)


def offsets(servers: str, topic: str = "sales", **more) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for row in barnabas.read(topic, bootstrap=servers, columns=["partition", "offset"], **more).table().to_pylist():
        found.setdefault(row["partition"], []).append(row["offset"])
    return found


def span(first: int, last: int) -> dict[int, list[int]]:
    return {partition: list(range(first, last)) for partition in range(3)}


@pytest.mark.parametrize(
    ("from_", "to", "first", "last"),
    [
        ("earliest", "latest", 0, 100),
        (97, "latest", 97, 100),
        ("-3", "latest", 97, 100),
        ("+2", 5, 2, 5),
        ({0: 10, 1: 10, 2: 10}, {0: 12, 1: 12, 2: 12}, 10, 12),
        ('{"sales":{"0":-2,"1":-2,"2":-2}}', "+1", 0, 1),
        ("@1700000000150", "@1700000000180", 50, 60),
        ("2023-11-14T22:13:20.150", "latest", 50, 100),
        ("-1h", "latest", 0, 0),
    ],
)
def test_ranges(servers, from_, to, first, last):
    assert offsets(servers, from_=from_, to=to) == (span(first, last) if last > first else {})


def test_some_partitions(servers):
    assert offsets(servers, partitions=[1], from_="-2") == {1: [98, 99]}


def test_what_a_group_has_read(servers):
    with Admin(servers) as admin:  # it waits until the group's coordinator is there
        results(admin.alter_group_offsets("shop", {TopicPartition("sales", each): COMMITTED for each in range(3)}))
    assert offsets(servers, to="group:shop") == span(0, 40)
    assert offsets(servers, from_="group:shop") == span(40, 100)
    with pytest.raises(ValueError, match=r"group shpo has no offsets .*did you mean shop"):
        offsets(servers, to="group:shpo")


def test_two_topics(servers):
    create(servers, "refunds")
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    producer.produce("refunds", b"1")
    producer.flush()
    table = barnabas.read(["sales", "refunds"], bootstrap=servers, columns=["topic"]).table()
    assert {name: table["topic"].to_pylist().count(name) for name in ("sales", "refunds")} == {
        "sales": 300,
        "refunds": 1,
    }


def test_aborted_and_open_transactions(servers):
    """Offsets 0-4 are committed, 5 is the marker, 6-10 aborted, 11 the marker, 12-16 committed, 18-22 open."""
    create(servers, "transactions")
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": "t"})
    producer.init_transactions()
    for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction, producer.flush):
        producer.begin_transaction()
        for _ in range(5):
            producer.produce("transactions", b"x")
        producer.flush()
        end()
    committed = [*range(5), *range(12, 17)]
    try:
        assert offsets(servers, "transactions") == {0: committed}
        assert committed == [each.offset for each in consumed(servers, "transactions", 1)]
        every = [*committed, *range(6, 11), *range(18, 23)]
        assert offsets(servers, "transactions", isolation="read_uncommitted") == {0: sorted(every)}
        with pytest.raises(QueryError, match=r"transaction is still open for 500 ms \(timeout_ms\).*txn doctor"):
            offsets(servers, "transactions", to=20, timeout_ms=500)
    finally:
        producer.abort_transaction()
    assert offsets(servers, "transactions", to=20) == {0: committed}


def test_a_start_that_was_trimmed_is_said(servers):
    create(servers, "trimmed")
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for _ in range(10):
        producer.produce("trimmed", b"x")
        producer.flush()
    before = barnabas.read("trimmed", bootstrap=servers, columns=["offset"])
    with Admin(servers) as admin:
        results(admin.delete_records({TopicPartition("trimmed", 0): 4}))
    assert offsets(servers, "trimmed") == {0: list(range(4, 10))}
    for asked in (lambda: offsets(servers, "trimmed", from_=0), before.table):
        with pytest.raises(DataLoss, match=r"Offsets 0 to 3 of trimmed-0 are gone.*fail_on_data_loss=False"):
            asked()
    assert offsets(servers, "trimmed", from_=0, fail_on_data_loss=False) == {0: list(range(4, 10))}


@pytest.mark.long
def test_a_compacted_topic(servers):
    create(servers, "latest", cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01")
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    deadline = time.monotonic() + 120
    wanted: list[int] = []
    while len(wanted) in (0, wanted[-1] + 1 if wanted else 0):  # until there is a gap
        assert time.monotonic() < deadline, "nothing was compacted"
        producer.produce("latest", b"v", b"key")
        producer.flush()
        time.sleep(0.2)
        wanted = [each.offset for each in consumed(servers, "latest", 1)]
    assert offsets(servers, "latest", to=wanted[-1] + 1) == {0: wanted}


def test_a_cut(servers):
    with Admin(servers) as admin:
        admin.store_cut("monday", admin.take_cut(["sales"], now_ms=1_763_712_000_000))
    assert offsets(servers, to="cut:monday") == span(0, 100)
    assert offsets(servers, from_="cut:monday") == {}


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ({"columns": ["ofset"]}, "columns has 'ofset'.*did you mean offset"),
        ({"columns": ["key", "key"]}, "a name twice"),
        ({"value": "avro"}, "value must be binary or text"),
        ({"isolation": "serializable"}, "isolation must be"),
        ({"from_": {0: 5}}, "If from_ contains specific offsets, you must specify all"),
        ({"from_": 50, "to": 40}, "start offset 50 is greater .*Correct from_ or to"),
        ({"bootstrap": "localhost:port"}, "localhost:port"),
    ],
)
def test_what_is_not_valid(servers, more, complaint):
    with pytest.raises(ValueError, match=complaint):
        barnabas.read("sales", **{"bootstrap": servers, **more})


def test_a_topic_that_does_not_exist(servers):
    with pytest.raises(barnabas.KafkaError, match="topic sale does not exist; did you mean sales"):
        barnabas.read("sale", bootstrap=servers)
    with pytest.raises(ValueError, match="at least one topic"):
        barnabas.read([], bootstrap=servers)


def test_it_needs_no_spark(servers, tmp_path):
    hide(tmp_path, "pyspark", "pandas", "duckdb")
    program = f"import barnabas; print(barnabas.read('sales', bootstrap='{servers}').table().num_rows)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
    assert (done.stdout, done.returncode) == ("300\n", 0), done.stderr


def test_security_is_used_and_not_shown() -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{module} required username="alice" password="hunter2";',
    }
    options = reading_options(["sales"], "localhost:9092", 1_000, "read_committed", READ_WORDS, security=settings)
    made = options.security.client()
    assert made is not None
    assert (made.protocol, made.mechanism_name) == ("SASL_PLAINTEXT", "PLAIN")
    assert "hunter2" not in repr(options)
    with pytest.raises(ValueError, match=r"ssl\.truststore\.location: cannot read /nowhere"):
        barnabas.read("sales", security={"security.protocol": "SSL", "ssl.truststore.location": "/nowhere"})
