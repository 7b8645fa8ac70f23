"""The sink's options: defaults, refusals, and the table in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barnabas.records.compression import Compression
from barnabas.spark.option_names import SINK_OPTIONS
from barnabas.spark.sink.options import Delivery, parse_batch_options, parse_stream_options

SERVERS = {"kafka.bootstrap.servers": "h:9092"}
DOCS = Path(__file__).parents[3] / "docs" / "spark-sink.md"


def test_a_stream_is_exactly_once():
    found = parse_stream_options({**SERVERS, "Topic": "t"})
    assert (found.delivery, found.topic, found.prefix) == (Delivery.EXACTLY_ONCE, "t", "barnabas-sink")
    assert found.sink_name("q") == "barnabas-sink/q"


def test_two_sinks_never_have_one_name():
    """Prefix `shop` and query `eu-orders`, and prefix `shop-eu` and query `orders`."""
    names = []
    for prefix, query in (("shop", "eu-orders"), ("shop-eu", "orders")):
        given = {"transactionalIdPrefix": prefix, "queryId": query, "batchId": "1"}
        names.append(parse_batch_options({**SERVERS, **given}).sink_name(query))
    assert names == ["shop/eu-orders", "shop-eu/orders"]


def test_a_batch_write_is_exactly_once_only_with_its_ids():
    assert parse_batch_options(SERVERS).delivery is Delivery.AT_LEAST_ONCE
    with_ids = parse_batch_options({**SERVERS, "queryId": "orders", "batchId": "7"})
    assert (with_ids.delivery, with_ids.query, with_ids.batch) == (Delivery.EXACTLY_ONCE, "orders", 7)


def test_producer_settings():
    given = {
        "kafka.compression.type": "zstd",
        "kafka.transaction.timeout.ms": "60000",
        "kafka.delivery.timeout.ms": "5000",
        "kafka.request.timeout.ms": "4000",
        "kafka.max.request.size": "2000",
        "kafka.client.id": "me",
        "kafka.acks": "all",
        "kafka.linger.ms": "5",
        "transactionalIdPrefix": "shop",
        "delivery": "at-least-once",
    }
    found = parse_stream_options({**SERVERS, **given})
    assert found.compression is Compression.ZSTD
    assert (found.transaction_timeout_ms, found.chooses_timeout) == (60_000, True)
    assert (found.delivery_timeout_ms, found.request_timeout_ms, found.max_request_bytes) == (5_000, 4_000, 2_000)
    assert (found.client_id, found.prefix, found.delivery) == ("me", "shop", Delivery.AT_LEAST_ONCE)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kafka.bootstrap.servers": " "}, "'kafka.bootstrap.servers' must be specified"),
        ({"kafka.bootstrap.servers": "h"}, "'h' has no port: write host:port"),
        ({"delivery": "twice"}, "delivery must be exactly-once or at-least-once, not 'twice'"),
        ({"kafka.acks": "1"}, "kafka.acks '1' is not supported"),
        ({"kafka.enable.idempotence": "false"}, "kafka.enable.idempotence 'false' is not supported"),
        ({"kafka.security.protocol": "TLS"}, "kafka.security.protocol: TLS is not one of"),
        ({"kafka.sasl.mechanism": "PLAIN"}, "kafka.sasl.mechanism is given without kafka.security.protocol"),
        ({"kafka.transactional.id": "x"}, "name them with transactionalIdPrefix"),
        ({"kafka.key.serializer": "x"}, "keys are serialized with ByteArraySerializer"),
        ({"kafka.compression.type": "rar"}, "kafka.compression.type: unknown compression"),
        ({"transactionalIdPrefix": "a/b"}, "transactionalIdPrefix 'a/b' has a slash"),
        ({"kafka.transaction.timeout.ms": "0"}, "kafka.transaction.timeout.ms must be positive"),
        ({"batchId": "1"}, "batchId is for batch writes"),
        ({"createTopics": "orders"}, "createTopics has 'orders': write NAME:PARTITIONS"),
        ({"failOnDiferentBatch": "false"}, "'failondiferentbatch' is unknown; did you mean failOnDifferentBatch?"),
        ({"failOnDifferentBatch": "no"}, "failOnDifferentBatch must be true or false, not 'no'"),
    ],
)
def test_refusals(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_stream_options({**SERVERS, **given})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delivery": "exactly-once"}, "needs the options queryId and batchId"),
        ({"queryId": "q"}, "queryId and batchId belong together"),
        ({"batchId": "1"}, "queryId and batchId belong together"),
        ({"queryId": "a/b", "batchId": "1"}, "queryId 'a/b' is not a valid name"),
        ({"queryId": "q", "batchId": "-1"}, "batchId must not be negative"),
        ({"queryId": "q", "batchId": "one"}, "batchId must be a whole number, not 'one'"),
    ],
)
def test_refusals_of_batch_writes(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_batch_options({**SERVERS, **given})


def test_the_docs_have_every_option_with_its_default():
    rows = dict(re.findall(r"^\| `([\w.]+)` \|([^|]*)\|", DOCS.read_text(), re.MULTILINE))
    default = parse_stream_options(SERVERS)
    expected = {
        "transactionalIdPrefix": default.prefix,
        "kafka.transaction.timeout.ms": str(default.transaction_timeout_ms),
        "kafka.delivery.timeout.ms": str(default.delivery_timeout_ms),
        "kafka.request.timeout.ms": str(default.request_timeout_ms),
        "kafka.max.request.size": str(default.max_request_bytes),
        "kafka.compression.type": default.compression.codec_name,
        "kafka.client.id": default.client_id,
        "failOnDifferentBatch": str(default.fail_on_different).lower(),
    }
    for name, value in expected.items():
        assert rows[name].strip().strip("`") == value
    assert {"kafka.bootstrap.servers", *SINK_OPTIONS} - {"checkpointLocation"} <= rows.keys()
