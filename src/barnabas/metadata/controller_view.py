"""The state from which a manager answers one request, and the manager's result.

A manager is a set of functions from a view and a request to a `ControllerResult`: records to append, and the response
to give once they are committed. It changes nothing; the state moves when the records are replayed.

Sources: Kafka's `ControllerResult`, and the constructor arguments of its control managers.
"""

from __future__ import annotations

import random
from typing import Generic, NamedTuple, Protocol, TypeVar

from barnabas.clock import Clock
from barnabas.metadata.batches import Batches
from barnabas.metadata.broker_sessions import BrokerSessions
from barnabas.metadata.config_entries import ConfigResolver
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.record_codec import MetadataRecord
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.primitives import ONE_UUID, ZERO_UUID, Uuid
from barnabas.raft.raft_node import RaftNode
from barnabas.security.delegation_tokens import TokenSettings
from barnabas.security.principal import ANONYMOUS, Principal

Response = TypeVar("Response")

# An atomic change has to fit one batch; Kafka's controller stops at the same number.
MAX_RECORDS_PER_REQUEST = 10_000
RESERVED_UUIDS = (ZERO_UUID, ONE_UUID)


class ControllerResult(Generic[Response]):
    """Records to append, and what to answer when all of them are committed.

    Args:
        records: appended atomically.
        batches: appended instead of `records` if the change may touch more partitions than one batch should hold. Until they are
            exhausted they may still write into the response.
        upgrades_kraft_version: whether the leader upgrades kraft.version, with control records, before it appends `records`.
    """

    __slots__ = ("batches", "records", "response", "upgrades_kraft_version")

    def __init__(
        self,
        response: Response,
        records: list[MetadataRecord] | None = None,
        *,
        batches: Batches | None = None,
        upgrades_kraft_version: bool = False,
    ) -> None:
        self.response = response
        self.records: list[MetadataRecord] = [] if records is None else records
        self.batches = batches
        self.upgrades_kraft_version = upgrades_kraft_version


class ApiError(NamedTuple):
    """The outcome for one item of a request; if `message` is None, the client shows its own text for the code."""

    code: ErrorCode
    message: str | None = None


NO_ERROR = ApiError(ErrorCode.NONE)


class ControllerSettings(NamedTuple):
    """The node's settings that the controller uses; `max_idle_interval_ms` 0: no NoOpRecord; `tokens` None: no delegation tokens."""

    node_id: int
    cluster_id: str
    num_partitions: int = 1
    default_replication_factor: int = 1
    delete_topic_enable: bool = True
    broker_session_timeout_ms: int = 9000
    auto_leader_rebalance_enable: bool = True
    leader_imbalance_check_interval_ms: int = 300_000
    unclean_leader_election_interval_ms: int = 300_000
    max_idle_interval_ms: int = 0
    tokens: TokenSettings | None = None
    unclean_recovery_strategy: str = "Balanced"
    unclean_recovery_timeout_ms: int = 300_000


class PartitionQuota(Protocol):
    """The partitions that a client may still create and delete (the controller mutation quota)."""

    def record(self, permits: int) -> None:
        """Count partitions created or deleted.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED.
        """
        ...


class ControllerView(NamedTuple):
    """The state that one request is answered from.

    Attributes:
        clock: sessions and intervals go by its monotonic time.
        image: the metadata after everything that was appended so far, committed or not.
        quorum: the quorum's node; the first record of the result lands at its `end_offset`.
        version: of the request.
        partition_quota: counts the partitions that the request creates or deletes; None if the client has no limit.
        principal: who sent the request.
    """

    image: MetadataImage
    settings: ControllerSettings
    configs: ConfigResolver
    clock: Clock
    random: random.Random
    quorum: RaftNode
    sessions: BrokerSessions
    version: int = 0
    partition_quota: PartitionQuota | None = None
    principal: Principal = ANONYMOUS

    @property
    def now_ms(self) -> int:
        """The monotonic time."""
        return self.clock.monotonic_ms()

    def apply_partition_change_quota(self, partitions: int) -> ApiError:
        """Count partitions against the client's quota; an error when it is exhausted."""
        if self.partition_quota is None:
            return NO_ERROR
        try:
            self.partition_quota.record(partitions)
        except KafkaError as error:
            return ApiError(error.code, error.message)
        return NO_ERROR

    def new_uuid(self) -> Uuid:
        """Return a fresh id: not a reserved one, and printed without a leading dash, which tools misread."""
        while True:
            uuid = Uuid(self.random.randbytes(16))
            # 62 (binary 111110) is the first sextet that base64url prints as a dash.
            if uuid not in RESERVED_UUIDS and uuid[0] >> 2 != 62:
                return uuid
