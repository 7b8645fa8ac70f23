"""The consumers' own messages inside the classic protocol: subscriptions and assignments.

    int16 version | fields of that version

Members of the classic protocol exchange these through the coordinator. It reads them only to find the topics that a group consumes, and to
convert a group from one protocol to the other.

A version above the newest known is read as the newest: fields are only added. Other bytes raise MalformedMessage.

Source: Kafka class `ConsumerProtocol`; KIP-429 (owned partitions), KIP-792 (generation), KIP-881 (rack).
"""

from __future__ import annotations

from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from barnabas.protocol.versioned import PREFIX, decode_consumer_protocol, read_prefix


def version_of(data: bytes) -> int:
    """Return the version of a message. Raises: MalformedMessage."""
    version = read_prefix(data)
    if version < 0:
        raise MalformedMessage(f"version {version} of the consumer protocol")
    return version


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Decode the subscription of a member. Raises: MalformedMessage."""
    return decode_consumer_protocol(ConsumerProtocolSubscription, data)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Decode the assignment of a member. Raises: MalformedMessage."""
    return decode_consumer_protocol(ConsumerProtocolAssignment, data)


def write_assignment(assignment: ConsumerProtocolAssignment, version: int) -> bytes:
    """Encode the assignment of a member, in the version of its subscription or the newest known."""
    version = min(version, ConsumerProtocolAssignment.MAX_VERSION)
    return PREFIX.pack(version) + assignment.encode(version)
