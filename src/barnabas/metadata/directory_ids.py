"""The ids of log directories: those that stand for no directory, and the directory of a new replica of a broker.

Source: KIP-858; Kafka's `DirectoryId`, `ClusterControlManager.defaultDir`.
"""

from __future__ import annotations

from barnabas.metadata.cluster_image import BrokerRegistration
from barnabas.protocol.primitives import ZERO_UUID, Uuid

# From a time when directories had no names, not assigned yet, and offline.
MIGRATING, UNASSIGNED, LOST = ZERO_UUID, Uuid(bytes(15) + b"\1"), Uuid(bytes(15) + b"\2")
_RESERVED = 100
"""The first ids, which no directory may have."""


def is_reserved(directory_id: bytes) -> bool:
    """Return whether an id may not be that of a directory."""
    return int.from_bytes(directory_id) < _RESERVED


def default_directory(broker: BrokerRegistration | None) -> bytes:
    """Return where a broker puts a new replica; a broker with several directories chooses one, and reports it later."""
    if broker is None:
        return UNASSIGNED
    if not broker.directories:
        return MIGRATING
    return broker.directories[0] if len(broker.directories) == 1 else UNASSIGNED
