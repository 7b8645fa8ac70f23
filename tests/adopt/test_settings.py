"""Settings that the cluster has: what barnabas rejects, ignores, or does not know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from barnabas.adopt.cluster_state import ClusterState
from barnabas.adopt.finding import Finding, Verdict
from barnabas.adopt.settings import findings_of_settings
from barnabas.client.admin import ConfigSource
from barnabas.config.authorizer_settings import STANDARD_AUTHORIZER
from tests.adopt.states import HEALTHY, entry

TOPIC, STATIC = ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.STATIC_BROKER_CONFIG
DYNAMIC, OF_ALL = ConfigSource.DYNAMIC_BROKER_CONFIG, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG


def of_topic(name: str, value: str | None) -> list[Verdict]:
    state = replace(HEALTHY, topic_settings={"orders": [entry(name, value, TOPIC)]})
    return [each.verdict for each in findings_of_settings(state, ())]


@pytest.mark.parametrize(
    ("name", "value", "verdicts"),
    [
        ("retention.ms", "1000", []),
        ("remote.storage.enable", "true", [Verdict.BLOCKS]),
        ("remote.storage.enable", "false", []),
        ("preallocate", "true", [Verdict.DIFFERS]),
        ("preallocate", "false", []),
        ("min.insync.replicas", "0", [Verdict.BLOCKS]),
        ("confluent.placement", "x", [Verdict.DIFFERS]),
    ],
)
def test_settings_of_topics(name: str, value: str, verdicts: list[Verdict]) -> None:
    assert of_topic(name, value) == verdicts


def of_broker(name: str, value: str | None, source: ConfigSource, *, with_file: bool = False) -> list[Finding]:
    state = replace(HEALTHY, broker_settings={2: [entry(name, value, source)]})
    return list(findings_of_settings(state, {2} if with_file else ()))


def verdict_of(name: str, value: str, source: ConfigSource = STATIC) -> Verdict | None:
    return next((each.verdict for each in of_broker(name, value, source)), None)


@pytest.mark.parametrize(
    ("name", "value", "verdict"),
    [
        ("authorizer.class.name", "com.example.Mine", Verdict.BLOCKS),
        ("authorizer.class.name", STANDARD_AUTHORIZER, None),
        ("principal.builder.class", "com.example.Mine", Verdict.BLOCKS),
        ("create.topic.policy.class.name", "com.example.Mine", Verdict.BLOCKS),
        ("sasl.enabled.mechanisms", "GSSAPI,PLAIN", Verdict.BLOCKS),
        ("sasl.enabled.mechanisms", "SCRAM-SHA-512", None),
        ("cordoned.log.dirs", "/kafka/a", None),
        ("num.io.threads", "16", Verdict.DIFFERS),
        ("num.partitions", "16", None),
    ],
)
def test_static_settings_of_brokers(name: str, value: str, verdict: Verdict | None) -> None:
    assert verdict_of(name, value) == verdict


def test_a_file_speaks_for_the_static_settings_of_its_broker() -> None:
    assert of_broker("num.io.threads", "16", STATIC, with_file=True) == []
    (found,) = of_broker("num.io.threads", "16", DYNAMIC, with_file=True)
    assert found.where == ("broker 2",)
    assert [each.where for each in of_broker("num.io.threads", "16", OF_ALL)] == [("all brokers",)]


def test_secrets_and_defaults_say_nothing() -> None:
    assert of_broker("ssl.keystore.password", None, DYNAMIC) == []
    assert of_broker("sasl.enabled.mechanisms", "GSSAPI", ConfigSource.DEFAULT_CONFIG) == []


def test_a_broker_that_is_barnabas_keeps_its_settings() -> None:
    state: ClusterState = replace(
        HEALTHY, broker_settings={2: [entry("num.io.threads", "16", DYNAMIC)]}, barnabas=frozenset({2})
    )
    assert list(findings_of_settings(state, ())) == []
