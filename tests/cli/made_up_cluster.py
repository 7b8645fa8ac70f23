"""A cluster that does not exist: fixed answers at the seam of the administrative client, for screens of commands.

It has what makes tables wide: names of member ids as clients choose them, partitions nobody committed in, a transaction that hangs, and a
group whose members try to drive the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest import mock

from barnabas.cli.dead_letters import find_topics
from barnabas.cli.session import Session
from barnabas.client.admin import (
    EARLIEST,
    ClusterDescription,
    CommittedOffset,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    CreatedTopic,
    Cut,
    GroupDescription,
    GroupListing,
    GroupMember,
    GroupRebalance,
    LogDir,
    Node,
    OffsetAndTimestamp,
    PartitionMetadata,
    ProducerState,
    Quorum,
    QuorumReplica,
    Quota,
    Reassignment,
    ReplicaSize,
    ResourceType,
    TopicMetadata,
    TopicPartition,
    TransactionDescription,
    TransactionListing,
)
from barnabas.client.configs import ConfigSynonym
from barnabas.client.delegation_tokens import DelegationToken
from barnabas.client.group_offsets import ShareOffset
from barnabas.client.groups import MovedPartition
from barnabas.client.offsets import READ_COMMITTED
from barnabas.client.partition_descriptions import PartitionDescription
from barnabas.client.program import Program, SeenProgram
from barnabas.client.scram_users import ScramUser
from barnabas.client.share_states import ShareState
from barnabas.protocol.errors import ErrorCode, KafkaError, error_for
from barnabas.protocol.ordered_growth import Generation
from barnabas.protocol.primitives import Uuid, uuid_from_str
from barnabas.protocol.state_batches import RecordState, StateBatch
from barnabas.retries.headers import FailureHeaders, write_failure
from barnabas.retries.record import Record
from barnabas.retries.redrive import DeadLetter, DeadLetterTopic
from barnabas.security.acls import AclBinding, AclFilter, AclOperation, PatternType, Permission
from barnabas.security.acls import ResourceType as SecuredType
from barnabas.security.principal import Principal
from barnabas.spark.source.commit_mark import CommitMark

NOW_MS = 1_795_000_000_000
TOPIC_ID = Uuid(bytes(range(16)))
LEADERLESS = 5
HOSTILE = "g\x1b]0;owned\x07\x1b[2J\n2026 INFO forged\u202e"
W1 = "w1-6fe42f54-bd34-4c0e-9a51-3a1c7be1e0a4"
W2 = "w2-2cd913f9-a26e-498e-b7e7-38aa09fbe0ce"
NODE = Node(1, "localhost", 9092)
PARTITIONS = {"orders": 6, "payments": 1, "com.example.warehouse.inventory-adjustments.v2": 12}
DEAD_LETTERS = {"orders.dlq": 2, "com.example.warehouse.inventory-adjustments.v2-dlq": 1}
INTERNAL = "__consumer_offsets"
GROUPS = {
    "orders-app": ("Stable", "classic", "consumer"),
    "dispatch": ("Stable", "share", "share"),
    "audit-of-warehouse-inventory-adjustments": ("PreparingRebalance", "classic", "consumer"),
    "quiet": ("Empty", "consumer", "consumer"),
    HOSTILE: ("Empty", "classic", "consumer"),
}


def _topic(name: str) -> TopicMetadata:
    found = [
        PartitionMetadata(
            partition=each,
            leader=1 if each != LEADERLESS else -1,
            leader_epoch=3,
            replicas=[1, 2, 3],
            isr=[1, 2] if each != LEADERLESS else [],
            offline=[] if each != LEADERLESS else [1, 2],
        )
        for each in range((PARTITIONS | DEAD_LETTERS)[name])
    ]
    return TopicMetadata(name, TOPIC_ID, False, found)


def _described(found: PartitionMetadata) -> PartitionDescription:
    without = found.partition == LEADERLESS
    return PartitionDescription(
        leader=found.leader,
        leader_epoch=found.leader_epoch,
        replicas=found.replicas,
        isr=found.isr,
        elr=[1, 2] if without else [],
        last_known_elr=[1] if without else [],
        offline=found.offline,
    )


def _member(member_id: str, client_id: str, *partitions: int) -> GroupMember:
    return GroupMember(
        member_id, None, client_id, "/192.168.10.21", [TopicPartition("orders", each) for each in partitions]
    )


MEMBERS = {
    "orders-app": [_member(W1, "w1", 0, 1, 2), _member(W2, "w2", 3, 4, 5)],
    "dispatch": [_member("fNbTq2eXQKqU6fN0m8yTzw", "packer", 0), _member("Zl7oY0q3TrGx2vJ5k1sWbA", "packer", 0)],
}
REBALANCES = [
    GroupRebalance(
        1, f"member {W1} joined", W1, "w1", NOW_MS - 90_000, NOW_MS - 87_000, False, 1,
        [MovedPartition("orders", each, "", W1) for each in range(6)],
    ),
    GroupRebalance(
        2, f"member {W2} joined", W2, "w2", NOW_MS - 60_000, NOW_MS - 58_734, False, 2,
        [MovedPartition("orders", each, W1, W2) for each in (3, 4, 5)],
    ),
    GroupRebalance(3, "session of member w9 ended", "w9", "w9", NOW_MS - 1_000, None, False, None, []),
]  # fmt: skip
OWNER = TransactionDescription(
    "billing-7", "Ongoing", 73, 2, 900_000, NOW_MS - 760_000, [TopicPartition("orders", each) for each in range(6)], 1
)


def _cut(topics: Mapping[str, int], offset: int, at_ms: int | None = None, isolation: str = "read_committed") -> Cut:
    offsets = {TopicPartition(name, each): offset + each for name in topics for each in range(topics[name])}
    ids = dict.fromkeys(topics, "AAECAwQFBgcICQoLDA0ODw")
    return Cut(offsets, ids, isolation, NOW_MS, at_ms)


CUTS = {
    "before-release-2026.11": _cut({"orders": 4, "payments": 1}, 1_100_000, NOW_MS - 3_600_000),
    "old": _cut({"orders": 2, "refunds": 1}, 9_000, isolation="read_uncommitted"),
}


def _missing(code: ErrorCode, message: str) -> KafkaError:
    return error_for(code, message)


class MadeUpAdmin:
    """Answers as `Admin` does."""

    def __init__(self, partitions: Mapping[str, int] = PARTITIONS) -> None:
        self.partitions = partitions

    def __enter__(self) -> MadeUpAdmin:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def list_owners(self, topics: Iterable[TopicMetadata]) -> dict[str, str]:
        return {}

    def list_growth(self, topics: Iterable[str]) -> dict[str, tuple[Generation, ...]]:
        return {}

    def list_topics(self, *, internal: bool = False) -> list[TopicMetadata]:
        return [_topic(name) for name in sorted(self.partitions)]

    def describe_topics(self, names: Iterable[str]) -> dict[str, Any]:
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return {
            name: TopicMetadata(name, TOPIC_ID, True, [])
            if name == INTERNAL
            else _topic(name)
            if name in self.partitions
            else _missing(missing, f"topic {name} does not exist")
            for name in names
        }

    def describe_partitions(self, names: Iterable[str] | None = None) -> dict[TopicPartition, PartitionDescription]:
        return {
            TopicPartition(name, each.partition): _described(each)
            for name in names or sorted(PARTITIONS)
            for each in _topic(name).partitions
        }

    def create_topics(self, wanted: Iterable[Any], **_: object) -> dict[str, Any]:
        return {
            each.name: error_for(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {next(iter(each.configs))}")
            if each.configs
            else CreatedTopic(each.name, TOPIC_ID, 6, 3)
            for each in wanted
        }

    def delete_topics(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: None if name in PARTITIONS else found for name, found in self.describe_topics(names).items()}

    def create_partitions(self, totals: Mapping[str, int], **_: object) -> dict[str, Any]:
        return dict(totals)

    def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, isolation_level: int = 0
    ) -> dict[TopicPartition, Any]:
        def answer(where: TopicPartition, position: int) -> OffsetAndTimestamp | KafkaError:
            if where.partition == LEADERLESS:
                return error_for(ErrorCode.LEADER_NOT_AVAILABLE)
            if position == EARLIEST:
                return OffsetAndTimestamp(1_200_000, -1, -1)
            held_back = isolation_level == READ_COMMITTED and where == ("orders", 2)
            return OffsetAndTimestamp(1_284_009 if held_back else 1_288_210 + where.partition, -1, -1)

        return {where: answer(where, position) for where, position in wanted.items()}

    def describe_configs(self, resources: Iterable[ConfigResource], **asked: Any) -> dict[ConfigResource, Any]:
        return {each: _settings(each.type, **asked) for each in resources}

    def alter_configs(self, changes: Mapping[ConfigResource, Any], **_: object) -> dict[ConfigResource, Any]:
        return dict.fromkeys(changes)

    def describe_cluster(self) -> Any:
        return ClusterDescription(
            "AAECAwQFBgcICQoLDA0ODw",
            1,
            [NODE, Node(2, "kafka-2.warehouse.example.com", 9092)],
            [Node(3, "localhost", 9094)],
        )

    def describe_quorum(self) -> Quorum:
        directory = uuid_from_str("u0P3NAGpdjW-t4-QHdv0NQ")
        replicas = [
            QuorumReplica(1, 48_211, True, directory, NOW_MS, NOW_MS),
            QuorumReplica(101, 48_209, True, None, NOW_MS - 420, NOW_MS - 930),
            QuorumReplica(102, 31_007, True, directory, NOW_MS - 60_000, -1),
            QuorumReplica(2, 48_211, False, directory, NOW_MS - 400, NOW_MS - 400),
            QuorumReplica(3, -1, False),
        ]
        addresses = {1: "localhost:9093", 101: "controller-101.warehouse.example.com:9093", 102: "10.0.0.102:9093"}
        return Quorum(1, 7, 48_211, replicas, addresses)

    def describe_programs(self, controllers: Mapping[int, Any] | None = None) -> dict[int, SeenProgram]:
        kafka = SeenProgram(Program.KAFKA, supports=30)
        return {1: SeenProgram(Program.BARNABAS, supports=33), 2: kafka, **dict.fromkeys(controllers or (), kafka)}

    def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
        return {}

    def reassign(self, wanted: Mapping[TopicPartition, Sequence[int]], **_: object) -> dict[TopicPartition, Any]:
        return dict.fromkeys(wanted)

    def elect_preferred_leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Any]:
        return dict.fromkeys(partitions)

    def describe_log_dirs(self, broker_ids: Iterable[int] | None = None, **_: object) -> dict[int, list[LogDir]]:
        sizes = [ReplicaSize(TopicPartition("orders", each), 1_073_741_824 + each, 0, False) for each in range(6)]
        healthy = LogDir("/var/lib/kafka/data", None, sizes, 500_107_862_016, 381_554_061_312)
        failed = LogDir("/mnt/disk-2", error_for(ErrorCode.KAFKA_STORAGE_ERROR), [], -1, -1)
        return {each: [healthy] if each == 1 else [healthy, failed] for each in broker_ids or (1, 2)}

    def list_quotas(self) -> list[Quota]:
        return [
            Quota((("client-id", "reporting"),), {"consumer_byte_rate": 1_048_576.0}),
            Quota((("client-id", None), ("user", "alice@EXAMPLE.COM")), {"request_percentage": 12.5}),
            Quota((("ip", "192.168.10.21"),), {"connection_creation_rate": 20.0}),
        ]

    def alter_quotas(self, *_: object, **__: object) -> None:
        return None

    def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return dict(before)

    def delete_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, None]:
        return dict.fromkeys(partitions)

    def list_groups(self, **_: object) -> list[GroupListing]:
        return [
            GroupListing(name, protocol, state, kind, 1) for name, (state, kind, protocol) in sorted(GROUPS.items())
        ]

    def describe_groups(self, names: Iterable[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in names:
            if name not in GROUPS:
                found[name] = error_for(ErrorCode.GROUP_ID_NOT_FOUND, f"group {name} does not exist")
                continue
            state, kind, protocol = GROUPS[name]
            found[name] = GroupDescription(name, kind, protocol, state, "range", MEMBERS.get(name, []), NODE)
        return found

    def delete_groups(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: None if name in GROUPS else self.describe_groups([name])[name] for name in names}

    def group_rebalances(self, names: Iterable[str]) -> dict[str, Any]:
        return {
            name: REBALANCES if name == "orders-app" else [] if name in GROUPS else self.describe_groups([name])[name]
            for name in names
        }

    def list_group_offsets(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        if group_id not in GROUPS:
            return {}
        offsets = (1_288_210, 1_288_000, 1_200_000, 1_288_213)
        mark = str(CommitMark(NOW_MS - 2_063)) if group_id in ("quiet", HOSTILE) else ""
        return {TopicPartition("orders", each): CommittedOffset(offset, mark) for each, offset in enumerate(offsets)}

    def record_times(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {each: NOW_MS - 1_000 * (1_288_211 - offset) for each, offset in offsets.items()}

    def list_share_group_offsets(self, group_id: str) -> dict[TopicPartition, ShareOffset]:
        return {TopicPartition("orders", 0): ShareOffset(1_288_100, 103)}

    def read_share_states(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ShareState]:
        batches = (
            StateBatch(1_288_100, 1_288_102, RecordState.AVAILABLE, 2),
            StateBatch(1_288_103, 1_288_103, RecordState.ARCHIVED, 5),
            StateBatch(1_288_104, 1_288_109, RecordState.ACKNOWLEDGED, 1),
        )
        return dict.fromkeys(partitions, ShareState(1_288_100, batches))

    def alter_group_offsets(self, group_id: str, offsets: Mapping[TopicPartition, Any]) -> dict[TopicPartition, Any]:
        return dict.fromkeys(offsets)

    def list_transactions(self, *, producer_ids: Sequence[int] = (), **_: object) -> list[TransactionListing]:
        found = [
            TransactionListing("billing-7", 73, "Ongoing", 1),
            TransactionListing("warehouse-inventory-adjustments-writer-0", 4_611_686_018_427_387_904, "CompleteCommit", 1),
        ]  # fmt: skip
        return [each for each in found if not producer_ids or each.producer_id in producer_ids]

    def describe_transactions(self, names: Iterable[str]) -> dict[str, Any]:
        missing = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        return {
            name: OWNER if name == "billing-7" else _missing(missing, f"transactional id {name} does not exist")
            for name in names
        }

    def fence_producers(self, names: Iterable[str]) -> dict[str, Any]:
        return dict.fromkeys(names, (73, 3))

    def abort_transaction(self, *_: object) -> None:
        return None

    def describe_producers(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, list[ProducerState]]:
        return {each: [ProducerState(73, 2, 7, NOW_MS - 1, 0, 1_284_009)] for each in partitions}

    def list_acls(self, wanted: AclFilter) -> list[AclBinding]:
        return [each for each in ACLS if wanted.resource_type in (SecuredType.ANY, each.resource_type)]

    delete_acls = list_acls

    def create_acls(self, acls: Sequence[AclBinding]) -> list[None]:
        return [None for _ in acls]

    def list_users(self) -> list[ScramUser]:
        return [
            ScramUser("alice", "SCRAM-SHA-256", 8192),
            ScramUser("alice", "SCRAM-SHA-512", 4096),
            ScramUser(HOSTILE, "SCRAM-SHA-512", 16384),
        ]

    def describe_tokens(self, _: object) -> list[DelegationToken]:
        alice, job = Principal("User", "alice"), Principal("User", JOB.partition(":")[2])
        ends = (NOW_MS, NOW_MS + 86_400_000, NOW_MS + 604_800_000)
        return [DelegationToken("yxkRbfFqSEaVeMsrwbEk7A", bytes(range(64)), alice, job, (job,), *ends)]

    def list_cuts(self) -> dict[str, Cut]:
        return CUTS

    def take_cut(self, topics: Sequence[str], *, now_ms: int, at_ms: int | None = None, isolation: str) -> Cut:
        return _cut({name: PARTITIONS[name] for name in topics}, 1_288_210, at_ms, isolation)

    def store_cut(self, name: str, taken: Cut) -> None:
        return None

    def delete_cuts(self, names: Iterable[str], *, now_ms: int) -> None:
        return None

    def current_topic_ids(self, taken: Cut) -> dict[str, str | None]:
        return {name: taken.topic_ids[name] if name in PARTITIONS else None for name in taken.topic_ids}


def _acl(kind: SecuredType, name: str, principal: str, host: str, operation: AclOperation) -> AclBinding:
    pattern = PatternType.PREFIXED if name.endswith(".") else PatternType.LITERAL
    permission = Permission.DENY if principal == "User:*" else Permission.ALLOW
    return AclBinding(kind, name, pattern, principal, host, operation, permission)


JOB = "User:CN=nightly-job,OU=warehouse,O=example"
ACLS = [
    _acl(SecuredType.TOPIC, "orders", "User:alice", "*", AclOperation.READ),
    _acl(SecuredType.TOPIC, "com.example.warehouse.", JOB, "192.168.10.0/24", AclOperation.WRITE),
    _acl(SecuredType.GROUP, HOSTILE, "User:*", "*", AclOperation.ALL),
]


def _settings(kind: ResourceType, **asked: Any) -> list[ConfigEntry]:
    if kind == ResourceType.GROUP:
        default = ConfigSource.DEFAULT_CONFIG
        return [ConfigEntry("consumer.session.timeout.ms", "45000", default, False, False, "int", [], None)]
    dynamic = ConfigSource.DYNAMIC_TOPIC_CONFIG if kind == ResourceType.TOPIC else ConfigSource.DYNAMIC_BROKER_CONFIG
    entries = [
        ("cleanup.policy", "compact,delete", dynamic, "list", "What is done with old segments: delete, compact or both."),
        ("leader.replication.throttled.replicas", "0:1,1:1,2:1,3:1,4:1", dynamic, "list", "Replicas that are throttled."),
        ("message.timestamp.difference.max.ms", "9223372036854775807", ConfigSource.DEFAULT_CONFIG, "long", None),
        ("retention.ms", "604800000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, "long", "How long a record is kept."),
    ]  # fmt: skip
    names = asked.get("names")
    return [
        ConfigEntry(
            name, value, source, False, False, kind_of_value,
            [ConfigSynonym(f"log.{name}", "604800000", ConfigSource.STATIC_BROKER_CONFIG)] * 2 if asked.get("synonyms") else [],
            sentence if asked.get("documentation") else None,
        )
        for name, value, source, kind_of_value, sentence in entries
        if not names or name in names
    ]  # fmt: skip


class MadeUpReader:
    """Answers as `DeadLetterReader` does."""

    def redriven(self, topic: DeadLetterTopic) -> None:
        return None

    def read(self, topic: DeadLetterTopic, _: object) -> Iterator[DeadLetter]:
        if topic.name != "orders.dlq":
            failure = FailureHeaders(
                message="Offset delivery count exceeded the threshold.", group="dispatch", attempts=5
            )
            yield DeadLetter(Record(topic.name, 0, 0, NOW_MS - 86_400_000, None, b"{}"), failure, 0, False)
            return
        for number in range(4):
            first_ms = NOW_MS - 3_600_000 + 1_000 * number
            error, message = [
                ("requests.exceptions.ConnectTimeout", "HTTPSConnectionPool(host='cards.example.com', port=443): Max retries exceeded"),
                ("ValueError", HOSTILE),
            ][number % 2]  # fmt: skip
            failure = FailureHeaders(
                "orders",
                number,
                1_284_009 + number,
                first_ms,
                "orders-app",
                4,
                error,
                message,
                first_ms,
                first_ms + 671_204,
            )
            key = f"customer-{number}".encode()
            record = Record(topic.name, number % 2, 1_200_000 + number, first_ms, key, b"{}", write_failure(failure))
            yield DeadLetter(record, failure, 1_200_000, number < 2)


def pretend() -> ExitStack:
    """Return a context in which every command talks to the made-up cluster; those of `dlq` find two topics more."""
    stack = ExitStack()
    stack.enter_context(mock.patch.object(Session, "admin", return_value=MadeUpAdmin()))
    for module in ("dlq", "dlq_redrive", "dlq_purge"):
        stack.enter_context(mock.patch(f"barnabas.cli.{module}.opened", return_value=nullcontext(MadeUpReader())))
        stack.enter_context(mock.patch(f"barnabas.cli.{module}.find_topics", _found))
    return stack


def _found(admin: object, named: Iterable[str]) -> list[DeadLetterTopic]:
    return find_topics(MadeUpAdmin(PARTITIONS | DEAD_LETTERS), named)  # type: ignore[arg-type]


@contextmanager
def at_noon() -> Iterator[None]:
    """Make the commands' clock stand still."""
    still = SimpleNamespace(time=lambda: NOW_MS / 1000)
    with mock.patch("barnabas.cli.txn.time", still), mock.patch("barnabas.cli.spark.time", still):
        yield
