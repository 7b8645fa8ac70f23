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
import time
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

from barnabas.api.serving.dispatch import RefusedRequest
from barnabas.protocol.api_keys import api, response_header_version
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Struct
from barnabas.protocol.messages import (
    FetchRequest,
    FindCoordinatorRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
)
from barnabas.records.builder import build_batch
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from tests.api.quiet_clock import QuietClock
from tests.api.served_node import Serving
from tests.fuzz.frames import MEMBER, TOPICS, Frames

SETTINGS: dict[str, Any] = {
    "offsets_topic_num_partitions": "1",
    "transaction_state_log_num_partitions": "1",
    "share_coordinator_state_topic_num_partitions": "1",
    "group_initial_rebalance_delay_ms": "0",
}
OTHERS_TOPIC, OTHERS_GROUP = "of-another-client", "group-of-another-client"
OTHERS_RECORDS = 50
WAITING_MAX = 200
PAUSE_EVERY = 500
"""Requests between two passes of virtual time, in which what waits is answered."""

PAUSE_SECONDS = 60.0


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
        self._prepare()
        self._frames = Frames(self.random, list(self.topic_ids.values()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.getLogger("barnabas").removeHandler(self._errors)
        self.node.close()

    def _unretrieved(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._failures.append(f"{context.get('message')}: {context.get('exception')!r}")

    def _prepare(self) -> None:
        node = self.node
        for name in (*TOPICS, OTHERS_TOPIC):
            node.create_topic(name, 2, cleanup_policy="compact" if name == "compacted" else "delete")
        topics = node.server.services.image().topics.by_name
        self.topic_ids = {name: bytes(topics[name].topic_id) for name in TOPICS}
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

    def one(self) -> None:
        """Send one request, now and then whole and right, mostly not."""
        self._send(self._frames.one())
        if self.sent % PAUSE_EVERY == 0 or len(self._waiting) > WAITING_MAX:
            self.pause()

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
        gone = [future for future in waiting if not future.done() and self.random.random() < 0.5]
        for future in gone:
            future.cancel()
        self._pass_time(0.001)
        for future, context in waiting.items():
            if not future.done():
                self._waiting[future] = context
                continue
            try:
                self._check(context, future.result())
            except RefusedRequest:
                self.refused += 1
            except asyncio.CancelledError:
                assert future in gone, f"{context!r}: the handler was cancelled, and the client waits"
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


def _is_unknown_server_error(message: object) -> bool:
    if isinstance(message, Struct):
        return getattr(message, "error_code", 0) == ErrorCode.UNKNOWN_SERVER_ERROR or any(
            _is_unknown_server_error(getattr(message, name)) for name in message.FIELDS
        )
    return isinstance(message, list) and any(map(_is_unknown_server_error, message))
