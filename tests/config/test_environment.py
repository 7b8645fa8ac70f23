"""Variables as Apache Kafka's container image reads them."""

from __future__ import annotations

import pytest

from barnabas.config.environment import from_environment, on_every_address


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_NODE_ID", "node.id"),
        ("KAFKA_LOG_DIRS", "log.dirs"),
        ("KAFKA_ABC___DEF", "abc-def"),
        ("KAFKA_ABC__DEF", "abc_def"),
        ("KAFKA_LISTENER_NAME_MY___NAME_MAX_CONNECTIONS", "listener.name.my-name.max.connections"),
        ("KAFKA_KAFKA_METRICS_REPORTERS", "kafka.metrics.reporters"),
        ("KAFKA_LOG_DIR", "log.dir"),
    ],
)
def test_a_variable_is_a_setting(variable: str, name: str) -> None:
    assert from_environment({variable: "x y"}) == {name: ("x y", variable)}


@pytest.mark.parametrize(
    "variable",
    [
        "KAFKA_VERSION",
        "KAFKA_HOME",
        "KAFKA_HEAP_OPTS",
        "KAFKA_OPTS",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "PATH",
        "NOT_KAFKA_NODE_ID",
        "CLUSTER_ID",
    ],
)
def test_other_variables_are_none(variable: str) -> None:
    assert from_environment({variable: "x"}) == {}


def test_an_empty_variable_counts_as_not_set() -> None:
    assert from_environment({"KAFKA_ADVERTISED_LISTENERS": ""}) == {}


def test_every_host_becomes_every_address() -> None:
    given = "PLAINTEXT://broker:19092,PLAINTEXT_HOST://localhost:9092,SIX://[::1]:9094"
    assert on_every_address(given) == "PLAINTEXT://0.0.0.0:19092,PLAINTEXT_HOST://0.0.0.0:9092,SIX://0.0.0.0:9094"
