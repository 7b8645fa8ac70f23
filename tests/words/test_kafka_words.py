"""Brokers' messages in plain words."""

from __future__ import annotations

import pytest

from barnabas.config.config_table import config_schema
from barnabas.metadata.config_schema import ConfigError
from barnabas.protocol.errors import ErrorCode
from barnabas.words.kafka_words import in_plain_words


@pytest.mark.parametrize(
    ("message", "plain", "hint"),
    [
        (
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because only"
            " 1 broker(s) are registered or some brokers have all their log directories cordoned.",
            "3 replicas need 3 brokers, and the cluster has 1",
            "-r 1 is the most",
        ),
        (
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached because only"
            " 1 broker(s) are registered.",
            "2 replicas need 2 brokers, and the cluster has 1",
            "-r 1 is the most",
        ),
        (
            "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have all their log"
            " directories cordoned.",
            "no broker is ready to take partitions",
            "`barnabas cluster status` shows what is wrong",
        ),
        ("Excessively large number of partitions per request.", "too many partitions", "ask for fewer in one request"),
        (
            "Excessively large number of additional partitions per request.",
            "too many partitions",
            "ask for fewer in one request",
        ),
        ("Unable to perform excessively large batch operation.", "too many changes", "ask for fewer in one request"),
        (
            "Cannot update these configs dynamically: [node.id, broker.rack]",
            "node.id, broker.rack cannot change while the broker runs",
            "set it in server.properties, and start the broker again",
        ),
        (
            "Cannot update these configs dynamically: Set(node.id)",
            "node.id cannot change while the broker runs",
            "set it in server.properties, and start the broker again",
        ),
        (
            "The topic orders currently has 3 partition(s); 2 would not be an increase.",
            "topic orders has 3 partitions already",
            "the number can only grow",
        ),
        (
            "Cannot update these configs at default cluster level, broker id must be specified: [advertised.listeners, listeners]",
            "advertised.listeners, listeners cannot be the same for all brokers",
            "name one: `barnabas config alter broker 1 --set KEY=VALUE`",
        ),
        (
            "These security configs can be dynamically updated only per-listener using the listener prefix: [ssl.key.password]",
            "ssl.key.password cannot be the same for all listeners",
            "name one: listener.name.NAME.SETTING, the name in lower case",
        ),
        (
            "Invalid value org.apache.kafka.common.config.ConfigException: Validation of dynamic config update of SSLFactory failed: "
            "org.apache.kafka.common.config.ConfigException: Keystore SubjectAltNames do not match:  existing={alias=kafka, SAN=[]}, "
            "new={alias=kafka, SAN=[]} for configuration Invalid dynamic configuration",
            "the broker keeps its certificate: Keystore SubjectAltNames do not match:  existing={alias=kafka, SAN=[]}, "
            "new={alias=kafka, SAN=[]}",
            "ssl.allow.dn.changes and ssl.allow.san.changes in server.properties allow other names",
        ),
        (
            "Invalid value org.apache.kafka.common.config.ConfigException: Validation of dynamic config update of SSLFactory failed: "
            "org.apache.kafka.common.errors.InvalidConfigurationException: Failed to load PEM SSL keystore /x for configuration "
            "Invalid dynamic configuration",
            "the broker keeps its certificate: Failed to load PEM SSL keystore /x",
            "the broker reads the file, as its own user",
        ),
        ("Topic already has 6 partition(s).", "it has 6 partitions already", "the number can only grow"),
        (
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
            "'a b' is not a valid topic name",
            "use letters, digits, '.', '_' and '-', at most 249 of them",
        ),
        ("Unknown topic config name: retention.mss", "a topic has no setting retention.mss", None),
        (
            "Can't APPEND to key retention.ms because its type is not LIST.",
            "retention.ms is not a list",
            "--set changes it",
        ),
        (
            "Can't SUBTRACT to key segment.ms because its type is not LIST.",
            "segment.ms is not a list",
            "--set changes it",
        ),
        (ErrorCode.TRANSACTIONAL_ID_NOT_FOUND.default_message, "the transactional id does not exist", None),
        ("Anything else.", "Anything else.", None),
    ],
)
def test_messages(message: str, plain: str, hint: str | None) -> None:
    assert in_plain_words(message) == (plain, hint)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("retention.ms", "soon", "must be a whole number"),
        ("retention.ms", "99999999999999999999", "the number is too large"),
        ("retention.ms", "-2", "must be at least -1"),
        ("min.cleanable.dirty.ratio", "much", "must be a number"),
        ("min.cleanable.dirty.ratio", "2.0", "must be at most 1"),
        ("preallocate", "maybe", "must be true or false"),
        ("cleanup.policy", "compcat", "must be one of compact, delete; did you mean compact?"),
        ("compression.gzip.level", "12", "must be from 1 to 9, or -1"),
        ("leader.replication.throttled.replicas", "all", "must be the literal '*' or"),
    ],
)
def test_values_that_the_table_of_settings_rejects(name: str, value: str, why: str) -> None:
    with pytest.raises(ConfigError) as error:
        config_schema().check_topic_configs({name: value})
    assert in_plain_words(str(error.value)).message.startswith(f"{name}={value}: {why}")
