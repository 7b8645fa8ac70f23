"""Requests as a fuzzer sends them: fields that mean something to the node, fields that do not, and changed bytes."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

from barnabas.api import APIS
from barnabas.protocol.api_keys import ApiKey, api, request_header_version
from barnabas.protocol.errors import EncodeError
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from tests.fuzz.messages import Names, Values, mutated

TOPICS = ("t", "u", "compacted")
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"

NOT_SENT = frozenset(
    {
        # Administration that may well end the other client's data or its connection: it is no bug if it does.
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ALTER_CONFIGS,
    }
)
OF_ANY_TOPIC = frozenset(
    {ApiKey.DELETE_TOPICS, ApiKey.DELETE_RECORDS, ApiKey.CREATE_PARTITIONS, ApiKey.INCREMENTAL_ALTER_CONFIGS}
)
"""Administration that is allowed for internal topics too, and then ends what groups know."""


class Frames:
    """A stream of requests, without their length.

    Args:
        random: the only source of chance.
        topic_ids: of topics that exist.
    """

    def __init__(self, random: Random, topic_ids: list[bytes]) -> None:
        self.random = random
        self._count = 0
        self._kept: dict[int, list[bytes]] = {}
        self._values = Values(random, _names(random, topic_ids))

    def one(self) -> bytes:
        """Return one that leaves another client's data alone, whatever the node makes of it."""
        while not _is_harmless(frame := self._any()):
            pass
        return frame

    def _any(self) -> bytes:
        self._count += 1
        if self.random.random() < 0.02:
            return self.random.randbytes(self.random.randrange(64))
        key = self.random.choice(list(APIS))
        kept = self._kept.setdefault(key, [])
        frame = self._whole(key)
        if self.random.random() < 0.5:
            return mutated(self.random, frame, kept)
        if len(kept) < 50:
            kept.append(frame)
        return frame

    def _whole(self, key: int) -> bytes:
        served = APIS[key]
        version = self.random.randint(served.min_served, served.max_version)
        head = struct.pack(">hhih", key, version, self._count, 4) + b"fuzz"
        if request_header_version(key, version) >= 2:
            head += b"\0"
        while True:
            try:
                return head + self._values.message(api(key).request_class, version).encode(version)  # type: ignore[no-any-return]
            except EncodeError:
                continue


def _is_harmless(frame: bytes) -> bool:
    """Return whether the other client's data must survive the frame; a changed header makes it another request."""
    key = int.from_bytes(frame[:2])
    return key not in NOT_SENT and not (key in OF_ANY_TOPIC and b"__" in frame)


def _names(random: Random, topic_ids: list[bytes]) -> Names:
    groups: list[Any] = ["g", "h", "s", "k", ""]
    topics: list[Any] = [*TOPICS, "absent", "new", "__consumer_offsets"]
    ids: list[Any] = [*topic_ids, bytes(16), b"\x07" * 16]
    members: list[Any] = [MEMBER, "", "m"]
    producers: list[dict[str, Any]] = [
        {},
        {"producer_id": 0, "producer_epoch": 0, "base_sequence": 0},
        {"producer_id": 0, "producer_epoch": 0, "base_sequence": 0, "transactional": True},
    ]
    batches: list[Any] = [
        bytes(build_batch([(0, b"k", b"v", [("h", b"x")])], compression=codec, **extra))
        for codec in Compression
        for extra in producers
    ]
    batches += [mutated(random, random.choice(batches), batches) for _ in range(60)]
    return {
        "name": topics,
        "topic": topics,
        "topic_name": topics,
        "topic_names": topics,
        "topics": topics,
        "subscribed_topic_names": topics,
        "source_topics": topics,
        "topic_id": ids,
        "group_id": groups,
        "groups": groups,
        "group_ids": groups,
        "groups_names": groups,
        "coordinator_keys": [*groups, f"g:{MEMBER}:0", "tx"],
        "key": [*groups, "tx"],
        "transactional_id": ["tx", "ty", None],
        "v3_and_below_transactional_id": ["tx", "ty"],
        "transactional_ids": ["tx", "ty"],
        "member_id": members,
        "group_instance_id": [None, None, "i0"],
        "instance_id": [None, None, "i0"],
        "member_epoch": [0, 1, 2, -1, -2],
        "share_session_epoch": [0, 1, 2, -1],
        "session_epoch": [0, 1, -1],
        "generation_id": [-1, 0, 1, 2],
        "producer_id": [0, 1, 2, -1],
        "producer_epoch": [0, 1, -1],
        "partition": [0, 0, 1, 2, -1],
        "partition_index": [0, 0, 1, 2, -1],
        "partition_indexes": [0, 0, 1, 2],
        "partitions": [0, 0, 1, 2],
        "index": [0, 0, 1, 2],
        "protocol_type": ["consumer", "consumer", "connect"],
        "protocol_name": ["range"],
        "metadata": [b"\0\0\0\0\0\1\0\1t\0\0\0\0", b"", b"\0\3"],
        "session_timeout_ms": [10_000, 6000],
        "rebalance_timeout_ms": [10_000, 1000],
        "transaction_timeout_ms": [1000, 60_000],
        "timeout_ms": [1000, 0, 30_000],
        "max_wait_ms": [0, 100, 1000],
        "min_bytes": [0, 1],
        "max_bytes": [1 << 20, 0, 1],
        "partition_max_bytes": [1 << 20, 0],
        "acks": [1, -1, 0],
        "records": batches,
        "num_partitions": [1, 2, -1, 0],
        "count": [1, 2, 3],
        "replication_factor": [1, -1, 2],
        "validate_only": [False, True],
        "resource_type": [2, 32],
        "resource_name": ["t", "u", "g", "absent"],
        "config_name": ["retention.ms", "cleanup.policy", "bogus"],
        "configuration_keys": ["retention.ms", "bogus"],
        "config_operation": [0, 1, 2, 3],
        "value": ["1000", "compact", None, "x"],
        "entity_type": ["client-id", "user"],
        "entity_name": ["fuzz", "u"],
        "generation_id_or_member_epoch": [-1, 0, 1],
        "replica_id": [-1],
        "isolation_level": [0, 1],
        "timestamp": [-1, -2, -3, 0, 1_700_000_000_000],
        "acknowledge_types": [0, 1, 2, 3, 4],
        "subscribed_topic_regex": [None, "t.*", "(", "(a+)+$"],
        "assignment": [b"", b"part"],
    }
