"""Registrations of brokers and controllers: what is accepted, what is recorded, and which epoch a broker gets."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.metadata.cluster_control import register_broker, register_controller
from barnabas.metadata.cluster_image import Endpoint, VersionRange
from barnabas.metadata.directory_ids import UNASSIGNED
from barnabas.metadata.features_image import FeaturesImage
from barnabas.metadata.metadata_version import (
    CONTROLLER_REGISTRATION_SINCE,
    DIRECTORY_ASSIGNMENT_SINCE,
    supported_features,
)
from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey
from barnabas.protocol.errors import ErrorCode, KafkaError
from tests.metadata.controller_harness import CLUSTER_ID, INCARNATION, ControllerHarness, directory_of

OTHER = b"o" * 16


def request(broker_id: int = 2, **fields: Any) -> messages.BrokerRegistrationRequest:
    made = messages.BrokerRegistrationRequest
    levels = {name: (r.min, r.max) for name, r in supported_features().items()} | fields.pop("levels", {})
    return made(
        broker_id=broker_id,
        cluster_id=fields.pop("cluster_id", CLUSTER_ID),
        incarnation_id=fields.pop("incarnation_id", INCARNATION),
        listeners=[made.Listener(name="IN", host="h", port=7, security_protocol=2)],
        features=[
            made.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in sorted(levels.items(), reverse=True)
        ],
        rack="r",
        log_dirs=fields.pop("log_dirs", [b"z" * 16, b"a" * 16]),
        **fields,
    )


def register(harness: ControllerHarness, *args: Any, **fields: Any) -> int:
    epoch: int = harness.send(ApiKey.BROKER_REGISTRATION, request(*args, **fields)).broker_epoch
    return epoch


def refusal(harness: ControllerHarness, *args: Any, **fields: Any) -> tuple[ErrorCode, str]:
    with pytest.raises(KafkaError) as caught:
        register(harness, *args, **fields)
    return caught.value.code, caught.value.message


def test_a_registration_is_kept_whole_and_fenced() -> None:
    harness = ControllerHarness()
    end = harness.log.end_offset
    assert register(harness) == end
    broker = harness.controller.image.cluster.brokers[2]
    assert broker.listener("IN") == Endpoint("IN", "h", 7, 2)
    assert broker.listener("OUT") is None
    assert broker.supported_features["metadata.version"] == VersionRange(7, 33)
    assert list(broker.supported_features) == sorted(broker.supported_features)
    assert (broker.epoch, broker.incarnation_id, broker.rack) == (end, INCARNATION, "r")
    assert (broker.fenced, broker.in_controlled_shutdown) == (True, False)
    assert broker.directories == (b"a" * 16, b"z" * 16)


def test_a_broker_with_several_directories_chooses_one_for_each_replica_later() -> None:
    harness = ControllerHarness()
    harness.heartbeat(2, register(harness))
    harness.create("a")
    assert harness.controller.image.topics.by_name["a"].partitions[0].directories == (UNASSIGNED,)


def test_a_broker_of_another_cluster_is_rejected() -> None:
    expected = f"Expected cluster ID {CLUSTER_ID}, but got cluster ID other"
    assert refusal(ControllerHarness(), cluster_id="other") == (ErrorCode.INCONSISTENT_CLUSTER_ID, expected)


@pytest.mark.parametrize(("low", "high"), [(0, 32), (34, 40)])
def test_a_broker_must_support_what_is_finalized(low: int, high: int) -> None:
    code, message = refusal(ControllerHarness(), levels={"metadata.version": (low, high)})
    assert code is ErrorCode.UNSUPPORTED_VERSION
    assert f"version 33 of metadata.version. The broker wants a version between {low} and {high}," in message


def test_a_feature_that_a_broker_does_not_name_is_at_level_zero_there() -> None:
    harness = ControllerHarness()
    bare = request()
    bare.features = [each for each in bare.features if each.name != "group.version"]
    with pytest.raises(KafkaError, match=r"version 1 of group.version. The broker wants a version between 0 and 0"):
        harness.send(ApiKey.BROKER_REGISTRATION, bare)


@pytest.mark.parametrize(
    ("directories", "fault"),
    [
        ([], "No directories specified in request"),
        ([b"a" * 16, bytes(15) + b"\x63"], "Reserved directory ID in request"),
        ([b"a" * 16, b"a" * 16], "Duplicate directory ID in request"),
        ([b"a" * 16, directory_of(3)], "Broker 3 is already registered with directory ZGRkZGRkZGRkZGRkZGRkAw"),
    ],
)
def test_a_broker_must_name_directories_that_are_its_own(directories: list[bytes], fault: str) -> None:
    harness = ControllerHarness()
    harness.register(3)
    assert refusal(harness, log_dirs=directories) == (ErrorCode.INVALID_REGISTRATION, fault)
    register(harness, log_dirs=[b"a" * 16])
    # The same broker may have the same directories in its next life.
    harness.now_ms += harness.settings.broker_session_timeout_ms
    register(harness, log_dirs=[b"a" * 16], incarnation_id=OTHER)


def test_a_broker_of_a_cluster_without_names_of_directories_need_not_name_any() -> None:
    view = ControllerHarness().view()
    features = FeaturesImage(DIRECTORY_ASSIGNMENT_SINCE - 1)
    register_broker(view._replace(image=view.image._replace(features=features)), request(log_dirs=[]))


def test_controllers_register_only_where_the_metadata_has_them() -> None:
    view = ControllerHarness().view()
    asked = messages.ControllerRegistrationRequest(controller_id=1)
    assert len(register_controller(view, asked).records) == 1
    features = FeaturesImage(CONTROLLER_REGISTRATION_SINCE - 1)
    with pytest.raises(KafkaError) as caught:
        register_controller(view._replace(image=view.image._replace(features=features)), asked)
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_the_same_incarnation_keeps_its_epoch_and_its_state() -> None:
    harness = ControllerHarness()
    epoch = harness.register(2)
    # A broker that leads something hands it over before it may stop.
    harness.create("a")
    harness.heartbeat(2, epoch, want_shut_down=True)
    assert register(harness) == epoch
    broker = harness.controller.image.cluster.brokers[2]
    assert (broker.epoch, broker.fenced, broker.in_controlled_shutdown) == (epoch, False, True)
    assert broker.rack == "r"


def test_another_incarnation_waits_until_the_first_ones_session_expires() -> None:
    harness = ControllerHarness()
    harness.register(2)
    timeout_ms = harness.settings.broker_session_timeout_ms
    harness.now_ms += timeout_ms - 1
    assert refusal(harness, incarnation_id=OTHER)[0] is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    harness.now_ms += 1
    end = harness.log.end_offset
    assert register(harness, incarnation_id=OTHER) == end
    assert harness.controller.image.cluster.brokers[2].incarnation_id == OTHER


@pytest.mark.parametrize("broker_id", [1, 2], ids=["its own node", "another node"])
def test_another_incarnation_of_a_fenced_or_combined_node_need_not_wait(broker_id: int) -> None:
    harness = ControllerHarness()
    epoch = harness.register(broker_id)
    if broker_id == 2:
        harness.heartbeat(2, epoch, want_fence=True)
    assert register(harness, broker_id, incarnation_id=OTHER) > epoch


def test_another_incarnation_need_not_wait_for_one_whose_connection_has_ended() -> None:
    harness = ControllerHarness()
    epoch = harness.register(2)
    active = harness.controller.active
    assert active is not None
    active.broker_disconnected(2, epoch - 1)
    assert refusal(harness, incarnation_id=OTHER)[0] is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    active.broker_disconnected(2, epoch)
    assert register(harness, incarnation_id=OTHER) > epoch
    with pytest.raises(KafkaError) as caught:
        harness.heartbeat(2, epoch)
    assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_a_replaced_broker_leads_nothing_and_its_epoch_is_its_records_offset() -> None:
    harness = ControllerHarness()
    harness.register(1)
    harness.create("a", partitions=3)
    end = harness.log.end_offset
    epoch = register(harness, 1, incarnation_id=OTHER)
    assert epoch == end + 3 == harness.log.end_offset - 1
    assert {p.leader for p in harness.controller.image.topics.by_name["a"].partitions.values()} == {-1}


def test_a_fenced_broker_is_unregistered_by_one_record() -> None:
    harness = ControllerHarness()
    epoch = harness.register(1)
    harness.create("a")
    harness.heartbeat(1, epoch, want_fence=True)
    end = harness.log.end_offset
    harness.send(ApiKey.UNREGISTER_BROKER, messages.UnregisterBrokerRequest(broker_id=1))
    assert harness.log.end_offset == end + 1
    assert harness.controller.image.cluster.brokers == {}


def test_a_controller_registers_with_listeners_and_features() -> None:
    harness = ControllerHarness()
    made = messages.ControllerRegistrationRequest
    answer = harness.send(
        ApiKey.CONTROLLER_REGISTRATION,
        made(
            controller_id=1,
            incarnation_id=INCARNATION,
            zk_migration_ready=True,
            listeners=[made.Listener(name="C", host="h", port=7, security_protocol=3)],
            features=[
                made.Feature(name="b", min_supported_version=1, max_supported_version=2),
                made.Feature(name="a", min_supported_version=3, max_supported_version=4),
            ],
        ),
    )
    assert (answer.error_code, answer.error_message) == (0, None)
    controller = harness.controller.image.cluster.controllers[1]
    assert (controller.id, controller.incarnation_id) == (1, INCARNATION)
    assert controller.listeners == (Endpoint("C", "h", 7, 3),)
    assert list(controller.supported_features.items()) == [("a", VersionRange(3, 4)), ("b", VersionRange(1, 2))]
    record = controller.to_record()
    assert record.end_points[0].security_protocol == 3
    assert [(f.name, f.min_supported_version, f.max_supported_version) for f in record.features] == [
        ("a", 3, 4),
        ("b", 1, 2),
    ]


def test_a_wall_clock_that_jumps_ends_no_request() -> None:
    harness = ControllerHarness()
    harness.register(2)
    harness.log.hold = True
    waiting = harness.later(ApiKey.UNREGISTER_BROKER, messages.UnregisterBrokerRequest(broker_id=2))
    harness.wall_jump_ms = 3_600_000
    harness.controller.tick()
    assert not waiting.done()
