"""Properties in, one frozen configuration out."""

from __future__ import annotations

import pytest

from barnabas.config.config import (
    BrokerConfig,
    ConfigError,
    Listener,
    effective_topic_values,
    log_config,
)
from barnabas.log.log_config import LogConfig


def config(embedded: bool = False, **properties: str) -> BrokerConfig:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return BrokerConfig.from_properties(given, embedded=embedded)


def test_defaults() -> None:
    made = config()
    assert made.listeners == (Listener("PLAINTEXT", "", 9092),)
    assert made.advertised_listeners is None
    assert (made.node_id, made.num_partitions, made.cluster_id) == (1, 1, None)
    assert made.auto_create_topics_enable is True
    assert made.group_initial_rebalance_delay_ms == 3000
    assert made.barnabas_metadata_flush is True
    assert made.unknown == ()


def test_embedded_defaults_and_their_overrides() -> None:
    made = config(embedded=True)
    assert (made.barnabas_metadata_flush, made.group_initial_rebalance_delay_ms) == (False, 0)
    assert made.int_value("group.initial.rebalance.delay.ms") == 0
    assert config(embedded=True, group_initial_rebalance_delay_ms="5").group_initial_rebalance_delay_ms == 5


def test_every_field_is_a_setting() -> None:
    derived = {
        "properties",
        "unknown",
        "without_effect",
        "embedded",
        "listeners",
        "controller_listeners",
        "advertised_listeners",
        "advertised_controller_listeners",
        "quorum_voters",
        "quorum_bootstrap_servers",
        "is_alone",
        "log_dirs",
        "metadata_dir",
        "all_dirs",
        "provided",
    }
    made = config()
    for name in BrokerConfig.__annotations__:
        if name not in derived and name != "_values":
            assert getattr(made, name) == made.value(name.replace("_", "."))


def test_a_configuration_is_frozen() -> None:
    with pytest.raises(AttributeError, match="frozen"):
        config().num_partitions = 3


@pytest.mark.parametrize(("given", "expected"), [({"node.id": "7"}, 7), ({"broker.id": "8"}, 8), ({}, 1)])
def test_node_id_and_its_older_name(given: dict[str, str], expected: int) -> None:
    made = BrokerConfig.from_properties(given)
    assert made.node_id == made.value("broker.id") == expected
    assert made.properties["broker.id"] == made.properties["node.id"] == str(expected)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("num.partitions", "0", "Invalid value 0 for configuration num.partitions: Value must be at least 1"),
        ("num.partitions", "x", "Invalid value x for configuration num.partitions: Not a number of type INT"),
        ("listeners", "localhost:9092", "use NAME://host:port"),
        ("auto.create.topics.enable", "yes", "Expected value to be either true or false"),
        ("process.roles", "broker,king", "String must be one of: broker, controller"),
    ],
)
def test_a_bad_property_is_one_line_that_names_it(name: str, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties({name: text})
    assert words in str(caught.value)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unknown_properties_are_kept_and_named() -> None:
    made = BrokerConfig.from_properties({"zookeeper.connect": "x", "num.partitions": "2"})
    assert made.unknown == ("zookeeper.connect",)
    assert made.properties["zookeeper.connect"] == "x"


def test_settings_without_effect_are_named_if_they_are_not_the_default() -> None:
    made = config(num_io_threads="8", background_threads="7", log_preallocate="true", num_partitions="2")
    assert made.without_effect == ("background.threads", "log.preallocate")


def test_a_password_is_never_printed() -> None:
    given = {
        "ssl.keystore.password": "hunter2",
        "listener.name.external.plain.sasl.jaas.config": "hunter2",
        "my.plugin": "hunter2",
        "num.partitions": "3",
    }
    made = BrokerConfig.from_properties(given, served=False)
    assert "hunter2" not in repr(made)
    assert repr(made).count("[hidden]") == 3
    assert "'num.partitions': '3'" in repr(made)


def test_log_config_without_anything_is_kafkas() -> None:
    assert log_config(config(), {}) == LogConfig(transaction_partition_verification_enable=True)


def test_log_config_takes_the_strongest_source() -> None:
    made = config(log_retention_hours="1", log_cleanup_policy="compact", log_segment_bytes="2097152")
    assert log_config(made, {}).retention_ms == 3_600_000
    assert log_config(made, {}).cleanup_policy == frozenset({"compact"})
    dynamic = log_config(made, {}, {"log.retention.ms": "2"}, {})
    assert dynamic.retention_ms == 2
    assert log_config(made, {}, {"log.retention.ms": "2"}, {"log.retention.ms": "3"}).retention_ms == 3
    own = log_config(made, {"retention.ms": "4", "cleanup.policy": "delete,compact"}, {"log.retention.ms": "2"})
    assert (own.retention_ms, own.cleanup_policy) == (4, frozenset({"delete", "compact"}))
    assert log_config(made, {"internal.segment.bytes": "100"}).segment_bytes == 100


def test_effective_values_cover_the_whole_table() -> None:
    values = effective_topic_values(config(), {})
    assert len([name for name in values if not name.startswith("barnabas.")]) == 38
    assert values["segment.ms"] == 604_800_000


@pytest.mark.parametrize("given", ["sticky", "uniform,org.example.Mine", ""])
def test_an_assignor_that_is_not_there_ends_the_start(given: str) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties({"group.consumer.assignors": given})
    assert str(caught.value) == (
        f"Invalid value {given} for configuration group.consumer.assignors: one or more of uniform, range"
    )


def test_assignors_may_be_named_by_kafkas_classes() -> None:
    given = "org.apache.kafka.coordinator.group.assignor.RangeAssignor,uniform"
    config = BrokerConfig.from_properties({"group.consumer.assignors": given})
    assert config.list_value("group.consumer.assignors") == tuple(given.split(","))


PROVIDERS = {
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}


def test_a_value_from_a_provider_is_used_and_never_shown() -> None:
    given = {**PROVIDERS, "num.partitions": "${env:PARTITIONS}", "cluster.id": "${env:CLUSTER}"}
    environ = {"PARTITIONS": "12", "CLUSTER": "4L6g3nShT-eMCtK--X86sw"}
    made = BrokerConfig.from_properties(given, environ=environ)
    assert (made.num_partitions, made.cluster_id, made.unknown) == (12, environ["CLUSTER"], ())
    assert made.provided == set(environ.values())
    assert not any(value in repr(made) for value in environ.values())
    for wrong in ("-7", "hunter2"):
        with pytest.raises(ConfigError, match=r"num\.partitions") as caught:
            BrokerConfig.from_properties(given, environ={**environ, "PARTITIONS": wrong})
        assert wrong not in str(caught.value)
    with pytest.raises(ConfigError, match=r"^cluster\.id: \$\{env:CLUSTER\}: the environment has no such variable$"):
        BrokerConfig.from_properties(given, environ={"PARTITIONS": "1"})


def test_an_error_without_providers_shows_what_was_given() -> None:
    with pytest.raises(ConfigError, match=r"\$\{env:X\}"):
        config(num_partitions="${env:X}")
