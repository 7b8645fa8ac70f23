"""Requests into the dispatcher of a whole node, in virtual time: nothing sleeps, and a waiting request is answered or cancelled.

Oracles
- `dispatch` returns, or refuses the request and says why; nothing else leaves it.
- A response decodes as its API's response, and no error code in it is UNKNOWN_SERVER_ERROR.
- The node logs no error, and no exception is left that nobody retrieved.
- Another client's records and committed offsets are what they were.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import struct
import time
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

from barnabas.api import APIS
from barnabas.api.dispatch import RefusedRequest
from barnabas.protocol.api_keys import ApiKey, api, request_header_version, response_header_version
from barnabas.protocol.errors import ErrorCode, EncodeError
from barnabas.protocol.message import Struct
from barnabas.protocol.messages import (
    FetchRequest,
    FindCoordinatorRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
)
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from tests.api.quiet_clock import QuietClock
from tests.api.serving import Serving
from tests.fuzz.messages import Names, Values, mutated

SETTINGS = {
    "offsets_topic_num_partitions": "1",
    "transaction_state_log_num_partitions": "1",
    "share_coordinator_state_topic_num_partitions": "1",
    "group_initial_rebalance_delay_ms": "0",
}
OTHERS_TOPIC, OTHERS_GROUP = "of-another-client", "group-of-another-client"
OTHERS_RECORDS = 50
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
WAITING_MAX = 200
PAUSE_EVERY = 500
"""Requests between two passes of virtual time, in which what waits is answered."""

PAUSE_SECONDS = 60.0

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


class _Errors(logging.Handler):
    """Keeps what the node logs as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


class FuzzedNode:
    """A node, another client's data on it, and a stream of requests.

    Attributes:
        sent, answered, refused, silent: numbers of requests.
        slowest: API and seconds of the longest `dispatch`.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = Random(seed)
        self.sent = self.answered = self.refused = self.silent = 0
        self.slowest = ("", 0.0)
        self.slow: dict[str, float] = {}
        self.node = Serving(folder, loop=QuietClock(), **SETTINGS)
        self.node.loop.set_exception_handler(self._unretrieved)
        self._errors = _Errors()
        logging.getLogger("barnabas").addHandler(self._errors)
        self._failures: list[str] = []
        self._waiting: dict[asyncio.Future[Any], Any] = {}
        self._frames: dict[int, list[bytes]] = {}
        self._prepare()
        self._values = Values(self.random, self._names())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        logging.getLogger("barnabas").removeHandler(self._errors)
        self.node.close()

    def _unretrieved(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._failures.append(f"{context.get('message')}: {context.get('exception')!r}")

    def _prepare(self) -> None:
        node = self.node
        for name in ("t", "u", OTHERS_TOPIC):
            node.create_topic(name, 2, retention_ms="-1", retention_bytes="-1")
        node.create_topic("compacted", 1, cleanup_policy="compact")
        topics = node.server.services.image().topics.by_name
        self.topic_ids = {name: bytes(topics[name].topic_id) for name in ("t", "u", "compacted")}
        self._others_id = bytes(topics[OTHERS_TOPIC].topic_id)
        for index in range(OTHERS_RECORDS):
            batch = build_batch([(0, b"k", b"value %d" % index, [])])
            data = ProduceRequest.TopicProduceData(
                name=OTHERS_TOPIC, partition_data=[ProduceRequest.PartitionProduceData(index=0, records=bytes(batch))]
            )
            answer = node.ask(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data]), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0, answer
        for kind, coordinator_key in ((0, OTHERS_GROUP), (1, "tx"), (2, f"g:{MEMBER}:0")):
            node.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=[coordinator_key]), 6)
        self._pass_time(1)
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=17, committed_metadata="kept"
        )
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=OTHERS_TOPIC, partitions=[partition])
        assert self._commit(topic) == 0

    def _commit(self, topic: OffsetCommitRequest.OffsetCommitRequestTopic) -> int:
        answer = self.node.ask(
            OffsetCommitRequest(group_id=OTHERS_GROUP, generation_id_or_member_epoch=-1, topics=[topic]), 8
        )
        return int(answer.topics[0].partitions[0].error_code)

    def _names(self) -> Names:
        groups: list[Any] = ["g", "h", "s", "k", ""]
        topics: list[Any] = ["t", "u", "compacted", "absent", "new", "__consumer_offsets"]
        ids: list[Any] = [*self.topic_ids.values(), bytes(16), b"\x07" * 16]
        members: list[Any] = [MEMBER, "", "m"]
        batches: list[Any] = [
            bytes(build_batch([(0, b"k", b"v", [("h", b"x")])], compression=codec, **extra))
            for codec in Compression
            for extra in (
                {},
                {"producer_id": 0, "producer_epoch": 0, "base_sequence": 0},
                {"producer_id": 0, "producer_epoch": 0, "base_sequence": 0, "transactional": True},
            )
        ]
        batches += [mutated(self.random, self.random.choice(batches), batches) for _ in range(60)]
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

    def one(self) -> None:
        """Send one request, now and then whole and right, mostly not."""
        key = self.random.choice(list(APIS))
        if self.random.random() < 0.02:
            self._send(self.random.randbytes(self.random.randrange(64)))
        elif key not in NOT_SENT:
            frames = self._frames.setdefault(key, [])
            frame = self._frame(key)
            if self.random.random() < 0.5:
                frame = mutated(self.random, frame, frames)
            elif len(frames) < 50:
                frames.append(frame)
            if _is_harmless(frame):
                self._send(frame)
        if self.sent % PAUSE_EVERY == 0 or len(self._waiting) > WAITING_MAX:
            self.pause()

    def _frame(self, key: int) -> bytes:
        served = APIS[key]
        version = self.random.randint(served.min_served, served.max_version)
        head = struct.pack(">hhih", key, version, self.sent, 4) + b"fuzz"
        if request_header_version(key, version) >= 2:
            head += b"\0"
        while True:
            try:
                return head + self._values.message(api(key).request_class, version).encode(version)  # type: ignore[no-any-return]
            except EncodeError:
                continue

    def _send(self, frame: bytes) -> None:
        self.sent += 1
        self.last = frame

        async def dispatched() -> Any:
            return self.node.dispatcher.dispatch(self.node.connection, memoryview(bytearray(frame)))

        began = time.perf_counter()
        try:
            context, result = self.node.loop.run_until_complete(dispatched())
        except RefusedRequest:
            self.refused += 1
            return
        took = time.perf_counter() - began
        if took > self.slowest[1]:
            self.slowest = (repr(context), took)
        if isinstance(result, asyncio.Future):
            self._waiting[result] = context
        else:
            self._check(context, result)

    def _check(self, context: Any, output: Any) -> None:
        if output is None:
            self.silent += 1
            return
        self.answered += 1
        whole = b"".join(part if isinstance(part, bytearray) else part.read() for part in output)
        body = whole[8 + response_header_version(context.api_key, context.version) :]
        response = api(context.api_key).response_class.decode(body, context.version)
        assert not _is_unknown_server_error(response), f"{context!r}: {response}"

    def pause(self) -> None:
        """Let time pass until what waits is answered, or its client has gone; then look at the oracles."""
        self._pass_time(PAUSE_SECONDS)
        waiting, self._waiting = self._waiting, {}
        for future in waiting:
            if not future.done() and self.random.random() < 0.5:
                future.cancel()
        self._pass_time(0.001)
        for future, context in waiting.items():
            if not future.done():
                self._waiting[future] = context
                continue
            try:
                self._check(context, self.node.dispatcher.complete(context, future))
            except RefusedRequest:
                self.refused += 1
        self.check()

    def check(self) -> None:
        """Raise AssertionError if an oracle has failed."""
        gc.collect()
        self._pass_time(0.001)
        assert not self._failures, self._failures[:3]
        assert not self._errors.lines, self._errors.lines[:3]

    def check_others_data(self) -> None:
        """The other client reads what it wrote, and its group begins where it committed."""
        partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topic = FetchRequest.FetchTopic(topic=OTHERS_TOPIC, partitions=[partition])
        answer = self.node.ask(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=[topic]), 11)
        data = bytearray(answer.responses[0].partitions[0].records)
        values = [
            bytes(record.value or b"") for position, _ in iter_batches(data) for record in iter_records(data, position)
        ]
        assert values == [b"value %d" % index for index in range(OTHERS_RECORDS)], answer
        wanted = OffsetFetchRequest.OffsetFetchRequestTopic(name=OTHERS_TOPIC, partition_indexes=[0])
        committed = self.node.ask(OffsetFetchRequest(group_id=OTHERS_GROUP, topics=[wanted]), 7)
        assert committed.error_code == 0, committed
        found = committed.topics[0].partitions[0]
        assert (found.committed_offset, found.metadata) == (17, "kept"), committed

    def _pass_time(self, seconds: float) -> None:
        self.node.loop.run_until_complete(asyncio.sleep(seconds))


def _is_harmless(frame: bytes) -> bool:
    """Return whether the other client's data must survive the frame; a changed header makes it another request."""
    key = int.from_bytes(frame[:2])
    return key not in NOT_SENT and not (key in OF_ANY_TOPIC and b"__" in frame)


def _is_unknown_server_error(message: object) -> bool:
    if isinstance(message, Struct):
        return getattr(message, "error_code", 0) == ErrorCode.UNKNOWN_SERVER_ERROR or any(
            _is_unknown_server_error(getattr(message, name)) for name in message.FIELDS
        )
    return isinstance(message, list) and any(map(_is_unknown_server_error, message))
