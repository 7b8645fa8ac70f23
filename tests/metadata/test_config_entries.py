"""Which value is in force, where it comes from, and its synonyms in Kafka's order (KIP-226)."""

from __future__ import annotations

from typing import Any

from barnabas.config.config_table import config_schema
from barnabas.metadata.config_entries import ConfigEntry, ConfigResolver
from barnabas.metadata.config_schema import ConfigSource, ConfigType
from barnabas.metadata.configs_image import ConfigurationsImage

BROKER, TOPIC, GROUP, METRICS = 4, 2, 32, 16


def resolver(**static: str) -> ConfigResolver:
    return ConfigResolver(config_schema(), 1, {name.replace("_", "."): value for name, value in static.items()}, {})


def image(**resources: dict[str, str]) -> ConfigurationsImage:
    places = {"broker": (BROKER, "1"), "cluster": (BROKER, ""), "topic": (TOPIC, "t"), "group": (GROUP, "g")}
    return ConfigurationsImage({places[place]: values for place, values in resources.items()})


def entry(entries: list[ConfigEntry], name: str) -> ConfigEntry:
    (found,) = [entry for entry in entries if entry.name == name]
    return found


def synonyms(found: ConfigEntry) -> list[str]:
    return [f"{s.source.name}:{s.name}={s.value}" for s in found.synonyms]


def test_a_default_is_its_own_synonym_under_the_brokers_name() -> None:
    found = entry(resolver().describe_topic(image(), "t"), "cleanup.policy")
    assert (found.value, found.source) == ("delete", ConfigSource.DEFAULT_CONFIG)
    assert synonyms(found) == ["DEFAULT_CONFIG:log.cleanup.policy=delete"]


def test_a_default_in_hours_is_no_synonym_of_milliseconds() -> None:
    # kafka-configs shows `retention.ms=604800000 sensitive=false synonyms={}`.
    found = entry(resolver().describe_topic(image(), "t"), "retention.ms")
    assert (found.value, found.source, found.synonyms) == ("604800000", ConfigSource.DEFAULT_CONFIG, ())


def test_a_setting_that_is_only_dynamic_has_no_default_among_its_synonyms() -> None:
    name = "leader.replication.throttled.rate"
    found = entry(resolver().describe_broker(image(broker={name: "9"}), [name]), name)
    assert synonyms(found) == [f"DYNAMIC_BROKER_CONFIG:{name}=9"]


def test_sources_from_strong_to_weak() -> None:
    configs = image(topic={"retention.ms": "1"}, broker={"log.retention.ms": "2"}, cluster={"log.retention.ms": "3"})
    found = entry(resolver(log_retention_ms="4", log_retention_hours="5").describe_topic(configs, "t"), "retention.ms")
    assert found.value == "1"
    assert synonyms(found) == [
        "TOPIC_CONFIG:retention.ms=1",
        "DYNAMIC_BROKER_CONFIG:log.retention.ms=2",
        "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=3",
        "STATIC_BROKER_CONFIG:log.retention.ms=4",
        "STATIC_BROKER_CONFIG:log.retention.hours=5",
        "DEFAULT_CONFIG:log.retention.hours=168",
    ]


def test_hours_and_minutes_become_milliseconds() -> None:
    assert entry(resolver(log_retention_hours="2").describe_topic(image(), "t"), "retention.ms").value == "7200000"
    both = resolver(log_retention_hours="2", log_retention_minutes="3")
    assert entry(both.describe_topic(image(), "t"), "retention.ms").value == "180000"
    assert entry(resolver(log_retention_minutes="-7").describe_topic(image(), "t"), "retention.ms").value == "-1"


def test_only_what_is_asked_for() -> None:
    names = [found.name for found in resolver().describe_topic(image(), "t", ["segment.ms", "nope"])]
    assert names == ["segment.ms"]
    assert len(resolver().describe_topic(image(), "t")) == 37
    assert "internal.segment.bytes" not in {found.name for found in resolver().describe_topic(image(), "t")}


def test_a_broker_lists_all_its_settings() -> None:
    described = resolver(log_dirs="/data", ssl_keystore_password="secret", my_own="x").describe_broker(image())
    assert len(described) > 300
    static = entry(described, "log.dirs")
    assert (static.value, static.source, static.read_only) == ("/data", ConfigSource.STATIC_BROKER_CONFIG, True)
    dynamic = entry(described, "log.retention.ms")
    assert (dynamic.read_only, dynamic.kind) == (False, ConfigType.LONG)
    secret = entry(described, "ssl.keystore.password")
    assert (secret.value, secret.sensitive) == (None, True)
    assert synonyms(secret) == ["STATIC_BROKER_CONFIG:ssl.keystore.password=None"]
    # What no setting describes may be a password for all anyone knows.
    own = entry(described, "my.own")
    assert (own.value, own.sensitive, own.kind) == (None, True, ConfigType.UNKNOWN)


def test_a_dynamic_only_setting_is_listed_once_it_is_set() -> None:
    name = "leader.replication.throttled.rate"
    assert name not in {found.name for found in resolver().describe_broker(image())}
    assert entry(resolver().describe_broker(image(broker={name: "5"})), name).value == "5"


def test_cluster_wide_settings_are_described_alone() -> None:
    described = resolver(log_retention_ms="4").describe_cluster_defaults(image(cluster={"log.retention.ms": "3"}))
    (found,) = described
    assert (found.name, found.value) == ("log.retention.ms", "3")
    assert synonyms(found) == ["DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=3"]


def test_groups_and_client_metrics() -> None:
    described = resolver().describe_group(image(group={"consumer.session.timeout.ms": "50000"}), "g")
    found = entry(described, "consumer.session.timeout.ms")
    assert synonyms(found) == [
        "GROUP_CONFIG:consumer.session.timeout.ms=50000",
        "DEFAULT_CONFIG:group.consumer.session.timeout.ms=45000",
    ]
    configs = ConfigurationsImage({(METRICS, "s"): {"interval.ms": "1000"}})
    found = entry(resolver().describe_client_metrics(configs, "s"), "interval.ms")
    assert (found.value, found.source) == ("1000", ConfigSource.CLIENT_METRICS_CONFIG)
    assert entry(resolver().describe_client_metrics(configs, "s"), "metrics").source is ConfigSource.DEFAULT_CONFIG


def test_every_entry_is_documented() -> None:
    for described in (resolver().describe_topic(image(), "t"), resolver().describe_group(image(), "g")):
        assert all(found.documentation for found in described)


def test_only_negative_retention_means_for_ever() -> None:
    found = entry(resolver(log_message_timestamp_after_max_ms="7").describe_topic(image(), "t"), "retention.ms")
    assert found.value == "604800000"
    bytes_ = entry(resolver(log_retention_bytes="-2").describe_topic(image(), "t"), "retention.bytes")
    assert bytes_.value == "-2"
    assert entry(resolver(log_retention_ms="-2").describe_topic(image(), "t"), "retention.ms").value == "-1"
    assert entry(resolver(log_retention_ms="0").describe_topic(image(), "t"), "retention.ms").value == "0"


def test_an_internal_topic_setting_is_shown_only_where_it_is_set() -> None:
    name = "internal.segment.bytes"
    for own, expected in (({}, None), ({name: "10"}, "10")):
        described = resolver().effective_topic_entries(image(), own)
        assert {each.name: each.value for each in described}.get(name) == expected
        names = [each.name for each in resolver().describe_topic(image(topic=own), "t")]
        assert names[:1] == ([name] if own else names[:1])
        assert (name in names) is bool(own)


def test_a_groups_own_default_is_a_synonym_and_a_subscriptions_is_not() -> None:
    found = entry(resolver().describe_group(image(), "g"), "share.isolation.level")
    assert synonyms(found) == ["DEFAULT_CONFIG:share.isolation.level=read_uncommitted"]
    assert entry(resolver().describe_client_metrics(image(), "s"), "metrics").synonyms == ()


def test_an_embedded_brokers_defaults_replace_the_tables() -> None:
    embedded = ConfigResolver(config_schema(), 1, {}, {"log.retention.hours": "2", "num.partitions": "7"})
    found = entry(embedded.describe_topic(image(), "t"), "retention.ms")
    assert (found.value, found.source) == ("7200000", ConfigSource.DEFAULT_CONFIG)
    assert embedded.broker_value(image(), "num.partitions") == 7
    assert embedded.broker_value(image(cluster={"num.partitions": "8"}), "num.partitions") == 8
    assert embedded.broker_value(image(), "log.retention.minutes") is None


def described(name: str, *, of_broker: dict[str, str], cluster: dict[str, str]) -> list[Any]:
    entries = [
        each for each in resolver().describe_broker(image(broker=of_broker, cluster=cluster)) if each.name == name
    ]
    return [
        [each.value, each.read_only, each.source.name, each.sensitive, each.kind.name, synonyms(each)]
        for each in entries
    ]


def test_an_unknown_dynamic_setting_of_a_broker_is_shown_without_its_value() -> None:
    """As Apache Kafka 4.3.1 shows it: it may be a password."""
    own, default = "DYNAMIC_BROKER_CONFIG:nope=None", "DYNAMIC_DEFAULT_BROKER_CONFIG:nope=None"
    assert described("nope", of_broker={"nope": "5"}, cluster={"nope": "6"}) == [
        [None, True, "DYNAMIC_BROKER_CONFIG", True, "UNKNOWN", [own, default]]
    ]
    assert described("nope", of_broker={}, cluster={"nope": "6"}) == [
        [None, True, "DYNAMIC_DEFAULT_BROKER_CONFIG", True, "UNKNOWN", [default]]
    ]
    assert described("nope", of_broker={}, cluster={}) == []
    only = resolver().describe_broker(image(broker={"nope": "5"}), ["nope"])
    assert [each.name for each in only] == ["nope"]


def test_a_setting_of_one_listener_is_shown_as_the_setting_of_all() -> None:
    name = "listener.name.plain.max.connections"
    assert described(name, of_broker={name: "77"}, cluster={}) == [
        [
            "77",
            True,
            "DYNAMIC_BROKER_CONFIG",
            False,
            "INT",
            [f"DYNAMIC_BROKER_CONFIG:{name}=77", "DEFAULT_CONFIG:max.connections=2147483647"],
        ]
    ]
    unknown = "listener.name.plain.nope"
    assert described(unknown, of_broker={unknown: "7"}, cluster={}) == [
        [None, True, "DYNAMIC_BROKER_CONFIG", True, "UNKNOWN", [f"DYNAMIC_BROKER_CONFIG:{unknown}=None"]]
    ]


def test_the_resources_of_a_type_are_listed_by_name() -> None:
    configs = ConfigurationsImage({(GROUP, "b"): {"x": "1"}, (GROUP, "a"): {"x": "1"}, (TOPIC, "c"): {"x": "1"}})
    assert configs.names_of(GROUP) == ["a", "b"]
    assert configs.names_of(BROKER) == []


def test_a_resolver_does_not_print_values() -> None:
    assert repr(resolver(my_password="hunter2")) == "<ConfigResolver node=1 static=1>"
