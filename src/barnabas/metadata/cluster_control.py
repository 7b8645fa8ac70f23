"""The registrations of brokers and controllers: BrokerRegistration, UnregisterBroker, ControllerRegistration, UnregisterController.

- A registration gets a broker epoch, which is the offset of its record, and starts fenced; `broker_fencing` has the rest of a broker's
  life. The same incarnation may register again; another incarnation with the same id replaces it once the old one is fenced, or shuts
  down in order, or its session has expired, or the connection of its heartbeats has ended.
- A new incarnation names the epoch of the one before if that one shut down cleanly. If it does not, the broker has crashed: it leaves
  every ISR and every ELR.

Difference from Kafka: a broker that is started again after a crash need not wait for the session of the process that died: the connection
of its heartbeats has ended. If that process lives after all, the controller rejects its next heartbeat.

Sources: KIP-631, KIP-966; Kafka's `ClusterControlManager`.
"""

from __future__ import annotations

from barnabas.metadata.batches import Batches
from barnabas.metadata.cluster_image import BrokerRegistration
from barnabas.metadata.controller_view import ControllerResult, ControllerView
from barnabas.metadata.directory_ids import is_reserved
from barnabas.metadata.metadata_version import (
    CONTROLLER_REGISTRATION_SINCE,
    CONTROLLER_UNREGISTRATION_SINCE,
    DIRECTORY_ASSIGNMENT_SINCE,
)
from barnabas.metadata.partition_leaders import on_broker_crashed, on_broker_gone
from barnabas.protocol import messages
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import uuid_to_str


def register_broker(
    view: ControllerView, request: messages.BrokerRegistrationRequest
) -> ControllerResult[messages.BrokerRegistrationResponse]:
    """Answer one BrokerRegistration.

    Raises:
        KafkaError: INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION, UNSUPPORTED_VERSION, INVALID_REGISTRATION.
    """
    if request.cluster_id != view.settings.cluster_id:
        expected, got = view.settings.cluster_id, request.cluster_id
        raise KafkaError(ErrorCode.INCONSISTENT_CLUSTER_ID, f"Expected cluster ID {expected}, but got cluster ID {got}")
    existing = view.image.cluster.brokers.get(request.broker_id)
    same_incarnation = existing is not None and existing.incarnation_id == request.incarnation_id
    if existing is not None and not same_incarnation and not existing.fenced:
        # A combined node cannot be alive twice: its controller and its broker share one process.
        is_own = request.broker_id == view.settings.node_id
        if not is_own and not existing.in_controlled_shutdown and view.sessions.is_alive(existing.id, view.now_ms):
            message = (
                "Another broker is registered with that broker id. If the broker was recently restarted this should "
                "self-resolve once the heartbeat manager expires the broker's session."
            )
            raise KafkaError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, message)
    _check_directories(view, request)
    _check_features(view, request)
    response = messages.BrokerRegistrationResponse()
    if existing is not None and same_incarnation:
        response.broker_epoch = existing.epoch
        return ControllerResult(response, [_registration_record(request, existing.epoch, existing)])
    return ControllerResult(response, batches=_new_incarnation(view, request, response))


def _new_incarnation(
    view: ControllerView,
    request: messages.BrokerRegistrationRequest,
    response: messages.BrokerRegistrationResponse,
) -> Batches:
    existing = view.image.cluster.brokers.get(request.broker_id)
    # The words of the former process on its logs do not hold for this one.
    view.sessions.logs.forget(request.broker_id)
    stopped_in_order = existing is not None and existing.epoch == request.previous_broker_epoch
    records = yield from (on_broker_gone if stopped_in_order else on_broker_crashed)(view, request.broker_id)
    view.sessions.forget(request.broker_id)
    response.broker_epoch = view.quorum.end_offset + len(records)
    return [*records, _registration_record(request, response.broker_epoch, None)]


def _check_directories(view: ControllerView, request: messages.BrokerRegistrationRequest) -> None:
    """Reject directories that could be mistaken for others; each has an id of its own in the whole cluster (KIP-858)."""
    if _metadata_version(view) < DIRECTORY_ASSIGNMENT_SINCE:
        return
    directories, fault = request.log_dirs, None
    if not directories:
        fault = "No directories specified in request"
    elif any(is_reserved(directory) for directory in directories):
        fault = "Reserved directory ID in request"
    elif len(set(directories)) != len(directories):
        fault = "Duplicate directory ID in request"
    for broker in view.image.cluster.brokers.values():
        for directory in directories:
            if fault is None and broker.id != request.broker_id and directory in broker.directories:
                fault = f"Broker {broker.id} is already registered with directory {uuid_to_str(directory)}"
    if fault is not None:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, fault)


def _metadata_version(view: ControllerView) -> int:
    return view.image.features.metadata_version or 0


def _check_features(view: ControllerView, request: messages.BrokerRegistrationRequest) -> None:
    offered = {f.name: (f.min_supported_version, f.max_supported_version) for f in request.features}
    for name, level in view.image.features.all_finalized().items():
        low, high = offered.get(name, (0, 0))
        if not low <= level <= high:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {level} of {name}. The "
                f"broker wants a version between {low} and {high}, inclusive.",
            )


def _registration_record(
    request: messages.BrokerRegistrationRequest, epoch: int, amended: BrokerRegistration | None
) -> messages.RegisterBrokerRecord:
    record = messages.RegisterBrokerRecord
    return record(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=[
            record.BrokerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in request.listeners
        ],
        features=[
            record.BrokerFeature(
                name=f.name,
                min_supported_version=f.min_supported_version,
                max_supported_version=f.max_supported_version,
            )
            for f in sorted(request.features, key=lambda feature: feature.name)
        ],
        rack=request.rack,
        fenced=True if amended is None else amended.fenced,
        in_controlled_shutdown=False if amended is None else amended.in_controlled_shutdown,
        log_dirs=sorted(request.log_dirs),
    )


def registered(view: ControllerView, broker_id: int, epoch: int) -> BrokerRegistration:
    """Return the registration of the broker that sends a request.

    Raises:
        KafkaError: STALE_BROKER_EPOCH, there is no such registration.
    """
    broker = view.image.cluster.brokers.get(broker_id)
    if broker is None:
        message = f"No broker registration found for broker id {broker_id}"
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, message)
    if broker.epoch != epoch:
        message = f"Expected broker epoch {epoch}, but got broker epoch {broker.epoch}"
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, message)
    return broker


def register_controller(
    view: ControllerView, request: messages.ControllerRegistrationRequest
) -> ControllerResult[messages.ControllerRegistrationResponse]:
    """Answer one ControllerRegistration, with a controller's listeners and features (KIP-919).

    Raises:
        KafkaError: UNSUPPORTED_VERSION before metadata.version 3.7-IV0.
    """
    if _metadata_version(view) < CONTROLLER_REGISTRATION_SINCE:
        message = "The current MetadataVersion is too old to support controller registrations."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
    record = messages.RegisterControllerRecord
    registration = record(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=request.zk_migration_ready,
        end_points=[
            record.ControllerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in request.listeners
        ],
        features=[
            record.ControllerFeature(
                name=f.name,
                min_supported_version=f.min_supported_version,
                max_supported_version=f.max_supported_version,
            )
            for f in sorted(request.features, key=lambda feature: feature.name)
        ],
    )
    return ControllerResult(messages.ControllerRegistrationResponse(error_message=None), [registration])


def unregister_controller(
    view: ControllerView, request: messages.UnregisterControllerRequest
) -> ControllerResult[messages.UnregisterControllerResponse]:
    """Answer one UnregisterController: forget the registration of a controller that is gone for good (KIP-1312).

    Raises:
        KafkaError: INVALID_REQUEST: it is this controller; UNSUPPORTED_VERSION before metadata.version 4.4-IV2;
            CONTROLLER_ID_NOT_REGISTERED.
    """
    controller_id = request.controller_id
    if controller_id == view.settings.node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Controller cannot unregister itself while it is active.")
    if _metadata_version(view) < CONTROLLER_UNREGISTRATION_SINCE:
        message = "The current MetadataVersion is too old to support controller unregistration."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
    if controller_id not in view.image.cluster.controllers:
        message = f"Controller ID {controller_id} is not currently registered."
        raise KafkaError(ErrorCode.CONTROLLER_ID_NOT_REGISTERED, message)
    record = messages.UnregisterControllerRecord(controller_id=controller_id)
    return ControllerResult(messages.UnregisterControllerResponse(), [record])


def unregister_broker(
    view: ControllerView, request: messages.UnregisterBrokerRequest
) -> ControllerResult[messages.UnregisterBrokerResponse]:
    broker = view.image.cluster.brokers.get(request.broker_id)
    if broker is None:
        message = f"Broker ID {request.broker_id} is not currently registered"
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    return ControllerResult(messages.UnregisterBrokerResponse(error_message=None), batches=_unregister(view, broker))


def _unregister(view: ControllerView, broker: BrokerRegistration) -> Batches:
    records = yield from on_broker_gone(view, broker.id)
    return [*records, messages.UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)]
