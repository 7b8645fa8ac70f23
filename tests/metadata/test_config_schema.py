"""Values of settings: what parses, what is refused, and in which words. The words were read off Kafka 4.4's LogConfig."""

from __future__ import annotations

import pytest

from barnabas.config.config_table import config_schema
from barnabas.metadata.config_schema import (
    ConfigError,
    ConfigResourceType,
    ConfigType,
    format_double,
    format_value,
    parse_value,
)

TOPIC = config_schema().of(ConfigResourceType.TOPIC)


@pytest.mark.parametrize(
    ("name", "text", "canonical"),
    [
        ("retention.ms", " 5 ", "5"),
        ("segment.bytes", "1048576", "1048576"),
        ("cleanup.policy", "", ""),
        ("cleanup.policy", "delete,delete", "delete"),
        ("cleanup.policy", "delete, compact", "delete,compact"),
        ("preallocate", "TRUE", "true"),
        ("min.cleanable.dirty.ratio", "1", "1.0"),
        ("leader.replication.throttled.replicas", "*", "*"),
        ("leader.replication.throttled.replicas", "0:1,1:2", "0:1,1:2"),
        ("compression.gzip.level", "-1", "-1"),
        ("internal.segment.bytes", "10", "10"),
        ("retention.bytes", "-2", "-2"),
    ],
)
def test_good_values(name: str, text: str, canonical: str) -> None:
    assert format_value(TOPIC[name].parse(text)) == canonical


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("retention.ms", "abc", "Invalid value abc for configuration retention.ms: Not a number of type LONG"),
        ("retention.ms", "-5", "Invalid value -5 for configuration retention.ms: Value must be at least -1"),
        (
            "retention.ms",
            "9" * 20,
            f"Invalid value {'9' * 20} for configuration retention.ms: Not a number of type LONG",
        ),
        ("retention.ms", "", "Invalid value  for configuration retention.ms: Not a number of type LONG"),
        ("segment.bytes", "1", "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576"),
        ("segment.bytes", "1.5", "Invalid value 1.5 for configuration segment.bytes: Not a number of type INT"),
        (
            "cleanup.policy",
            "foo",
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        ("cleanup.policy", "delete,", "Configuration 'cleanup.policy' values must not be empty."),
        (
            "compression.type",
            "GZIP",
            "Invalid value GZIP for configuration compression.type: String must be one of: uncompressed, zstd, lz4, "
            "snappy, gzip, producer",
        ),
        (
            "compression.gzip.level",
            "0",
            "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
        ),
        (
            "compression.lz4.level",
            "99",
            "Invalid value 99 for configuration compression.lz4.level: Value must be no more than 17",
        ),
        (
            "min.cleanable.dirty.ratio",
            "2",
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            "min.cleanable.dirty.ratio",
            "x",
            "Invalid value x for configuration min.cleanable.dirty.ratio: Not a number of type DOUBLE",
        ),
        (
            "preallocate",
            "maybe",
            "Invalid value maybe for configuration preallocate: Expected value to be either true or false",
        ),
        (
            "leader.replication.throttled.replicas",
            "abc",
            "Invalid value [abc] for configuration leader.replication.throttled.replicas: "
            "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following "
            "format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
        (
            "local.retention.ms",
            "-3",
            "Invalid value -3 for configuration local.retention.ms: Value must be at least -2",
        ),
    ],
)
def test_bad_values_in_kafkas_words(name: str, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TOPIC[name].parse(text)
    assert str(caught.value) == words


def test_unknown_names_and_contradictions() -> None:
    schema = config_schema()
    with pytest.raises(ConfigError, match=r"^Unknown topic config name: message\.max\.bytes$"):
        schema.check_topic_configs({"message.max.bytes": "1"})
    with pytest.raises(ConfigError, match=r"min\.compaction\.lag\.ms \(100\) > max\.compaction\.lag\.ms \(10\)"):
        schema.check_topic_configs({"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "10"})
    schema.check_topic_configs({"min.compaction.lag.ms": "100"})


@pytest.mark.parametrize("text", ["earliest", "latest", "by_duration:PT1H", "by_duration:P1DT2H3M4.5S"])
def test_share_offset_reset_takes(text: str) -> None:
    config_schema().check_group_configs({"share.auto.offset.reset": text})


@pytest.mark.parametrize("text", ["", "none", "by_duration:", "by_duration:P", "by_duration:PT", "by_duration:1h"])
def test_share_offset_reset_refuses(text: str) -> None:
    with pytest.raises(ConfigError):
        config_schema().check_group_configs({"share.auto.offset.reset": text})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (123456.75, "123456.75"),
        (1e7, "1.0E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (0.0001, "1.0E-4"),
        (12345678.5, "1.23456785E7"),
    ],
)
def test_doubles_are_printed_as_java_does(value: float, text: str) -> None:
    assert format_double(value) == text


def test_types_without_bounds() -> None:
    assert parse_value("x", ConfigType.PASSWORD, " kept as it is ") == " kept as it is "
    assert parse_value("x", ConfigType.STRING, " trimmed ") == "trimmed"
    assert parse_value("x", ConfigType.SHORT, "32767") == 32767
    assert parse_value("x", ConfigType.STRING, None) is None
    with pytest.raises(ConfigError, match="SHORT"):
        parse_value("x", ConfigType.SHORT, "32768")


@pytest.mark.parametrize(
    ("value", "text"),
    [(float("inf"), "Infinity"), (float("-inf"), "-Infinity"), (float("nan"), "NaN"), (12_345_678.0, "1.2345678E7")],
)
def test_doubles_beyond_the_plain_ones(value: float, text: str) -> None:
    assert format_double(value) == text


def test_a_topic_cannot_be_tiered() -> None:
    schema = config_schema()
    schema.check_topic_configs({"remote.storage.enable": "false"})
    with pytest.raises(ConfigError, match="Tiered Storage functionality is disabled"):
        schema.check_topic_configs({"remote.storage.enable": "true"})


def test_the_two_compaction_lags_may_be_equal() -> None:
    config_schema().check_topic_configs({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"})


def test_a_list_is_read_in_one_pass() -> None:
    """Python's `re` looks at each of these spaces once for each space before it."""
    text = f" a {' ' * 1_000_000} b ,\tc, a,"
    assert parse_value("l", ConfigType.LIST, text) == (text.split(",")[0].strip(), "c", "a", "")
    assert parse_value("l", ConfigType.LIST, " \t ") == ()
