"""Access control lists on their way to the authorizer."""

from __future__ import annotations

from barnabas.metadata.acl_publisher import AclPublisher
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage, MetadataProvenance
from barnabas.metadata.image_difference import difference
from barnabas.protocol import messages
from barnabas.security.acls import AclOperation, ResourceType
from barnabas.security.authorizer import StandardAuthorizer
from barnabas.security.principal import Principal

ALICE = Principal("User", "alice")
FIRST, SECOND = bytes(15) + b"\1", bytes(15) + b"\2"


def acl(key: bytes, topic: str) -> messages.AccessControlEntryRecord:
    return messages.AccessControlEntryRecord(
        id=key, resource_type=2, resource_name=topic, pattern_type=3, principal="User:alice", host="*", operation=3,
        permission_type=3,
    )  # fmt: skip


class Publishing:
    """An image that records change, and an authorizer that follows."""

    def __init__(self) -> None:
        self.authorizer = StandardAuthorizer()
        self.publisher = AclPublisher(self.authorizer)
        self.image = MetadataImage()

    def publish(self, *records: messages.AccessControlEntryRecord | messages.RemoveAccessControlEntryRecord) -> None:
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply(MetadataProvenance(self.image.provenance.offset + 1, 0, 0))
        self.publisher.publish(delta, self.image)

    def reads(self, topic: str) -> bool:
        return self.authorizer.is_allowed(ALICE, "10.0.0.1", AclOperation.READ, ResourceType.TOPIC, topic)


def test_the_first_image_makes_the_authorizer_ready() -> None:
    node = Publishing()
    assert not node.authorizer.is_ready
    node.publish()
    assert node.authorizer.is_ready
    assert not node.reads("t")


def test_changes_add_and_remove() -> None:
    node = Publishing()
    node.publish(acl(FIRST, "t"))
    node.publish(acl(SECOND, "u"))
    assert (node.reads("t"), node.reads("u")) == (True, True)
    version = node.authorizer.version
    node.publish(messages.RemoveAccessControlEntryRecord(id=FIRST))
    assert (node.reads("t"), node.reads("u")) == (False, True)
    assert node.authorizer.version != version


def test_one_that_comes_and_goes_in_a_change() -> None:
    node = Publishing()
    node.publish()
    node.publish(acl(FIRST, "t"), messages.RemoveAccessControlEntryRecord(id=FIRST))
    assert not node.reads("t")


def test_a_snapshot_replaces_them() -> None:
    node = Publishing()
    node.publish(acl(FIRST, "t"))
    fresh = MetadataDelta(MetadataImage())
    fresh.replay(acl(SECOND, "u"))
    image = fresh.apply(MetadataProvenance(9, 0, 0))
    node.publisher.publish(difference(node.image, image), image)
    assert (node.reads("t"), node.reads("u")) == (False, True)
