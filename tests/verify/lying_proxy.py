"""A proxy between clients and a broker that lies: the broker is right, and what clients see is not.

It speaks Kafka's framing, rewrites addresses so that clients come back to it, and hands each request to a :class:`Lie`, which may
change it or answer it by itself; everything else passes through byte by byte.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import struct
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from barnabas.protocol import messages
from barnabas.protocol.api_keys import ApiKey, request_header_version, response_header_version
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.message import Message
from barnabas.protocol.primitives import skip_tags

ADDRESSED: dict[ApiKey, type[Message]] = {
    ApiKey.METADATA: messages.MetadataResponse,
    ApiKey.FIND_COORDINATOR: messages.FindCoordinatorResponse,
    ApiKey.DESCRIBE_CLUSTER: messages.DescribeClusterResponse,
}


class Lie:
    """Does nothing wrong; subclasses do.

    Attributes:
        told: how often it lied.
    """

    def __init__(self, seed: int = 0) -> None:
        self.rng = random.Random(seed)
        self.told = 0

    def now_and_then(self, chance: float) -> bool:
        if self.rng.random() >= chance:
            return False
        self.told += 1
        return True

    requests: dict[int, Any] = {}
    """The classes of the requests it looks at, by API key."""

    def change(self, request: Any) -> Any:
        """Changes a request in place; returns a response to give instead of the broker's, or None."""
        return None


class DropsRecords(Lie):
    """Acknowledges records of transactions without handing them on."""

    requests = {ApiKey.PRODUCE: messages.ProduceRequest}

    def change(self, request: Any) -> Any:
        if request.transactional_id is None or not self.now_and_then(0.15):
            return None
        response = messages.ProduceResponse
        return response(responses=[
            response.TopicProduceResponse(name=topic.name, partition_responses=[
                response.PartitionProduceResponse(index=each.index, base_offset=-1) for each in topic.partition_data
            ]) for topic in request.topic_data
        ])  # fmt: skip


class CommitsAborts(Lie):
    """Asks for a commit where an abort was asked for."""

    requests = {ApiKey.END_TXN: messages.EndTxnRequest}

    def change(self, request: Any) -> Any:
        if not request.committed and self.now_and_then(0.7):
            request.committed = True


class AbortsCommits(Lie):
    """Asks for an abort where a commit was asked for."""

    requests = {ApiKey.END_TXN: messages.EndTxnRequest}

    def change(self, request: Any) -> Any:
        if request.committed and self.now_and_then(0.15):
            request.committed = False


class ReadsUncommitted(Lie):
    """Drops the isolation level of fetches."""

    requests = {ApiKey.FETCH: messages.FetchRequest}

    def change(self, request: Any) -> Any:
        if request.isolation_level and self.now_and_then(1):
            request.isolation_level = 0


class SkipsRecords(Lie):
    """Fetches from two records further on, now and then."""

    requests = {ApiKey.FETCH: messages.FetchRequest}

    def change(self, request: Any) -> Any:
        for topic in request.topics:
            for partition in topic.partitions:
                if partition.fetch_offset > 5 and self.now_and_then(0.05):
                    partition.fetch_offset += 2


class ForgetsOffsets(Lie):
    """Acknowledges a group's offsets in a transaction without handing them on; now and then members join again, and look at them."""

    requests = {
        ApiKey.TXN_OFFSET_COMMIT: messages.TxnOffsetCommitRequest,
        ApiKey.HEARTBEAT: messages.HeartbeatRequest,
    }

    def change(self, request: Any) -> Any:
        if isinstance(request, messages.HeartbeatRequest):
            return (
                messages.HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
                if self.rng.random() < 0.5
                else None
            )
        if not self.now_and_then(0.7):
            return None
        response = messages.TxnOffsetCommitResponse
        return response(topics=[
            response.TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=[
                response.TxnOffsetCommitResponsePartition(partition_index=each.partition_index) for each in topic.partitions
            ]) for topic in request.topics
        ])  # fmt: skip


class LyingProxy:
    """The proxy, on a loop in a thread of its own.

    Args:
        target: ``host:port`` of the broker.
        lie: what it gets wrong.
    """

    def __init__(self, target: str, lie: Lie) -> None:
        host, _, port = target.rpartition(":")
        self.target = host, int(port)
        self.lie = lie
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run)

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._end())

    async def _end(self) -> None:
        pending = asyncio.all_tasks() - {asyncio.current_task()}
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream, to_broker = await asyncio.open_connection(*self.target)
        except OSError:
            writer.close()
            return
        waiting: asyncio.Queue[tuple[int, int, bytes | None]] = asyncio.Queue()
        ways = asyncio.gather(self._requests(reader, to_broker, waiting), self._responses(upstream, writer, waiting))
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await ways
        ways.cancel()
        for each in (writer, to_broker):
            each.close()

    async def _requests(self, reader: asyncio.StreamReader, broker: asyncio.StreamWriter, waiting: Any) -> None:
        while True:
            frame = await read_frame(reader)
            key, version, correlation = struct.unpack_from(">hhi", frame)
            made = None
            if key in self.lie.requests and key != ApiKey.API_VERSIONS:
                start = body_start(frame, key, version)
                request = self.lie.requests[key].decode(memoryview(frame)[start:], version)
                response = self.lie.change(request)
                if response is not None:
                    made = encode(correlation, key, version, response)
                else:
                    out = bytearray(frame[:start])
                    request.write(out, version)
                    frame = bytes(out)
            await waiting.put((key, version, made))
            if made is None:
                broker.write(struct.pack(">i", len(frame)) + frame)
                await broker.drain()

    async def _responses(self, upstream: asyncio.StreamReader, client: asyncio.StreamWriter, waiting: Any) -> None:
        while True:
            key, version, frame = await waiting.get()
            if frame is None:
                frame = await read_frame(upstream)
                if key in ADDRESSED:
                    frame = self._readdressed(frame, key, version)
            client.write(struct.pack(">i", len(frame)) + frame)
            await client.drain()

    def _readdressed(self, frame: bytes, key: int, version: int) -> bytes:
        start = skip_tags(frame, 4, len(frame)) if response_header_version(key, version) else 4
        response = ADDRESSED[ApiKey(key)].decode(memoryview(frame)[start:], version)
        for each in addressed(response):
            if each.port > 0:
                each.host, each.port = "127.0.0.1", self.port
        return encode(struct.unpack_from(">i", frame)[0], key, version, response)


def addressed(response: Any) -> Iterator[Any]:
    """Whatever in a response has a host and a port."""
    for name in ("brokers", "coordinators"):
        yield from getattr(response, name, None) or ()
    if hasattr(response, "port"):
        yield response


def encode(correlation: int, key: int, version: int, response: Any) -> bytes:
    out = bytearray(struct.pack(">i", correlation))
    if response_header_version(key, version):
        out.append(0)
    response.write(out, version)
    return bytes(out)


def body_start(frame: bytes, key: int, version: int) -> int:
    (length,) = struct.unpack_from(">h", frame, 8)
    start = 10 + max(0, length)
    return skip_tags(frame, start, len(frame)) if request_header_version(key, version) >= 2 else start


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)
