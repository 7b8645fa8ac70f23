"""Large values of a frame in a store: the functions of the executors, and one query with a session."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.claims import ClaimConsumer, ClaimProducer, PayloadError, StoreError
from barnabas.claims.claim import HEADER, Claim, digest, prefix_of
from barnabas.embedded.broker import Broker
from barnabas.spark import claims as spark_claims
from barnabas.spark.claims import claimed, from_claims, loaded, to_claims
from tests.claims.memory_store import MemoryStore
from tests.spark.session import SPARK, spark

__all__ = ["spark"]
PATIENCE_SECONDS = 60
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def batch(values: list[bytes | str | None], **columns: pa.Array) -> pa.RecordBatch:
    kind = pa.string() if isinstance(values[0], str) else pa.binary()
    return pa.RecordBatch.from_pydict({"value": pa.array(values, kind), **columns})


def stored(store: MemoryStore, rows: pa.RecordBatch, topic: str | None = "t") -> pa.RecordBatch:
    (found,) = claimed([rows], store, lambda each: prefix_of("c", each), topic, 4)
    return found


def test_large_values_become_claims_and_payloads_again() -> None:
    store = MemoryStore()
    headers = pa.array([[{"key": "h", "value": b"x"}], None, None, []], HEADERS)
    rows = batch([b"large", b"sml", None, b"larger"], headers=headers, other=pa.array([1, 2, 3, 4]))
    written = stored(store, rows)
    assert written.schema.names == ["value", "headers", "other"]
    assert written.column("value").to_pylist()[:3] == [
        Claim(f"c/t/{digest(b'large')}", 5, digest(b"large")).encoded(),
        b"sml",
        None,
    ]
    mark = {"key": HEADER, "value": b"1"}
    assert written.column("headers").to_pylist() == [[{"key": "h", "value": b"x"}, mark], None, None, [mark]]
    assert stored(store, rows).equals(written)
    (read,) = loaded([written], store)
    assert read.column("value").to_pylist() == [b"large", b"sml", None, b"larger"]
    assert read.column("headers").to_pylist() == [[{"key": "h", "value": b"x"}], None, None, None]
    assert read.column("other").to_pylist() == [1, 2, 3, 4]


def test_strings_and_rows_without_headers() -> None:
    store = MemoryStore()
    small = stored(store, batch(["a", "é"]))
    assert (small.column("value").to_pylist(), small.column("headers").to_pylist()) == (
        [b"a", "é".encode()],
        [None, None],
    )
    assert not store.files
    assert stored(store, batch(["ééé"])).column("headers").to_pylist() == [[{"key": HEADER, "value": b"1"}]]


def test_rows_name_their_topics() -> None:
    store = MemoryStore()
    stored(store, batch([b"large", b"large"], topic=pa.array(["one", "two"])), None)
    assert {path.split("/")[1] for path in store.files} == {"one", "two"}
    with pytest.raises(ValueError, match="a row has no topic"):
        stored(store, batch([b"large"], topic=pa.array([None], pa.string())), None)


def test_a_header_that_marks_claims_already_is_refused() -> None:
    headers = pa.array([[{"key": HEADER, "value": b"1"}]], HEADERS)
    with pytest.raises(ValueError, match="the header __claim marks a claim"):
        stored(MemoryStore(), batch([b"large"], headers=headers))


def test_payloads_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    values: list[Any] = [b"large-%d" % number for number in range(5)] + [b"s"]
    written = stored(store, batch(values))
    monkeypatch.setattr(spark_claims, "_PIECE_BYTES", 14)
    pieces = list(loaded([written], store))
    assert [each.num_rows for each in pieces] == [2, 2, 2]
    assert [value for each in pieces for value in each.column("value").to_pylist()] == values
    assert list(loaded([written.slice(0, 0)], store)) == []


def test_what_is_gone_names_its_record() -> None:
    place = {"topic": pa.array(["t"]), "partition": pa.array([1]), "offset": pa.array([17])}
    written = stored(MemoryStore(), batch([b"large"], **place))
    with pytest.raises(PayloadError, match="the payload of t-1@17 is gone: memory://store/c/t/"):
        list(loaded([written], MemoryStore()))
    with pytest.raises(PayloadError, match="the payload of a record is gone"):
        list(loaded([written.select(["value", "headers"])], MemoryStore()))
    broken = written.set_column(0, "value", pa.array([b"?"]))
    with pytest.raises(PayloadError, match="the claim of t-1@17 is not valid: its value is not JSON"):
        list(loaded([broken], MemoryStore()))


class Frame:
    """What is asked of a frame before a query runs."""

    def __init__(self, *columns: str) -> None:
        self.columns = list(columns)


@pytest.mark.parametrize(
    ("frame", "options", "error"),
    [
        (Frame("key"), {"topic": "t", "cluster": "c"}, "column value is missing"),
        (Frame("value"), {"cluster": "c"}, "the rows have no column topic: name the topic"),
        (Frame("value"), {"topic": "t"}, "name its addresses with bootstrap, or the cluster itself"),
        (Frame("value"), {"topic": "t", "cluster": "a/b"}, "cannot be a part of a payload's path"),
    ],
)
def test_what_is_missing_is_one_sentence(frame: Any, options: dict[str, Any], error: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=error):
        to_claims(frame, str(tmp_path), **options)


def test_what_is_missing_for_reading(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="column headers is missing: set includeHeaders to true"):
        from_claims(Frame("value"), str(tmp_path))  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="does not exist: create it"):
        from_claims(Frame("value", "headers"), "/no/where")  # type: ignore[arg-type]


class TestWithASession:
    pytestmark = [*SPARK, pytest.mark.conform]

    def test_spark_and_python_read_each_others_payloads(
        self, spark: Any, barnabas_broker: Broker, tmp_path: Path
    ) -> None:
        topic = f"videos-{uuid.uuid4().hex[:8]}"
        barnabas_broker.create_topic(topic, partitions=1)
        cluster = {"kafka.bootstrap.servers": barnabas_broker.bootstrap_servers}
        settings = {"bootstrap.servers": barnabas_broker.bootstrap_servers}
        producer = ClaimProducer(Producer(settings), str(tmp_path))
        producer.produce(topic, b"p" * (3 << 20), "python")
        assert producer.flush(PATIENCE_SECONDS) == 0
        rows = spark.createDataFrame(
            [("spark", bytearray(b"s" * (3 << 20))), ("small", bytearray(b"x"))], "key string, value binary"
        )
        to_claims(rows, str(tmp_path), topic=topic, bootstrap=barnabas_broker.bootstrap_servers).write.format(
            "barnabas"
        ).options(**cluster, topic=topic, queryId="q", batchId=0).mode("append").save()
        source = spark.read.format("barnabas").options(**cluster, subscribe=topic, includeHeaders="true").load()
        found = {bytes(row.key).decode(): bytes(row.value) for row in from_claims(source, str(tmp_path)).collect()}
        wanted = {"python": b"p" * (3 << 20), "spark": b"s" * (3 << 20), "small": b"x"}
        assert found == wanted
        consumer = ClaimConsumer(Consumer({**settings, "group.id": topic}), str(tmp_path))
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert {each.key().decode(): each.value() for each in consumer.consume(3, PATIENCE_SECONDS)} == wanted
        consumer.close()
