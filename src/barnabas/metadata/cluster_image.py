"""The nodes that have registered: brokers and controllers.

A broker registers with an incarnation id and gets a broker epoch (the offset of its record); it starts fenced, that is
known but not to be used, and is unfenced once it has caught up with the metadata log.

Sources: Kafka's `ClusterImage`, `BrokerRegistration`; RegisterBrokerRecord, FenceBrokerRecord, UnfenceBrokerRecord,
BrokerRegistrationChangeRecord, UnregisterBrokerRecord, RegisterControllerRecord, UnregisterControllerRecord; KIP-631.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.metadata.nothing import NOTHING
from barnabas.protocol import messages


class Endpoint(NamedTuple):
    """A listener as registered; `security_protocol` is Kafka's number (0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL)."""

    name: str
    host: str
    port: int
    security_protocol: int


class VersionRange(NamedTuple):
    min: int
    max: int


class BrokerRegistration(NamedTuple):
    id: int
    epoch: int
    incarnation_id: bytes
    listeners: tuple[Endpoint, ...]
    supported_features: Mapping[str, VersionRange]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    directories: tuple[bytes, ...]
    cordoned_directories: tuple[bytes, ...] = ()

    @property
    def takes_new_replicas(self) -> bool:
        """Whether a directory is not cordoned (KIP-1066); a broker that names none takes them."""
        return not self.directories or not set(self.directories) <= set(self.cordoned_directories)

    def listener(self, name: str) -> Endpoint | None:
        return next((endpoint for endpoint in self.listeners if endpoint.name == name), None)

    @classmethod
    def from_record(cls, record: messages.RegisterBrokerRecord) -> BrokerRegistration:
        return cls(
            id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            listeners=tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points),
            supported_features={
                f.name: VersionRange(f.min_supported_version, f.max_supported_version) for f in record.features
            },
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            directories=tuple(record.log_dirs),
            cordoned_directories=tuple(record.cordoned_log_dirs or ()),
        )

    def to_record(self) -> messages.RegisterBrokerRecord:
        return messages.RegisterBrokerRecord(
            broker_id=self.id,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=[
                messages.RegisterBrokerRecord.BrokerEndpoint(
                    name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol
                )
                for e in self.listeners
            ],
            features=[
                messages.RegisterBrokerRecord.BrokerFeature(
                    name=n, min_supported_version=r.min, max_supported_version=r.max
                )
                for n, r in sorted(self.supported_features.items())
            ],
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.directories),
            cordoned_log_dirs=list(self.cordoned_directories) or None,
        )


class ControllerRegistration(NamedTuple):
    id: int
    incarnation_id: bytes
    listeners: tuple[Endpoint, ...]
    supported_features: Mapping[str, VersionRange]

    @classmethod
    def from_record(cls, record: messages.RegisterControllerRecord) -> ControllerRegistration:
        return cls(
            record.controller_id,
            record.incarnation_id,
            tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points),
            {f.name: VersionRange(f.min_supported_version, f.max_supported_version) for f in record.features},
        )

    def to_record(self) -> messages.RegisterControllerRecord:
        return messages.RegisterControllerRecord(
            controller_id=self.id,
            incarnation_id=self.incarnation_id,
            zk_migration_ready=False,
            end_points=[
                messages.RegisterControllerRecord.ControllerEndpoint(
                    name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol
                )
                for e in self.listeners
            ],
            features=[
                messages.RegisterControllerRecord.ControllerFeature(
                    name=n, min_supported_version=r.min, max_supported_version=r.max
                )
                for n, r in sorted(self.supported_features.items())
            ],
        )


class ClusterImage(NamedTuple):
    """Nodes by id, in id order."""

    brokers: Mapping[int, BrokerRegistration] = NOTHING
    controllers: Mapping[int, ControllerRegistration] = NOTHING

    def live_brokers(self) -> list[BrokerRegistration]:
        return [broker for broker in self.brokers.values() if not broker.fenced]

    def records(self) -> Iterator[messages.RegisterBrokerRecord | messages.RegisterControllerRecord]:
        for controller in self.controllers.values():
            yield controller.to_record()
        for broker in self.brokers.values():
            yield broker.to_record()


class ClusterDelta:
    """The nodes that records since `image` changed; None in `changed_*` for an unregistered node."""

    def __init__(self, image: ClusterImage) -> None:
        self.image = image
        self.changed_brokers: dict[int, BrokerRegistration | None] = {}
        self.changed_controllers: dict[int, ControllerRegistration | None] = {}

    def broker(self, node_id: int) -> BrokerRegistration | None:
        if node_id in self.changed_brokers:
            return self.changed_brokers[node_id]
        return self.image.brokers.get(node_id)

    def _registered(self, node_id: int, epoch: int, cause: str) -> BrokerRegistration:
        broker = self.broker(node_id)
        assert broker is not None, f"{cause} names broker {node_id}, which is not registered"
        assert broker.epoch == epoch, f"{cause} has epoch {epoch} for broker {node_id}, which has {broker.epoch}"
        return broker

    def replay_register_broker(self, record: messages.RegisterBrokerRecord) -> None:
        self.changed_brokers[record.broker_id] = BrokerRegistration.from_record(record)

    def replay_unregister_broker(self, record: messages.UnregisterBrokerRecord) -> None:
        self._registered(record.broker_id, record.broker_epoch, "UnregisterBrokerRecord")
        self.changed_brokers[record.broker_id] = None

    def replay_fence(self, record: messages.FenceBrokerRecord) -> None:
        self.changed_brokers[record.id] = self._registered(record.id, record.epoch, record.NAME)._replace(fenced=True)

    def replay_unfence(self, record: messages.UnfenceBrokerRecord) -> None:
        self.changed_brokers[record.id] = self._registered(record.id, record.epoch, record.NAME)._replace(fenced=False)

    def replay_broker_change(self, record: messages.BrokerRegistrationChangeRecord) -> None:
        broker = self._registered(record.broker_id, record.broker_epoch, "BrokerRegistrationChangeRecord")
        # Fenced: 1 fence, -1 unfence, 0 no change. Controlled shutdown: 1 begins, 0 no change.
        if record.fenced:
            broker = broker._replace(fenced=record.fenced > 0)
        if record.in_controlled_shutdown:
            broker = broker._replace(in_controlled_shutdown=record.in_controlled_shutdown > 0)
        if record.log_dirs:
            broker = broker._replace(directories=tuple(record.log_dirs))
        if record.cordoned_log_dirs is not None:
            broker = broker._replace(cordoned_directories=tuple(record.cordoned_log_dirs))
        self.changed_brokers[broker.id] = broker

    def replay_register_controller(self, record: messages.RegisterControllerRecord) -> None:
        self.changed_controllers[record.controller_id] = ControllerRegistration.from_record(record)

    def replay_unregister_controller(self, record: messages.UnregisterControllerRecord) -> None:
        self.changed_controllers[record.controller_id] = None

    def apply(self) -> ClusterImage:
        brokers = {**self.image.brokers, **self.changed_brokers}
        controllers = {**self.image.controllers, **self.changed_controllers}
        return ClusterImage(
            {i: broker for i, broker in sorted(brokers.items()) if broker is not None},
            {i: controller for i, controller in sorted(controllers.items()) if controller is not None},
        )
