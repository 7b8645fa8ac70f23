"""Kafka's APIs by number: names, versions, headers, listeners.

Request header versions: v2 (with a tag buffer) from the API's first flexible version, v1 (with a client id) before. Header v0 was
only ever used by ControlledShutdown v0, which was removed. Response header versions: v1 from the first flexible version, else v0; the
response of ApiVersions always has v0, because a client reads it before it knows what the broker speaks (KIP-511).

Two ranges of versions differ from those that the codec can read:
- Produce advertises 0 although versions 0-2 are rejected: librdkafka takes a higher minimum as a broker that knows no compression
  (KAFKA-18659).
- The last version of some APIs is not stable yet; it is served only where that is enabled, see `latest_stable`.

Invariants:
- `ApiKey` holds all numbers in order; those Kafka has removed are named, have no description and are never advertised.

Sources: Kafka's `ApiKeys`, `ApiMessageType`, KIP-482, KIP-511.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.message import Message
from barnabas.protocol.messages import message_class
from barnabas.protocol.schema import parse_versions, schema_index


class ApiKey(IntEnum):
    """The number of an API, the first field of every request."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    VOTE = 52
    BEGIN_QUORUM_EPOCH = 53
    END_QUORUM_EPOCH = 54
    DESCRIBE_QUORUM = 55
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    BROKER_REGISTRATION = 62
    BROKER_HEARTBEAT = 63
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    CONTROLLER_REGISTRATION = 70
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    ASSIGN_REPLICAS_TO_DIRS = 73
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    UPDATE_RAFT_VOTER = 82
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93
    UNREGISTER_CONTROLLER = 94


REMOVED = frozenset((ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN))
"""Numbers whose APIs Kafka removed in 4.0."""

PRODUCE_ADVERTISED_MIN = 0

ABOVE_EVERY_VERSION = 1 << 15
"""Versions are int16."""


class ApiDescription(NamedTuple):
    """The properties of an API that are known before any of its messages is read.

    Attributes:
        name: Kafka's name without "Request".
        min_version, max_version: the versions that the codec reads, unstable versions included.
        flexible_from: first flexible version, None if no version is flexible.
        request, response: names of the message classes.
        listeners: `broker`, `controller`, or both.
        latest_version_unstable: whether `max_version` is not stable yet.
    """

    key: ApiKey
    name: str
    min_version: int
    max_version: int
    flexible_from: int | None
    request: str
    response: str
    listeners: tuple[str, ...]
    latest_version_unstable: bool

    @property
    def latest_stable(self) -> int:
        """The highest version that is stable; below `min_version` when none is."""
        return self.max_version - self.latest_version_unstable

    @property
    def advertised_min(self) -> int:
        """The lowest version an ApiVersions response names."""
        return PRODUCE_ADVERTISED_MIN if self.key is ApiKey.PRODUCE else self.min_version

    @property
    def tagged_response_header_from(self) -> int:
        """The first version with response header version 1; above every version when none has it.

        ApiVersions keeps version 0, so that a client can read the response to a version that the broker does not know.
        """
        if self.flexible_from is None or self.key is ApiKey.API_VERSIONS:
            return ABOVE_EVERY_VERSION
        return self.flexible_from

    @property
    def request_class(self) -> type[Message]:
        return message_class(self.request)

    @property
    def response_class(self) -> type[Message]:
        return message_class(self.response)


@cache
def descriptions() -> dict[int, ApiDescription]:
    """Return every API that exists, in the order of the keys."""
    return {int(key): describe(int(key), *row) for key, row in schema_index()["apis"].items()}


def describe(key: int, name: str, valid: str, flexible: str, unstable: bool, listeners: list[str]) -> ApiDescription:
    low, high = parse_versions(valid)
    first = None if flexible == "none" else max(parse_versions(flexible).low, low)
    return ApiDescription(
        ApiKey(key), name, low, high, first, f"{name}Request", f"{name}Response", tuple(listeners), unstable
    )


def api(key: int) -> ApiDescription:
    """Return the description of an API.

    Raises:
        KafkaError: UNSUPPORTED_VERSION when there is no such API, or it was removed; Kafka closes the connection then.
    """
    description = descriptions().get(key)
    if description is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"no API has the key {key}")
    return description


def request_header_version(key: int, version: int) -> int:
    """Return the version of a request's header; an unknown version counts as the nearest known one."""
    first = api(key).flexible_from
    return 2 if first is not None and version >= first else 1


def response_header_version(key: int, version: int) -> int:
    """Return the version of a response's header."""
    return int(version >= api(key).tagged_response_header_from)
