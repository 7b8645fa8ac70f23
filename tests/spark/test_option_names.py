"""A name that was meant to be an option is an error; names of others pass."""

from __future__ import annotations

import logging

import pytest

from barnabas.spark.option_names import SOURCE_OPTIONS, check_names


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
        ("kafka.default.api.timeout", "kafka.default.api.timeout.ms"),
    ],
)
def test_a_near_miss_is_an_error(name, meant):
    if meant is None:
        check_names([name])
        return
    with pytest.raises(ValueError, match=f"^Option '{name}' is unknown; did you mean {meant}\\?$"):
        check_names([name])


def test_names_of_others_pass(caplog):
    sink = ["topic", "transactionalIdPrefix", "queryId", "batchId", "delivery", "checkpointLocation"]
    check_names(["path", "header", "inferSchema", "mode", *sink, "kafka.acks", "kafka.SSL.truststore.location"])
    check_names(SOURCE_OPTIONS)
    check_names(name.lower() for name in SOURCE_OPTIONS)
    assert not caplog.text


def test_a_setting_that_kafka_does_not_have_is_logged(caplog):
    check_names(["kafka.our.own.interceptor\n"])
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == r"Option 'kafka.our.own.interceptor\n' has no effect: Kafka has no such setting"
