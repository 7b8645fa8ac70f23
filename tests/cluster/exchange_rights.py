"""What the clients of an exchange may do in a secured cluster, as access control lists: their own topics and groups, and nothing else."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.cluster.exchanged_cluster import ExchangedCluster
from tests.cluster.way_in import way_in

USER = "exchanger"
PREFIX = "exchange-"
RIGHTS = {
    ResourceType.TOPIC: (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE),
    ResourceType.GROUP: (AclOperation.READ, AclOperation.DESCRIBE),
    ResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE),
}


def allow(cluster: ExchangedCluster) -> Path:
    """Create the access control lists as a super user, and return the settings of the user to whom they belong, as a file."""
    assert cluster.secured is not None
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, **way_in.library})
    wanted = [
        AclBinding(kind, PREFIX, ResourcePatternType.PREFIXED, f"User:{USER}", "*", operation, AclPermissionType.ALLOW)
        for kind, operations in RIGHTS.items()
        for operation in operations
    ]
    for future in admin.create_acls(wanted, request_timeout=60).values():
        future.result(60)
    settings = cluster.secured.client_settings(USER)
    file = cluster.folder / "exchanger.properties"
    file.touch(0o600)
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return file
