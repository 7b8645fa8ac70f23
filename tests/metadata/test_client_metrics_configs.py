"""What a client metrics subscription may say (KIP-714)."""

from __future__ import annotations

import pytest

from barnabas.metadata.client_metrics_configs import check_subscription, parse_match, refuse_unknown
from barnabas.protocol.errors import ErrorCode, KafkaError


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"metrics": "*"},
        {"interval.ms": "100"},
        {"interval.ms": "3600000"},
        {"match": ""},
        {"match": "client_id=a.*"},
        {"match": " client_software_name = librdkafka.* , , client_source_port=9092"},
        {"match": "client_instance_id=x,client_software_version=1,client_source_address=::1"},
    ],
)
def test_valid(values: dict[str, str]) -> None:
    check_subscription(values)


@pytest.mark.parametrize("interval", ["99", "3600001", "0"])
def test_an_interval_has_bounds(interval: str) -> None:
    with pytest.raises(KafkaError, match=f"Invalid value {interval} for interval.ms, interval must be") as caught:
        check_subscription({"interval.ms": interval})
    assert caught.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "pattern",
    [
        "client_id",
        "client=a",
        "=a",
        "client_id=(",
        "client_id=a, x=b",
        "client_id=",
        "client_id=a=b",
        "client_id=(?=a)a",
        r"client_id=(a)\1",
    ],
)
def test_a_pattern_is_a_known_key_and_an_expression(pattern: str) -> None:
    with pytest.raises(KafkaError, match="Illegal client matching pattern: ") as caught:
        check_subscription({"match": pattern})
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_an_unknown_setting_is_rejected() -> None:
    refuse_unknown({"metrics"}, {"metrics": "*"})
    with pytest.raises(KafkaError, match="Unknown client metrics configuration: nope") as caught:
        refuse_unknown({"metrics"}, {"metrics": "*", "nope": "1"})
    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_a_pattern_is_matched_with_the_whole_attribute() -> None:
    match = parse_match(" client_software_name = librdkafka.* ,, client_source_port=9092=")
    assert list(match) == ["client_software_name", "client_source_port"]
    assert match["client_software_name"].matches("librdkafka-2")
    assert not match["client_software_name"].matches("a librdkafka")
    assert match["client_source_port"].matches("9092")
