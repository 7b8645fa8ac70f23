"""SQL over topics: a topic is a table, all tables have one cut, and errors are one sentence."""

from __future__ import annotations

import confluent_kafka
import pytest

from barnabas.arrow import DataLoss, NoSuchTable, NotText, StatementError, TopicQuery
from barnabas.arrow.sql import named_topics
from barnabas.client.admin import Admin, TopicPartition, results
from tests.arrow.conftest import create
from tests.arrow.consumed import consumed


def answer(servers: str, statement: str, **more) -> list[tuple]:
    with Admin(servers) as admin:
        names = [each.name for each in admin.list_topics(internal=True)]
    with TopicQuery(statement, names, bootstrap=servers, **more) as query:
        return [row for page in query.pages() for row in page]


def test_sums_are_those_of_an_independent_consumer(servers):
    wanted = sum(int(each.value.decode()[6:-1]) for each in consumed(servers, "sales", 3))
    assert answer(servers, "SELECT sum((value->>'$.n')::int), count(key) FROM sales") == [(wanted, 100)]
    assert answer(servers, "SELECT sum(value.n::int) FROM sales", value="json") == [(wanted,)]


def test_a_topic_that_is_named_twice_has_its_records_on_both_sides(servers):
    join = 'FROM sales a JOIN sales b USING (partition, "offset")'
    assert answer(servers, f"SELECT count(*), min(b.value) {join}", from_="-2") == [(6, '{"n": 294}')]
    assert answer(servers, "SELECT count(*) FROM (FROM sales UNION ALL FROM sales)") == [(600,)]
    nested = "WITH s AS (FROM sales) SELECT count(*) FROM s WHERE value IN (SELECT max(value) FROM sales)"
    assert answer(servers, nested) == [(1,)]


def test_topics_with_other_signs_and_a_join(servers):
    create(servers, "re-funds.v1")
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    producer.produce("re-funds.v1", b'{"n": 7}', b"\xff")
    producer.flush()
    join = "SELECT s.value->>'$.n' FROM sales s JOIN \"re-funds.v1\" r ON s.value->>'$.n' = r.value->>'$.n'"
    assert answer(servers, join) == [("7",)]
    assert answer(servers, 'SELECT count(*) FROM "re-funds.v1"') == [(1,)]  # reads no key
    with pytest.raises(NotText, match=r"the key at offset 0 of re-funds\.v1-0"):
        answer(servers, 'SELECT key FROM "re-funds.v1"')
    assert answer(servers, 'SELECT key FROM "re-funds.v1"', key="binary") == [(b"\xff",)]


def test_times(servers):
    statement = "SELECT count(*) FROM sales WHERE timestamp < TIMESTAMPTZ '2023-11-14 22:13:20.150Z'"
    assert answer(servers, statement) == [(150,)]
    assert answer(servers, "SELECT count(*) FROM sales", from_="@1700000000150") == [(150,)]


def test_a_statement_that_makes_a_file(servers, tmp_path):
    path = tmp_path / "sales.parquet"
    assert answer(servers, f"COPY (SELECT value FROM sales) TO '{path}'") == [(300,)]
    assert answer(servers, f"SELECT count(*) FROM '{path}'") == [(300,)]


@pytest.mark.parametrize(
    ("statement", "error", "complaint"),
    [
        ("SELECT * FROM sale", NoSuchTable, "^topic sale does not exist$"),
        ("SELECT * FROM answer", NoSuchTable, "topic answer"),
        ("SELEC 1", StatementError, 'syntax error at or near "SELEC"'),
        ("SELECT nix FROM sales", StatementError, '^Referenced column "nix" not found'),
        ("SELECT value::int FROM sales", StatementError, "Could not convert"),
        ("SELECT 1; SELECT 2", StatementError, "one statement, not 2"),
        ("", StatementError, "one statement, not 0"),
    ],
)
def test_errors_are_one_sentence(servers, statement, error, complaint):
    with pytest.raises(error, match=complaint) as raised:
        answer(servers, statement)
    assert "\n" not in str(raised.value)


def test_records_that_are_gone(servers):
    create(servers, "trimmed")
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for value in (b"a", b"b"):
        producer.produce("trimmed", value)
        producer.flush()
    with Admin(servers) as admin:
        results(admin.delete_records({TopicPartition("trimmed", 0): 1}))
    assert answer(servers, "SELECT value FROM trimmed") == [("b",)]
    with pytest.raises(DataLoss, match=r"Offsets 0 to 0 of trimmed-0 are gone.*--from earliest"):
        answer(servers, "SELECT count(*) FROM trimmed", from_=0)


def test_the_topics_that_a_statement_names():
    topics = ["orders", "Orders", "my-topic", "pay", "x"]
    assert named_topics("SELECT o FROM \"my-topic\" m, 'pay' p", topics) == ["my-topic", "pay"]
    assert named_topics("SELECT * FROM orders, PAY", topics) == ["orders", "pay"]
    assert named_topics("SELECT * FROM my-topic", topics) == []
    for either in ("SELECT * FROM ORDERS", "SELECT * FROM orders, Orders"):
        with pytest.raises(StatementError, match="does not tell the topics Orders and orders apart"):
            named_topics(either, topics)
