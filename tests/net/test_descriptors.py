"""Descriptors: the connections' share, and connections beyond it."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import threading
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.net.descriptors import Descriptors
from tests.net.listening import connect, echo, listening, next_response, on_both_loops, until
from tests.net.scripted_dispatcher import METADATA, request
from tests.process.process import Node


@pytest.mark.parametrize(
    ("soft", "for_logs", "expected"),
    [(200, 100, 52), (64, 32, 16), (1024, 512, 384), (20_000, 10_000, 9_744), (1 << 20, 500_000, 548_320), (4, 2, 1)],
)
def test_the_connections_get_what_the_logs_and_the_rest_leave(
    monkeypatch: pytest.MonkeyPatch, soft: int, for_logs: int, expected: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    assert Descriptors.of_this_process(for_logs).limit == expected


def test_without_a_limit_of_the_system_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert Descriptors.of_this_process(500_000).limit >= 1 << 31


@on_both_loops
async def test_connections_beyond_the_share_are_closed_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    descriptors = Descriptors(3)
    async with listening(echo, descriptors=descriptors) as (listener, _):
        clients = [await connect(listener) for _ in range(3)]
        await until(lambda: listener.connection_count == 3)
        for _ in range(20):
            reader, writer = await connect(listener)
            assert await reader.read() == b""
            writer.close()
        assert (listener.rejected, descriptors.used) == (20, 3)
        for number, (reader, writer) in enumerate(clients):
            writer.write(request(METADATA, number))
            assert (await next_response(reader))[0] == number
        clients[0][1].close()
        await until(lambda: descriptors.used == 2)
        reader, writer = await connect(listener)
        writer.write(request(METADATA, 7))
        assert (await next_response(reader))[0] == 7
        for _, writer in clients[1:]:
            writer.close()
        writer.close()
        await until(lambda: descriptors.used == 0)
    # Another test's embedded broker may log from its own thread.
    ours = [record.getMessage() for record in caplog.records if record.thread == threading.get_ident()]
    first, last = [line for line in ours if "Refused a connection" in line]
    assert "the 3 descriptors for connections are in use" in first
    assert "(19 lines about refused connections in the last minute" in last


@pytest.mark.slow
def test_idle_connections_leave_the_logs_their_descriptors(tmp_path: Path) -> None:
    partitions, errors = 40, []

    def delivered(error: KafkaError | None, _: Message) -> None:
        errors.append(error)

    with Node(tmp_path / "data", launcher=("bash", "-c", 'ulimit -n 200; exec "$0" "$@"')) as node:
        address = {"bootstrap.servers": node.bootstrap_servers, "log_level": 0}
        admin = AdminClient(address)
        admin.create_topics([NewTopic("w", partitions)])["w"].result()
        producer = Producer({**address, "message.timeout.ms": 30_000})
        producer.produce("w", b"x", partition=0)
        assert producer.flush(30) == 0
        idle = [socket.create_connection((node.host, node.port)) for _ in range(260)]
        for partition in range(partitions):
            producer.produce("w", b"x", partition=partition, on_delivery=delivered)
        assert producer.flush(60) == 0
        assert errors == [None] * partitions
        assert len(os.listdir(f"/proc/{node.process.pid}/fd")) < 200
        for connection in idle:
            connection.close()
        assert node.signal(signal.SIGTERM) == 0
        log = node.log_path.read_text()
    refused = [line for line in log.splitlines() if "Refused a connection" in line]
    assert 1 <= len(refused) <= 2, log
    assert re.search(r"\(\d+ lines about refused connections", refused[-1])
