"""One-record Produce requests over plain sockets, one in flight per connection: what a request costs, with no client in the way.

Produce version 7 with acks=all; the request bytes are made once. Latencies are microseconds from before `send` to after `recv`.
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


def connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), 10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def measure(
    port: int, topic: str, connections: int, seconds: float, partitions: int = 6
) -> tuple[int, float, list[float]]:
    """Keep one request in flight on each connection; returns requests answered, seconds, and sorted latencies in µs."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(connect(port)) for _ in range(connections)]
        poll = select.epoll()
        stack.callback(poll.close)
        frames = [produce_frame(topic, partition, b"x" * 100) for partition in range(partitions)]
        sent: dict[int, tuple[socket.socket, bytes, float]] = {}
        clock = time.perf_counter
        began = clock()
        for index, connection in enumerate(sockets):
            poll.register(connection, select.EPOLLIN)
            sent[connection.fileno()] = (connection, frames[index % partitions], clock())
            connection.sendall(frames[index % partitions])
        latencies: list[float] = []
        while (now := clock()) - began < seconds:
            for number, _ in poll.poll(1):
                connection, frame, at = sent[number]
                answer = connection.recv(4096)
                now = clock()
                error_at = 8 + 4 + 2 + len(topic) + 4 + 4
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
