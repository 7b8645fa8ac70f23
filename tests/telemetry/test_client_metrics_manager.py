"""Subscriptions, intervals and instances, in virtual time; the error codes are Kafka's."""

from __future__ import annotations

import random
from typing import Any

import pytest

from barnabas.metadata.configs_image import ConfigurationsImage
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import ONE_UUID, ZERO_UUID, Uuid
from barnabas.records.compression import compress
from barnabas.telemetry import client_metrics_manager
from barnabas.telemetry.client_metrics_manager import ClientAttributes, ClientMetricsInstance, ClientMetricsManager
from tests.telemetry.otlp_writer import DELTA, GAUGE, SUM, double, metric, metrics_data

EPOCH_MS = 1_700_000_000_000
CLIENT = ClientAttributes("app-1", "apache-kafka-java", "4.3.1", "10.0.0.9", "50000")
ID = Uuid(b"0123456789abcdef")
PAYLOAD = metrics_data(metric("org.apache.kafka.producer.x", GAUGE, double(4, 1.5)))


def manager(**subscriptions: dict[str, str]) -> ClientMetricsManager:
    made = ClientMetricsManager(1000, random.Random(1))
    configure(made, **subscriptions)
    return made


def configure(made: ClientMetricsManager, **subscriptions: dict[str, str]) -> None:
    names = {"interval": "interval.ms"}
    settings = {
        (16, name): {names.get(key, key): value for key, value in values.items()}
        for name, values in subscriptions.items()
    }
    made.configure(ConfigurationsImage(settings))


def get(
    made: ClientMetricsManager, at_ms: int = 0, client: ClientAttributes = CLIENT, **options: Any
) -> ClientMetricsInstance:
    return made.get_subscription(options.get("id", ID), client, options.get("connection", "c"), EPOCH_MS + at_ms)


def push(made: ClientMetricsManager, instance: ClientMetricsInstance, at_ms: int, **options: Any) -> ErrorCode:
    wanted: dict[str, Any] = {
        "subscription_id": instance.subscription_id,
        "is_terminating": False,
        "codec": 0,
        "payload": PAYLOAD,
        **options,
    }
    try:
        made.push(instance.instance_id, CLIENT, "c", now_ms=EPOCH_MS + at_ms, **wanted)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def refused(made: ClientMetricsManager, at_ms: int) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        get(made, at_ms)
    return raised.value.code


def test_the_union_of_what_matches_with_the_shortest_interval() -> None:
    made = manager(
        a={"metrics": "x.,y.", "interval": "60000"},
        b={"metrics": "y.,z.", "interval": "30000", "match": "client_software_name=apache.*, client_id=app-\\d"},
        c={"metrics": "q.", "interval": "100", "match": "client_id=app"},
    )
    instance = get(made)
    assert (instance.metrics, instance.interval_ms) == (["x.", "y.", "z."], 30_000)


def test_a_star_stands_for_all() -> None:
    assert get(manager(a={"metrics": "x."}, b={"metrics": "*"})).metrics == ["*"]


def test_a_pattern_of_the_log_that_is_not_re2_matches_no_client(caplog: pytest.LogCaptureFixture) -> None:
    """Apache Kafka's controller accepts Java's expressions, and an earlier release accepted Python's."""
    made = manager(a={"metrics": "x.", "match": "client_id=(?=app).*"}, b={"metrics": "y.", "match": "client_id=app.*"})
    assert get(made).metrics == ["y."]
    assert [record.getMessage() for record in caplog.records] == [
        "The client metrics subscription a matches no client: Illegal client matching pattern: client_id=(?=app).*"
    ]


def test_a_pattern_does_not_backtrack() -> None:
    made = manager(a={"metrics": "x.", "match": "client_id=(a+)+$"})
    assert get(made, client=CLIENT._replace(client_id="a" * 1000 + "!")).metrics == []


def test_what_is_not_known_does_not_match() -> None:
    made = manager(a={"metrics": "x.", "match": "client_id=.*"})
    assert get(made, client=CLIENT._replace(client_id=None)).metrics == []


def test_without_a_subscription_there_is_nothing_to_push() -> None:
    instance = get(manager())
    assert (instance.metrics, instance.interval_ms) == ([], 300_000)


def test_a_client_without_an_id_gets_one_and_the_reserved_ones_are_refused() -> None:
    made = manager()
    first, second = get(made, id=ZERO_UUID), get(made, id=ZERO_UUID)
    assert len({first.instance_id, second.instance_id, ZERO_UUID, ONE_UUID}) == 4
    for reserved in (ZERO_UUID, ONE_UUID):
        instance = ClientMetricsInstance(reserved, CLIENT, [], 1000, 0)
        assert push(made, instance, 0) is ErrorCode.INVALID_REQUEST


def test_asking_and_pushing_have_their_time() -> None:
    made = manager(a={"metrics": "*", "interval": "1000"})
    instance = get(made)
    assert refused(made, 999) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(made, instance, 10) is ErrorCode.NONE  # at once after asking
    assert push(made, instance, 1009) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(made, instance, 1010) is ErrorCode.NONE
    assert refused(made, 2009) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert get(made, 2010) is instance
    assert made.throttles == 3


def test_a_changed_subscription_is_told_by_its_id_and_may_be_asked_for_at_once() -> None:
    made = manager(a={"metrics": "x.", "interval": "1000"})
    instance = get(made)
    configure(made, a={"metrics": "y.", "interval": "1000"})
    assert push(made, instance, 10) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert made.unknown_subscriptions == 1
    again = get(made, 20)
    assert again.metrics == ["y."]
    assert again.subscription_id != instance.subscription_id
    assert push(made, again, 1009) is ErrorCode.THROTTLING_QUOTA_EXCEEDED  # the refused push had its time
    assert push(made, again, 1010) is ErrorCode.NONE


def test_the_same_subscription_has_the_same_id_for_one_client_and_another_for_another() -> None:
    ids = {get(manager(a={"metrics": "x."}), id=identity).subscription_id for identity in (ID, ID, Uuid(b"f" * 16))}
    assert len(ids) == 2
    assert all(-(2**31) <= number < 2**31 for number in ids)


@pytest.mark.parametrize("codec", range(5))
def test_every_codec_is_taken(codec: int) -> None:
    made = manager(a={"metrics": "*"})
    instance = get(made)
    payload = PAYLOAD if codec == 0 else compress(codec, PAYLOAD)
    assert push(made, instance, 0, codec=codec, payload=payload) is ErrorCode.NONE
    ((pusher, attributes, value, is_sum),) = made.pushed.by_name()["org.apache.kafka.producer.x"]
    assert (pusher.client_id, attributes, value, is_sum) == ("app-1", (), 1.5, False)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"codec": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"codec": -1}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"payload": bytes(1001)}, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"payload": b"\xff" * 20}, ErrorCode.INVALID_RECORD),
        ({"payload": compress(1, bytes(5000)), "codec": 1}, ErrorCode.INVALID_RECORD),
        ({"payload": PAYLOAD, "codec": 4}, ErrorCode.INVALID_RECORD),
        ({"payload": b""}, ErrorCode.NONE),
    ],
)
def test_what_a_push_is_refused_for(options: dict[str, Any], code: ErrorCode) -> None:
    made = manager(a={"metrics": "*"})
    assert push(made, get(made), 0, **options) is code
    assert made.pushed.by_name() == {}


def test_after_the_last_push_there_is_no_other() -> None:
    made = manager(a={"metrics": "*", "interval": "1000"})
    instance = get(made)
    assert push(made, instance, 0) is ErrorCode.NONE
    assert push(made, instance, 10, is_terminating=True) is ErrorCode.NONE  # before its time
    assert push(made, instance, 5000) is ErrorCode.INVALID_REQUEST


def test_differences_add_up_and_gauges_are_replaced() -> None:
    made = manager(a={"metrics": "*", "interval": "1000"})
    instance = get(made)
    for second, value in enumerate((1.0, 2.0, 4.0)):
        payload = metrics_data(
            metric("sum", SUM, double(4, value), temporality=DELTA, monotonic=True),
            metric("gauge", GAUGE, double(4, value)),
        )
        assert push(made, instance, second * 1000, payload=payload) is ErrorCode.NONE
    assert made.pushed.by_name()["sum"][0][2:] == (7.0, True)
    assert made.pushed.by_name()["gauge"][0][2:] == (4.0, False)


def test_an_instance_goes_with_its_connection_and_its_values_stay_a_while() -> None:
    made = manager(a={"metrics": "*", "interval": "1000"})
    push(made, get(made), 0)
    assert made.instance_count == 1
    made.disconnected("another")
    assert made.instance_count == 1
    made.disconnected("c")
    assert made.instance_count == 0
    made.expire(EPOCH_MS + 299_999)
    assert made.pushed.by_name()
    made.expire(EPOCH_MS + 300_000)
    assert not made.pushed.by_name()


def test_a_silent_instance_goes_after_three_intervals() -> None:
    made = manager(a={"metrics": "*", "interval": "100000"})
    get(made)
    made.expire(EPOCH_MS + 299_999)
    assert made.instance_count == 1
    made.expire(EPOCH_MS + 300_000)
    assert made.instance_count == 0


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from barnabas.telemetry import pushed_metrics

    monkeypatch.setattr(client_metrics_manager, "INSTANCES_MAX", 3)
    monkeypatch.setattr(pushed_metrics, "CLIENT_SERIES_MAX", 2)
    made = manager(a={"metrics": "*"})
    for number in range(5):
        get(made, id=Uuid(bytes([number + 2]) * 16), connection=str(number))
    assert made.instance_count == 3
    payload = metrics_data(*(metric(f"m{number}", GAUGE, double(4, 1.0)) for number in range(4)))
    assert push(made, get(made), 0, payload=payload) is ErrorCode.NONE
    assert sorted(made.pushed.by_name()) == ["m0", "m1"]
    assert made.pushed.dropped == 2
