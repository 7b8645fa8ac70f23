"""A name that was meant to be an option is an error; names of others pass."""

from __future__ import annotations

import logging

import pytest

from barnabas.spark.option_names import SINK_OPTIONS, SOURCE_OPTIONS, check_names


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("startingOffset", "startingOffsets"),
        ("maxOffsetPerTrigger", "maxOffsetsPerTrigger"),
        ("STARTINGOFFSET", "startingOffsets"),
        ("failOnDataLos", "failOnDataLoss"),
        ("pollTimeoutMs", None),
        ("subscribes", "subscribe"),
        ("kafka.isolation.levels", "kafka.isolation.level"),
        ("kafka.groupid", "kafka.group.id"),
        ("kafka.ssl.trustore.location", "kafka.ssl.truststore.location"),
        ("kafka.sasl.jaas.conf", "kafka.sasl.jaas.config"),
        ("kafka.default.api.timeout", "kafka.default.api.timeout.ms"),
    ],
)
def test_a_near_miss_is_an_error(name, meant):
    if meant is None:
        check_names([name], SOURCE_OPTIONS)
        return
    with pytest.raises(ValueError, match=f"^Option '{name}' is unknown; did you mean {meant}\\?$"):
        check_names([name], SOURCE_OPTIONS)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("topics", "topic"),
        ("query_id", "queryId"),
        ("createTopic", "createTopics"),
        ("failOnDifferent", "failOnDifferentBatch"),
    ],
)
def test_a_near_miss_of_the_sink(name, meant):
    with pytest.raises(ValueError, match=f"^Option '{name}' is unknown; did you mean {meant}\\?$"):
        check_names([name], SINK_OPTIONS)


def test_a_job_shares_its_options_between_source_and_sink(caplog):
    check_names([*SOURCE_OPTIONS, *SINK_OPTIONS, "path"], SINK_OPTIONS)
    check_names([*SOURCE_OPTIONS, *SINK_OPTIONS, "path"], SOURCE_OPTIONS)
    assert not caplog.text


def test_names_of_others_pass(caplog):
    sink = ["topic", "transactionalIdPrefix", "queryId", "batchId", "delivery", "checkpointLocation"]
    check_names(
        ["path", "header", "inferSchema", "mode", *sink, "kafka.acks", "kafka.SSL.truststore.location"], SOURCE_OPTIONS
    )
    check_names(SOURCE_OPTIONS, SOURCE_OPTIONS)
    check_names((name.lower() for name in SOURCE_OPTIONS), SOURCE_OPTIONS)
    assert not caplog.text


def test_a_setting_that_kafka_does_not_have_is_logged(caplog):
    check_names(["kafka.our.own.interceptor\n"], SOURCE_OPTIONS)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == r"Option 'kafka.our.own.interceptor\n' has no effect: Kafka has no such setting"


@pytest.mark.parametrize("name", ["kafka.ssl.engine", "kafka.sasl.x", "kafka.security.level"])
def test_a_name_of_tls_or_login_that_kafka_does_not_have_is_an_error(name):
    with pytest.raises(ValueError, match=f"^Option '{name}' is unknown"):
        check_names([name], SOURCE_OPTIONS)
