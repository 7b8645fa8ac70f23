"""The access control lists on their way from the committed metadata to this node's authorizer.

The first image, which has everything up to the quorum's high watermark, replaces what the authorizer has: until then only super users get
an answer. Later changes add and remove single lists; a snapshot that replaces the image comes as such a change, too.

Source: Kafka's `AclPublisher`.
"""

from __future__ import annotations

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.security.acls import AclBinding
from barnabas.security.authorizer import StandardAuthorizer

__all__ = ["AclPublisher"]


class AclPublisher:
    """Publishes the access control lists to one authorizer."""

    def __init__(self, authorizer: StandardAuthorizer) -> None:
        self._authorizer = authorizer

    def __repr__(self) -> str:
        return f"<AclPublisher {self._authorizer!r}>"

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Take over a change, given the image after it."""
        if not self._authorizer.is_ready:
            self._authorizer.replace({key: AclBinding(*entry) for key, entry in image.acls.entries.items()})
        elif delta.acls is not None:
            known = delta.acls.image.entries
            for key, entry in delta.acls.changed.items():
                if entry is not None:
                    self._authorizer.add(key, AclBinding(*entry))
                elif key in known:  # One that was created and removed within the change was never here.
                    self._authorizer.remove(key)
