"""What the clients of an exchange may do in a secured cluster, as access control lists: their own topics and groups, and nothing else."""

from __future__ import annotations

from pathlib import Path

from barnabas.security.acls import AclBinding, AclOperation, PatternType, Permission, ResourceType
from tests.cluster.cluster import Cluster
from tests.cluster.shared_rights import create_acls

USER = "exchanger"
PREFIX = "exchange-"
RIGHTS = {
    ResourceType.TOPIC: (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE),
    ResourceType.GROUP: (AclOperation.READ, AclOperation.DESCRIBE),
    ResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE),
}


def allow(cluster: Cluster) -> Path:
    """Create the access control lists as a super user, and return the settings of the user to whom they belong, as a file."""
    assert cluster.secured is not None
    wanted = [
        AclBinding(kind, PREFIX, PatternType.PREFIXED, f"User:{USER}", "*", operation, Permission.ALLOW)
        for kind, operations in RIGHTS.items()
        for operation in operations
    ]
    # Until every broker has them: a producer that is refused once is refused for good.
    create_acls(cluster, cluster.brokers[0], wanted)
    settings = cluster.secured.client_settings(USER)
    file = cluster.folder / "exchanger.properties"
    file.touch(0o600)
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return file
