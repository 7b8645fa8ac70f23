"""Which value is in force, where it comes from, and its synonyms in Kafka's order (KIP-226)."""

from __future__ import annotations

from barnabas.metadata.config_entries import ConfigEntry, ConfigResolver
from barnabas.metadata.config_schema import ConfigSource, ConfigType
from barnabas.metadata.configs_image import ConfigurationsImage
from barnabas.server.config_table import config_schema

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
