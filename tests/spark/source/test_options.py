"""Options have Spark's names, and invalid ones are rejected with Spark's messages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barnabas.spark import given_options
from barnabas.spark.option_names import SOURCE_OPTIONS
from barnabas.spark.security_options import NO_SECURITY
from barnabas.spark.source import columns as columns_module
from barnabas.spark.source import options as options_module
from barnabas.spark.source.columns import DEFAULT
from barnabas.spark.source.offsets import ByCut, ByGroup, ByPartitionTimestamp, ByTimestamp, Earliest, Latest, Specific
from barnabas.spark.source.options import (
    Assign,
    IsolationLevel,
    Subscribe,
    SubscribePattern,
    TimestampStrategy,
    check_options,
    duration_ms,
    parse_batch_options,
    parse_stream_options,
)

NOW_MS = 1_763_712_000_000
MINIMAL = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}


def batch(**options: str):
    return parse_batch_options(MINIMAL | options, NOW_MS)


def stream(**options: str):
    return parse_stream_options(MINIMAL | options, NOW_MS)


def test_defaults_of_a_batch():
    options = batch()
    assert options.topics == Subscribe(("orders",))
    assert (options.starting, options.ending) == (Earliest(), Latest())
    assert options.fail_on_data_loss
    assert options.timestamp_strategy is TimestampStrategy.ERROR
    assert options.consumer.isolation_level is IsolationLevel.READ_COMMITTED
    assert options.max_trigger_delay_ms == 15 * 60_000
    assert (options.min_partitions, options.max_records_per_partition, options.group_id) == (None, None, None)
    assert options.consumer.client_id == "spark-kafka-source"

    assert options.consumer.check_crcs
    assert options.columns == DEFAULT


def test_isolation_levels_have_the_values_of_the_protocol():
    assert (IsolationLevel.READ_UNCOMMITTED.value, IsolationLevel.READ_COMMITTED.value) == (0, 1)


def test_a_stream_begins_at_the_end_by_default():
    assert stream().starting == Latest()
    assert stream(startingOffsets="earliest").starting == Earliest()


def test_names_are_compared_without_case():
    options = parse_batch_options(
        {"KAFKA.bootstrap.SERVERS": "b:1", "SubScribe": "a , b,a", "MINPARTITIONS": "7", "includeheaders": "TRUE"},
        NOW_MS,
    )
    assert options.bootstrap_servers == "b:1"
    assert options.topics == Subscribe(("a", "b"))
    assert options.min_partitions == 7
    assert options.columns == (*DEFAULT, "headers")


def test_the_three_ways_to_name_topics():
    servers = {"kafka.bootstrap.servers": "b:1"}
    assert parse_batch_options(servers | {"subscribePattern": " shop.* "}, 0).topics == SubscribePattern("shop.*")
    assign = parse_batch_options(servers | {"assign": '{"b":[1,0],"a":[2]}'}, 0).topics
    assert assign == Assign((("a", 2), ("b", 0), ("b", 1)))


REFUSED = [
    (
        {"subscribe": None},
        "One of the following options must be specified for Kafka source: subscribe, subscribePattern, assign",
    ),
    ({"assign": '{"a":[0]}'}, "Only one of the following options can be specified for Kafka source"),
    ({"subscribe": " , "}, "No topics to subscribe to as specified value for option 'subscribe' is ' , '"),
    ({"subscribe": None, "assign": "a"}, "No topicpartitions to assign as specified value for option 'assign' is 'a'"),
    ({"subscribe": None, "assign": '{"a":["x"]}'}, 'Expected e.g. {"topicA":[0,1],"topicB":[0,1]}, got {"a":["x"]}'),
    ({"subscribe": None, "subscribePattern": " "}, "Pattern to subscribe is empty"),
    ({"subscribe": None, "subscribePattern": "("}, "is not a valid regular expression"),
    (
        {"kafka.bootstrap.servers": None},
        "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer",
    ),
    ({"minPartitions": "0"}, "minPartitions must be positive"),
    ({"maxRecordsPerPartition": "-1"}, "maxRecordsPerPartition must be positive"),
    ({"fetchOffset.numRetries": "-1"}, "fetchOffset.numRetries must not be negative"),
    ({"maxOffsetsPerTrigger": "many"}, "maxOffsetsPerTrigger must be a whole number, not 'many'"),
    ({"failOnDataLoss": "maybe"}, "failOnDataLoss must be true or false, not 'maybe'"),
    ({"startingOffsetsByTimestampStrategy": "skip"}, "startingOffsetsByTimestampStrategy must be error or latest"),
    ({"kafka.isolation.level": "serializable"}, "kafka.isolation.level must be read_uncommitted or read_committed"),
    ({"kafka.auto.offset.reset": "latest"}, "Kafka option 'auto.offset.reset' is not supported"),
    ({"kafka.key.deserializer": "x"}, "Kafka option 'key.deserializer' is not supported"),
    ({"kafka.value.deserializer": "x"}, "Kafka option 'value.deserializer' is not supported"),
    ({"kafka.enable.auto.commit": "true"}, "Kafka option 'enable.auto.commit' is not supported"),
    ({"kafka.interceptor.classes": "x"}, "Kafka option 'interceptor.classes' is not supported"),
    ({"kafka.security.protocol": "TLS"}, "kafka.security.protocol: TLS is not one of"),
    ({"kafka.ssl.truststore.location": "x"}, "kafka.ssl.truststore.location is given without kafka.security.protocol"),
    (
        {"startingOffsets": "first"},
        'Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got first; or earliest, latest, group:NAME, cut:NAME, '
        "a time (2026-11-21T08:00), a time before now (-10m)",
    ),
    ({"startingTimestamp": "yesterday"}, "'yesterday' is not a valid timestamp"),
    ({"maxTriggerDelay": "soon"}, "'soon' is not a valid duration"),
    ({"minRecordAge": "old"}, "'old' is not a valid duration"),
]


@pytest.mark.parametrize(
    ("change", "sentence"), REFUSED, ids=[str(sorted(change)) + str(i) for i, (change, _) in enumerate(REFUSED)]
)
@pytest.mark.parametrize("parse", [parse_batch_options, parse_stream_options], ids=["batch", "stream"])
def test_rejected_by_batch_and_stream(parse, change, sentence):
    options = {name: value for name, value in (MINIMAL | change).items() if value is not None}
    with pytest.raises(ValueError) as caught:
        parse(options, NOW_MS)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"startingOffsets": "latest"}, "starting offset can't be latest for batch queries on Kafka"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, "startingOffsets for t-0 can't be latest for batch queries on Kafka"),
        ({"endingOffsets": "earliest"}, "ending offset can't be earliest for batch queries on Kafka"),
        ({"endingOffsets": '{"t":{"3":-2}}'}, "ending offset for t-3 can't be earliest for batch queries on Kafka"),
    ],
)
def test_rejected_by_a_batch(change, sentence):
    with pytest.raises(ValueError) as caught:
        batch(**change)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_a_stream_has_no_end(name):
    with pytest.raises(ValueError, match="ending offset not valid in streaming queries"):
        stream(**{name: "latest"})


def test_a_stream_rejects_a_minimum_over_the_maximum():
    with pytest.raises(ValueError, match=r"minOffsetPerTrigger\(10\) is higher than the maxOffsetsPerTrigger\(9\)"):
        stream(minOffsetsPerTrigger="10", maxOffsetsPerTrigger="9")
    assert stream(minOffsetsPerTrigger="9", maxOffsetsPerTrigger="9").min_offsets_per_trigger == 9


def test_a_stream_may_have_a_minimum_or_a_maximum_alone():
    assert stream(minOffsetsPerTrigger="7").min_offsets_per_trigger == 7
    assert stream(maxOffsetsPerTrigger="7").max_offsets_per_trigger == 7


def test_the_smallest_numbers():
    assert batch(minPartitions="1").min_partitions == 1
    assert batch(**{"fetchOffset.numRetries": "0"}).fetch_offset_retries == 0


def test_given_numbers_and_names_are_used():
    given = {"fetchOffset.numRetries": "5", "kafkaConsumer.pollTimeoutMs": "70", "kafka.group.id": "g"}
    options = batch(**given)
    assert (options.fetch_offset_retries, options.poll_timeout_ms, options.group_id) == (5, 70, "g")
    assert batch(**{"kafka.group.id": ""}).group_id is None


def test_timestamps_count_before_offsets():
    assert batch(startingOffsets="earliest", startingTimestamp="5").starting == ByTimestamp(5)
    both = batch(startingOffsetsByTimestamp='{"t":{"0":7}}', startingTimestamp="5")
    assert both.starting == ByTimestamp(5)
    assert batch(
        startingOffsetsByTimestamp='{"t":{"0":7}}', startingOffsets="earliest"
    ).starting == ByPartitionTimestamp({("t", 0): 7})
    assert batch(endingTimestamp="-1m").ending == ByTimestamp(NOW_MS - 60_000)
    assert batch(startingOffsets='{"t":{"0":-2,"1":5}}').starting == Specific({("t", 0): -2, ("t", 1): 5})
    assert batch(startingOffsets=" EARLIEST ").starting == Earliest()


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("group:shop", ByGroup("shop")),
        (" Group:a:b ", ByGroup("a:b")),
        ("cut:before-release", ByCut("before-release")),
        ("-10m", ByTimestamp(NOW_MS - 600_000)),
        ("1970-01-01T00:00:05", ByTimestamp(5_000)),
        ("1970-01-02", ByTimestamp(86_400_000)),
    ],
)
def test_offsets_by_name_or_time(text, limit):
    assert batch(startingOffsets=text).starting == limit
    assert batch(endingOffsets=text).ending == limit
    assert stream(startingOffsets=text).starting == limit


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("cut:", "'cut:' names no cut: write cut:NAME"),
        ("group:", "'group:' names no group: write group:NAME"),
        ("-10x", "'-10x' is not a valid timestamp"),
        ("5", "Expected e.g."),
        ("-1", "Expected e.g."),
        ("cuts:a", "Expected e.g."),
    ],
)
def test_what_is_no_position(text, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        batch(startingOffsets=text)


def test_consumer_settings_are_used():
    consumer = batch(
        **{
            "kafka.client.id": "me",
            "kafka.isolation.level": "READ_UNCOMMITTED",
            "kafka.max.partition.fetch.bytes": "1000",
            "kafka.fetch.max.bytes": "500",
            "kafka.check.crcs": "false",
            "kafka.request.timeout.ms": "7",
            "kafka.some.other.setting": "ignored",
        }
    ).consumer
    assert consumer.client_id == "me"
    assert consumer.isolation_level is IsolationLevel.READ_UNCOMMITTED
    assert consumer.fetch_max_bytes == 500
    assert not consumer.check_crcs
    assert consumer.request_timeout_ms == 7


def test_the_smaller_limit_of_a_fetch_counts():
    assert batch(**{"kafka.max.partition.fetch.bytes": "1000"}).consumer.fetch_max_bytes == 1000
    assert batch(**{"kafka.fetch.max.bytes": "500"}).consumer.fetch_max_bytes == 500


def test_the_client_id_begins_with_the_group_prefix():
    assert batch(groupIdPrefix="team-a").consumer.client_id == "team-a"


def test_plaintext_is_accepted():
    assert batch(**{"kafka.security.protocol": "plaintext"}).security is NO_SECURITY


def test_options_of_tls_and_login_are_checked_when_the_columns_are_asked_for():
    given = MINIMAL | {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN"}
    for parse in (check_options, lambda options: parse_batch_options(options, NOW_MS)):
        with pytest.raises(ValueError, match=r"^kafka\.sasl\.jaas\.config: is missing"):
            parse(given)


@pytest.mark.parametrize(
    ("servers", "message"),
    [
        ("127.0.0.1", "'127.0.0.1' has no port: write host:port, for example 127.0.0.1:9092"),
        ("a:9092, b", "'b' has no port: write host:port, for example b:9092"),
        ("[::1]", "'[::1]' has no port: write host:port, for example [::1]:9092"),
        ("a:b", "'a:b' is not a valid broker address: write host:port, for example localhost:9092"),
    ],
)
def test_an_address_names_its_port(servers, message):
    for parse in (check_options, lambda options: parse_batch_options(options, NOW_MS)):
        with pytest.raises(ValueError, match=re.escape(f"kafka.bootstrap.servers: {message}")):
            parse(MINIMAL | {"kafka.bootstrap.servers": servers})


@pytest.mark.parametrize("servers", ["a:1", " a:1 , b:2 ", "[::1]:9092", "PLAINTEXT://a:9092"])
def test_valid_addresses(servers):
    check_options(MINIMAL | {"kafka.bootstrap.servers": servers})
    assert batch(**{"kafka.bootstrap.servers": servers}).bootstrap_servers == servers.strip()


def test_every_way_to_parse_options_checks_their_names():
    for parse in (check_options, lambda o: parse_batch_options(o, NOW_MS), lambda o: parse_stream_options(o, NOW_MS)):
        with pytest.raises(ValueError, match="Option 'startingoffset' is unknown; did you mean startingOffsets"):
            parse(MINIMAL | {"startingoffset": "latest"})


def test_every_option_that_is_read_has_its_name():
    ours = {name for name in documented() if not name.startswith("kafka.")}
    assert ours == set(SOURCE_OPTIONS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"startingTimestamp": "-1h", "endingTimestamp": "-2h"},
            "The specified start timestamp 1763708400000 is greater than the end timestamp 1763704800000",
        ),
        (
            {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":2}}'},
            "The specified start offset 5 is greater than the end offset 2 for topic t partition 0.",
        ),
        (
            {"startingOffsetsByTimestamp": '{"t":{"0":5}}', "endingOffsetsByTimestamp": '{"t":{"0":2}}'},
            "The specified start timestamp 5 is greater than the end timestamp 2 for topic t partition 0.",
        ),
    ],
)
def test_a_batch_that_begins_after_its_end(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        batch(**options)


def test_a_batch_may_end_at_the_latest_offset():
    assert batch(startingOffsets='{"t":{"0":5}}', endingOffsets='{"t":{"0":-1}}').ending == Specific({("t", 0): -1})


@pytest.mark.parametrize(
    ("text", "ms"), [("15m", 900_000), ("500", 500), ("30 s", 30_000), ("2H", 7_200_000), ("1d", 86_400_000)]
)
def test_durations(text, ms):
    assert duration_ms(text) == ms


def documented() -> dict[str, str]:
    """The options of the table in docs/spark.md, with their defaults as written there."""
    page = (Path(__file__).parents[3] / "docs" / "spark.md").read_text()
    table = page.split("## Options")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \|([^|]*)\|", table, re.MULTILINE)
    return {name: default.strip() for name, default in rows}


def test_every_option_that_is_read_is_documented_and_the_other_way_round():
    source = "".join(
        Path(str(module.__file__)).read_text() for module in (options_module, columns_module, given_options)
    )
    read = set(re.findall(r'given\.(?:text|integer|positive|not_negative|boolean)\(\s*"([\w.]+)"', source))
    read |= {
        f"{side}{kind}" for side in ("starting", "ending") for kind in ("Timestamp", "OffsetsByTimestamp", "Offsets")
    }
    read |= {"subscribe", "subscribePattern", "assign"}
    assert read == set(documented())


def test_documented_defaults_are_the_defaults():
    options, defaults = batch(), documented()
    assert defaults["kafkaConsumer.pollTimeoutMs"] == f"`{options.poll_timeout_ms}`"
    assert defaults["fetchOffset.numRetries"] == f"`{options.fetch_offset_retries}`"
    assert defaults["fetchOffset.retryIntervalMs"] == f"`{options.fetch_offset_retry_interval_ms}`"
    assert defaults["minRecordAge"] == f"`{options.min_record_age_ms}`"
    assert defaults["maxTriggerDelay"] == f"`{options.max_trigger_delay_ms // 60_000}m`"
    assert defaults["kafka.max.partition.fetch.bytes"] == f"{options.consumer.fetch_max_bytes >> 20} MB"
    assert defaults["kafka.request.timeout.ms"] == f"`{options.consumer.request_timeout_ms}`"
    assert defaults["kafka.fetch.max.wait.ms"] == f"`{options.consumer.fetch_max_wait_ms}`"
    assert defaults["failOnDataLoss"] == "`true`"
    assert defaults["includeHeaders"] == "`false`"
