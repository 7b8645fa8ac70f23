"""Changes of settings that golden scripts cannot spell: repeated resources and names, operations, sizes."""

from __future__ import annotations

import pytest

from barnabas.metadata.configuration_control import MAX_VALUE_BYTES
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.metadata.controller_harness import ControllerHarness

_Request = messages.IncrementalAlterConfigsRequest
_Resource = _Request.AlterConfigsResource


def topic(name: str, *changes: tuple[str, int, str | None]) -> _Resource:
    configs = [_Request.AlterableConfig(name=key, config_operation=kind, value=value) for key, kind, value in changes]
    return _Resource(resource_type=2, resource_name=name, configs=configs)


def harness() -> ControllerHarness:
    made = ControllerHarness()
    made.register()
    made.create("a", "b")
    return made


def outcomes(made: ControllerHarness, *resources: _Resource, **options: bool) -> list[tuple[int, str | None]]:
    request = _Request(resources=list(resources), **options)
    answers = made.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, request).responses
    assert [(a.resource_type, a.resource_name) for a in answers] == [
        (r.resource_type, r.resource_name) for r in resources
    ]
    return [(answer.error_code, answer.error_message) for answer in answers]


def configs(made: ControllerHarness, name: str) -> dict[str, str]:
    return dict(made.controller.image.configs.for_resource(2, name))


def test_a_resource_named_twice_is_rejected_and_the_others_are_altered() -> None:
    made = harness()
    one = ("retention.ms", 0, "5")
    twice = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert outcomes(made, topic("a", one), topic("b", one), topic("a", one)) == [twice, (0, None), twice]
    assert (configs(made, "a"), configs(made, "b")) == ({}, {"retention.ms": "5"})


def test_a_setting_named_twice_is_rejected() -> None:
    made = harness()
    change = topic("a", ("retention.ms", 0, "5"), ("segment.ms", 0, "7"), ("retention.ms", 0, "6"))
    assert outcomes(made, change) == [(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")]
    assert configs(made, "a") == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("retention.ms", 4, "5"), "Unknown operations type 4"),
        (("retention.ms", 0, None), "Null value not supported for : retention.ms"),
        (("cleanup.policy", 2, None), "Null value not supported for : cleanup.policy"),
    ],
)
def test_operations_that_do_not_exist_and_values_that_are_missing(
    change: tuple[str, int, str | None], message: str
) -> None:
    assert outcomes(harness(), topic("a", change)) == [(ErrorCode.INVALID_REQUEST, message)]


def test_a_value_is_at_most_a_short_string() -> None:
    made = harness()
    name = "leader.replication.throttled.replicas"
    fits = ",".join(["1:1"] * 8000)
    assert outcomes(made, topic("a", (name, 0, fits + " " * (MAX_VALUE_BYTES - len(fits))))) == [(0, None)]
    code, message = outcomes(made, topic("b", (name, 0, fits + " " * (MAX_VALUE_BYTES + 1 - len(fits)))))[0]
    assert code == ErrorCode.INVALID_CONFIG
    assert "exceeds the maximum value size of 32767 bytes" in (message or "")


def test_trying_a_change_alters_nothing() -> None:
    made = harness()
    end = made.log.end_offset
    assert outcomes(made, topic("a", ("retention.ms", 0, "5")), validate_only=True) == [(0, None)]
    assert made.log.end_offset == end
    request = messages.AlterConfigsRequest
    resource = request.AlterConfigsResource(
        resource_type=2, resource_name="a", configs=[request.AlterableConfig(name="retention.ms", value="5")]
    )
    made.send(ApiKey.ALTER_CONFIGS, request(resources=[resource], validate_only=True))
    assert made.log.end_offset == end


def test_several_changes_of_one_request_build_on_each_other_in_the_log_only_once_each() -> None:
    made = harness()
    changes = [("retention.ms", 0, "5"), ("segment.ms", 0, "7")]
    end = made.log.end_offset
    assert outcomes(made, topic("a", *changes)) == [(0, None)]
    assert made.log.end_offset == end + 2
    # Only what differs is written.
    assert outcomes(made, topic("a", ("retention.ms", 0, "5"), ("segment.ms", 0, "8"))) == [(0, None)]
    assert made.log.end_offset == end + 3
    assert configs(made, "a") == {"retention.ms": "5", "segment.ms": "8"}


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (2, "", ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
        (2, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: "),
        (4, "-1", ErrorCode.INVALID_REQUEST, "Invalid negative broker ID."),
        (16, "", ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"),
        (32, "", ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."),
        (0, "a", ErrorCode.INVALID_REQUEST, "Unknown resource type 0"),
        (3, "a", ErrorCode.INVALID_REQUEST, "Unknown resource type 3"),
        (8, "1", ErrorCode.INVALID_REQUEST, "Unknown resource type 8"),
    ],
)
def test_resources_that_cannot_be_altered(kind: int, name: str, code: ErrorCode, message: str) -> None:
    resource = _Resource(resource_type=kind, resource_name=name)
    ((found, words),) = outcomes(harness(), resource)
    assert found == code
    assert (words or "").startswith(message)


def broker(*changes: tuple[str, int, str | None]) -> _Resource:
    configs = [_Request.AlterableConfig(name=key, config_operation=kind, value=value) for key, kind, value in changes]
    return _Resource(resource_type=4, resource_name="1", configs=configs)


@pytest.mark.parametrize(
    "setting",
    [
        ("listener.name.external.ssl.client.auth", "required"),
        ("sasl.enabled.mechanisms", "PLAIN"),
        ("super.users", "User:admin"),
    ],
)
def test_protection_that_this_broker_does_not_give_cannot_be_set(setting: tuple[str, str]) -> None:
    made = harness()
    ((code, message),) = outcomes(made, broker((setting[0], 0, setting[1])))
    assert code == ErrorCode.INVALID_REQUEST
    assert (message or "").startswith(f"{setting[0]}={setting[1]} asks for protection, but a node reads such")
    assert made.controller.image.configs.for_resource(4, "1") == {}


def test_a_password_is_not_repeated_in_the_error() -> None:
    ((code, message),) = outcomes(harness(), broker(("ssl.keystore.password", 0, "hunter2")))
    assert (code, "hunter2" in (message or "")) == (ErrorCode.INVALID_REQUEST, False)


def test_settings_that_mean_no_protection_can_be_set_and_deleted() -> None:
    changes = (("ssl.client.auth", 0, "none"), ("ssl.keystore.location", 1, None), ("log.cleaner.backoff.ms", 0, "7"))
    assert outcomes(harness(), broker(*changes)) == [(0, None)]


def test_the_stores_of_one_listener_can_be_set_and_deleted() -> None:
    made = harness()
    name = "listener.name.external.ssl.keystore.location"
    assert outcomes(made, broker((name, 0, "/etc/kafka/node.pem"))) == [(0, None)]
    assert made.controller.image.configs.for_resource(4, "1") == {name: "/etc/kafka/node.pem"}
    assert outcomes(made, broker((name, 1, None))) == [(0, None)]
    assert made.controller.image.configs.for_resource(4, "1") == {}


def test_the_stores_of_all_listeners_or_of_all_brokers_cannot_be_set() -> None:
    made = harness()
    prefix = "These security configs can be dynamically updated only per-listener using the listener prefix: "
    answer = (ErrorCode.INVALID_REQUEST, f"{prefix}[ssl.keystore.location]")
    assert outcomes(made, broker(("ssl.keystore.location", 0, "/etc/kafka/node.pem"))) == [answer]
    of_all = broker(("listener.name.external.ssl.truststore.location", 0, "/x"))
    of_all.resource_name = ""
    ((code, message),) = outcomes(made, of_all)
    assert (code, (message or "").partition(" id ")[0]) == (
        ErrorCode.INVALID_REQUEST,
        "Cannot update these configs at default cluster level, broker",
    )
