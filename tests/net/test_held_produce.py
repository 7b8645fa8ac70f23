"""Produce requests of one connection, as the real handler and a real log see them: some wait before they have appended everything.

Each is appended as a whole before the next one, and the next one is appended before the first one's commits.
"""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.api import APIS
from barnabas.api.serving.context import RequestContext
from barnabas.api.serving.dispatch import Dispatcher
from barnabas.log.log_config import LogConfig
from barnabas.net.connection import Connection
from barnabas.net.listener import Listener
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import ApiVersionsRequest, ProduceRequest, ProduceResponse
from barnabas.records.compression import Compression
from barnabas.records.record import iter_records
from barnabas.turns import TURN, WRITE
from tests.net.test_connection_states import Transport
from tests.replication.following import batches_of
from tests.replication.hosting import NODE, Hosting, batch
from tests.short_turns import set_turn

VERSION = 9
FOLLOWER = 2
PARTITIONS = 4
MANY = 600
"""Records that the executor opens, because a compacted topic's records need keys."""

Batch = tuple[int, list[bytes]]
"""A partition, and the values of its records."""


class Peer:
    """A client's connection to a broker that leads the topic `t` with one follower."""

    def __init__(self, hosting: Hosting) -> None:
        self.hosting = hosting
        loop = hosting.loop
        hosting.create_topic(
            "t", PARTITIONS, replicas=(NODE, FOLLOWER), config=LogConfig(cleanup_policy=frozenset({"compact"}))
        )
        services = hosting.services
        services.apis, services.listener_kind = APIS, "broker"
        services.quotas, services.monotonic_ns = SimpleNamespace(is_enabled=False), lambda: 0
        dispatcher = Dispatcher(services)
        dispatcher._make_context = RequestContext
        listener = Listener(loop, max_idle_ms=-1)
        self.transport = Transport()
        self.connection = Connection(listener)
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]
        listener.serve(dispatcher)
        self.unsent = b""
        self.apart: list[tuple[asyncio.Future[Any], Callable[[], Any]]] = []
        loop.run_in_executor = self._hold  # type: ignore[method-assign]

    def _hold(self, executor: Any, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        future = self.hosting.loop.create_future()
        self.apart.append((future, partial(function, *arguments)))
        return future

    def work_apart(self) -> None:
        """Let the executor do what it was given."""
        work, self.apart = self.apart, []
        for future, function in work:
            if not future.done():
                future.set_result(function())

    def produce(self, number: int, *batches: Batch, acks: int = -1) -> None:
        """Send a request; its number is its correlation id."""
        data = [
            ProduceRequest.PartitionProduceData(
                index=index,
                records=batch(*values, compression=Compression.GZIP if len(values) > 1 else Compression.NONE),
            )
            for index, values in batches
        ]
        topic = ProduceRequest.TopicProduceData(name="t", partition_data=data)
        request = ProduceRequest(acks=acks, timeout_ms=1_000_000, topic_data=[topic])
        self._send(0, VERSION, number, request.encode(VERSION))

    def ask_for_versions(self, number: int) -> None:
        self._send(18, 0, number, ApiVersionsRequest().encode(0))

    def _send(self, key: int, version: int, number: int, body: bytes) -> None:
        tags = b"\0" if key == 0 else b""
        payload = struct.pack(">hhih", key, version, number, -1) + tags + body
        self.unsent += struct.pack(">i", len(payload)) + payload
        self.deliver()

    def deliver(self, most: int = 1 << 30) -> None:
        """Let the connection read what has been sent, while it reads."""
        while self.unsent and self.transport.is_reading and most > 0:
            buffer = self.connection.get_buffer(-1)
            size = min(len(buffer), len(self.unsent), most)
            buffer[:size] = self.unsent[:size]
            self.unsent = self.unsent[size:]
            most -= size
            self.connection.buffer_updated(size)

    def turns(self, count: int = 1) -> None:
        for _ in range(count):
            self.hosting.loop.run_until_complete(asyncio.sleep(0))
            self.deliver()

    def commit(self, index: int) -> None:
        """Let the follower have all records of a partition."""
        partition = self.hosting.replicas.partition("t", index)
        if partition.open_log is not None:
            partition.update_follower(FOLLOWER, partition.log.log_end_offset)
            self.hosting.replicas.high_watermark_moved(partition)

    def commit_all(self) -> None:
        for index in range(PARTITIONS):
            self.commit(index)
        self.turns(20)

    def values(self, index: int) -> list[bytes | None]:
        """Return the value of the first record of each batch of a partition."""
        partition = self.hosting.replicas.partition("t", index)
        if partition.open_log is None:
            return []
        return [next(iter(iter_records(each))).value for each in batches_of(partition.log).values()]

    @property
    def answers(self) -> list[tuple[int, bytes]]:
        """The number of each request that is answered, and the rest of its response."""
        found, at = [], 0
        while at < len(self.transport.written):
            size, number = struct.unpack_from(">ii", self.transport.written, at)
            found.append((number, self.transport.written[at + 8 : at + 4 + size]))
            at += 4 + size
        return found

    @property
    def answered(self) -> list[int]:
        return [number for number, _ in self.answers]


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    hosting = Hosting(tmp_path)
    made = Peer(hosting)
    yield made
    made.connection.connection_lost(None)
    hosting.close()


def test_a_request_is_appended_before_the_commits_of_the_one_that_held_the_order(peer: Peer) -> None:
    peer.produce(1, (0, [b"a"]), (1, [b"a"] * MANY))
    peer.produce(2, (0, [b"b"]), (1, [b"b"]))
    peer.turns(3)
    assert (peer.values(0), peer.values(1)) == ([b"a"], []), "the executor opens the large batch"
    assert not peer.transport.is_reading, "the client may leave before its records are appended"
    peer.work_apart()
    peer.turns(3)
    assert (peer.values(0), peer.values(1)) == ([b"a", b"b"], [b"a", b"b"])
    assert (peer.answered, peer.transport.is_reading) == ([], True)
    peer.produce(3, (0, [b"c"]))
    assert peer.values(0) == [b"a", b"b", b"c"]
    peer.commit(1)
    peer.turns(3)
    assert peer.answered == []
    peer.commit(0)
    peer.turns(3)
    assert peer.answered == [1, 2, 3]


def test_a_request_that_waits_for_turns_holds_the_order_and_releases_it(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_turn(monkeypatch, WRITE)
    peer.produce(1, *((index, [b"a"]) for index in range(PARTITIONS)))
    peer.produce(2, *((index, [b"b"]) for index in range(PARTITIONS)))
    seen = set()
    for _ in range(50):
        first, second = ([name in peer.values(index) for index in range(PARTITIONS)] for name in (b"a", b"b"))
        assert all(first) or not any(second), "one overtakes the other"
        seen.add((sum(first), sum(second)))
        peer.turns()
    assert seen & {(some, 0) for some in range(1, PARTITIONS)}, "the first one waits"
    assert seen & {(PARTITIONS, some) for some in range(1, PARTITIONS)}, "the second one waits"
    assert (PARTITIONS, PARTITIONS) in seen
    assert peer.answered == []
    peer.commit_all()
    assert peer.answered == [1, 2]


def test_another_request_waits_for_the_response(peer: Peer) -> None:
    peer.produce(1, (1, [b"a"] * MANY), (0, [b"a"]))
    peer.ask_for_versions(2)
    peer.produce(3, (0, [b"b"]))
    peer.work_apart()
    peer.turns(5)
    assert peer.values(0) == [b"a"]
    assert peer.answered == []
    peer.commit_all()
    assert peer.answered == [1, 2]
    assert peer.values(0) == [b"a", b"b"]
    peer.commit_all()
    assert peer.answered == [1, 2, 3]


def test_a_client_that_leaves_after_the_release_leaves_its_records(peer: Peer) -> None:
    peer.produce(1, (0, [b"a"]), (1, [b"a"] * MANY))
    peer.work_apart()
    peer.turns(3)
    assert peer.transport.is_reading
    peer.connection.eof_received()
    peer.turns(3)
    assert (peer.values(0), peer.values(1)) == ([b"a"], [b"a"])
    assert peer.hosting.replicas.delayed_produces.watched == 0


@pytest.mark.parametrize("turn", [1, 60, 600, TURN])
@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_reordered(peer: Peer, monkeypatch: pytest.MonkeyPatch, seed: int, turn: int) -> None:
    set_turn(monkeypatch, turn)
    rng = random.Random(seed)
    count = 12
    expected: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    acknowledged = []
    for number in range(count):
        value = b"%d" % number
        wanted = rng.sample(range(PARTITIONS), rng.randint(1, PARTITIONS))
        acks = rng.choice((-1, -1, -1, 1, 0))
        batches: list[Batch] = [(index, [value] * (MANY if rng.random() < 0.3 else 1)) for index in wanted]
        for index in wanted:
            expected[index].append(value)
        if acks:
            acknowledged.append(number)
        if rng.random() < 0.5:
            peer.turns(rng.randint(1, 4))
        peer.produce(number, *batches, acks=acks)
    while peer.answered != acknowledged or [peer.values(index) for index in range(PARTITIONS)] != expected:
        for index in range(PARTITIONS):
            values = peer.values(index)
            assert values == expected[index][: len(values)]
        assert peer.answered == acknowledged[: len(peer.answered)]
        what = rng.random()
        if what < 0.3:
            peer.work_apart()
        elif what < 0.5:
            peer.commit(rng.randrange(PARTITIONS))
        peer.turns()
    for _, body in peer.answers:
        response = ProduceResponse.decode(body[1:], VERSION)
        assert {answer.error_code for answer in response.responses[0].partition_responses} == {ErrorCode.NONE}
