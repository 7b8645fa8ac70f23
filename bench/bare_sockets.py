"""Small requests over plain sockets, one in flight per connection: what a request costs, with no client in the way.

Produce version 7 with one record and acks=all, OffsetCommit version 2 with one offset; the request bytes are made once. Latencies are
microseconds from before `send` to after `recv`.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from contextlib import ExitStack

from barnabas.records.builder import build_batch


def produce_frame(topic: str, partition: int, value: bytes) -> bytes:
    batch = bytes(build_batch([(int(time.time() * 1000), None, value, [])]))
    name = topic.encode()
    header = struct.pack(">hhih", 0, 7, 1, -1)
    body = struct.pack(">hhiih", -1, -1, 30_000, 1, len(name)) + name
    body += struct.pack(">iii", 1, partition, len(batch)) + batch
    return struct.pack(">i", len(header) + len(body)) + header + body


def commit_frame(group: str, topic: str, partition: int, offset: int) -> bytes:
    """A commit as of a consumer that assigns its partitions itself: no member, no generation."""

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    body = (
        struct.pack(">hhih", 8, 2, 1, -1) + text(group) + struct.pack(">i", -1) + text("") + struct.pack(">qi", -1, 1)
    )
    body += text(topic) + struct.pack(">iiqh", 1, partition, offset, -1)
    return struct.pack(">i", len(body)) + body


def find_coordinator_frame(group: str) -> bytes:
    """Asking for a group's coordinator creates the topic that the commits go to."""
    body = struct.pack(">hhihh", 10, 0, 1, -1, len(group)) + group.encode()
    return struct.pack(">i", len(body)) + body


def connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), 10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def produce_requests(port: int, topic: str, connections: int, seconds: float) -> tuple[int, float, list[float]]:
    """One-record Produce requests to six partitions; see `measure`."""
    frames = [produce_frame(topic, partition, b"x" * 100) for partition in range(6)]
    return measure(port, frames, 8 + 4 + 2 + len(topic) + 4 + 4, connections, seconds)


def commit_requests(port: int, topic: str, groups: int, seconds: float) -> tuple[int, float, list[float]]:
    """Offset commits of many groups, each with a connection of its own; see `measure`."""
    frames = [commit_frame(f"bench-{group}", topic, group % 6, 1) for group in range(groups)]
    return measure(port, frames, 8 + 4 + 2 + len(topic) + 4 + 4, groups, seconds)


def measure(
    port: int, frames: list[bytes], error_at: int, connections: int, seconds: float
) -> tuple[int, float, list[float]]:
    """Keep one request in flight on each connection; returns requests answered, seconds, and sorted latencies in µs.

    Args:
        frames: each connection sends one of them, always the same.
        error_at: where the error code stands in an answer.
    """
    with ExitStack() as stack:
        sockets = [stack.enter_context(connect(port)) for _ in range(connections)]
        poll = select.epoll()
        stack.callback(poll.close)
        sent: dict[int, tuple[socket.socket, bytes, float]] = {}
        clock = time.perf_counter
        began = clock()
        for index, connection in enumerate(sockets):
            poll.register(connection, select.EPOLLIN)
            sent[connection.fileno()] = (connection, frames[index % len(frames)], clock())
            connection.sendall(frames[index % len(frames)])
        latencies: list[float] = []
        while (now := clock()) - began < seconds:
            for number, _ in poll.poll(1):
                connection, frame, at = sent[number]
                answer = connection.recv(4096)
                now = clock()
                if not answer or answer[error_at : error_at + 2] != b"\0\0":
                    raise RuntimeError(f"the broker answered {answer!r}")
                latencies.append((now - at) * 1e6)
                sent[number] = (connection, frame, clock())
                connection.sendall(frame)
        took = clock() - began
    latencies.sort()
    return len(latencies), took, latencies


def percentile(sorted_values: list[float], share: float) -> float:
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * share))]
