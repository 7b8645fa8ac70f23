"""The consumers' own messages inside the classic protocol: what they subscribe to, what they are given (control plane, pure).

    int16 version | fields of that version

Members of the classic protocol exchange these through the coordinator, which looks inside only where it must: to know which topics a group
consumes, and to bring a group from one protocol to the other.

A version above the newest known is read as the newest: fields are only added. What is no such message is MalformedMessage.

Source: Kafka class `ConsumerProtocol`; KIP-429 (owned partitions), KIP-792 (generation), KIP-881 (rack).
"""

from __future__ import annotations

import struct

from barnabas.protocol.errors import MalformedMessage
from barnabas.protocol.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription

_VERSION = struct.Struct(">h")


def version_of(data: bytes) -> int:
    """The version that a message says it is of. Raises: MalformedMessage."""
    if len(data) < _VERSION.size:
        raise MalformedMessage("a message of the consumer protocol starts with its version")
    version = int(_VERSION.unpack_from(data)[0])
    if version < 0:
        raise MalformedMessage(f"version {version} of the consumer protocol")
    return version


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """What a member subscribes to. Raises: MalformedMessage."""
    version = min(version_of(data), ConsumerProtocolSubscription.MAX_VERSION)
    subscription, _ = ConsumerProtocolSubscription.read(memoryview(data), _VERSION.size, version)
    return subscription


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """What a member is given. Raises: MalformedMessage."""
    version = min(version_of(data), ConsumerProtocolAssignment.MAX_VERSION)
    assignment, _ = ConsumerProtocolAssignment.read(memoryview(data), _VERSION.size, version)
    return assignment


def write_assignment(assignment: ConsumerProtocolAssignment, version: int) -> bytes:
    """What a member is given, in the version of its subscription or the newest known."""
    version = min(version, ConsumerProtocolAssignment.MAX_VERSION)
    return _VERSION.pack(version) + assignment.encode(version)
