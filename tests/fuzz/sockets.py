"""Hostile connections to a broker's process, and one client that works beside them.

The hostile connections send requests that no client sends, change bytes, stop in the middle of a frame, never read, and hang up; some of
them at a listener with TLS and logins (`secured`). The other client measures how long an answer takes, writes records and commits all the
while.

Oracles
- The process lives, and logs neither an error nor a traceback nor an exception that nobody retrieved.
- Every request of the other client is answered without an error; in the end it reads what it wrote.
- Memory stays within `GROWTH_MB` of what the idle broker had.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from barnabas.protocol.api_keys import api, request_header_version, response_header_version
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    OffsetCommitRequest,
    ProduceRequest,
)
from barnabas.records.builder import build_batch
from barnabas.records.record import iter_records
from barnabas.records.record_batch import iter_batches
from tests.fuzz.frames import TOPICS, Frames
from tests.fuzz.secured import SecuredListener

OTHERS_TOPIC, OTHERS_GROUP = "of-another-client", "group-of-another-client"
CONNECTIONS = 24
SECURED_CONNECTIONS = 8
GROWTH_MB = 250
ANSWER_SECONDS = 30.0
BAD_LINE = re.compile(r"Traceback|never retrieved| ERROR |Exception in callback")
RETRIABLE = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)


@dataclass
class Report:
    """What a run saw.

    Attributes:
        frames: sent by the hostile connections.
        logins: frames of those at the listener with TLS and logins that ended without an error.
        written: records of the other client.
        waits: seconds of each of its answers.
        idle_mb, end_mb: resident memory before and after.
    """

    frames: int = 0
    logins: int = 0
    written: int = 0
    waits: list[float] = field(default_factory=list)
    idle_mb: float = 0.0
    end_mb: float = 0.0

    @property
    def longest_wait(self) -> float:
        return max(self.waits)


class Client:
    """One request at a time over a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, port: int) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, request: Any, version: int) -> Any:
        """A round trip. Raises TimeoutError after `ANSWER_SECONDS`."""
        key = request.API_KEY
        head = struct.pack(">hhih", key, version, 1, 5) + b"other" + bytes(request_header_version(key, version) >= 2)
        body = head + request.encode(version)
        self._writer.write(struct.pack(">i", len(body)) + body)
        async with asyncio.timeout(ANSWER_SECONDS):
            (size,) = struct.unpack(">i", await self._reader.readexactly(4))
            answer = await self._reader.readexactly(size)
        return api(key).response_class.decode(answer[4 + response_header_version(key, version) :], version)

    def close(self) -> None:
        self._writer.close()


async def attack(folder: Path, seed: int, frames: int) -> Report:
    """Start a broker, send so many hostile frames, and return what was seen. Raises AssertionError if an oracle fails."""
    random = Random(seed)
    secured = SecuredListener(folder, random)
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "log.dirs": str(folder / "data"),
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        **secured.settings,
    }
    file, log = folder / "server.properties", folder / "log"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    command = [sys.executable, "-m", "barnabas.main", "start", "--config", str(file)]
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=errors)
    try:
        assert process.stdout is not None
        # A line for each listener.
        ports = [int((await process.stdout.readline()).rpartition(b":")[2]) for _ in range(2)]
        report = await _run(process.pid, ports, random, frames, secured)
        assert process.returncode is None, "the broker has ended"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
    bad = [line for line in log.read_text(errors="replace").splitlines() if BAD_LINE.search(line)]
    assert not bad, bad[:5]
    assert report.end_mb - report.idle_mb < GROWTH_MB, report
    return report


async def _run(pid: int, ports: list[int], random: Random, frames: int, secured: SecuredListener) -> Report:
    port, secured_port = ports
    client = await Client.connect(port)
    topics = [
        CreateTopicsRequest.CreatableTopic(name=name, num_partitions=2, replication_factor=1)
        for name in (*TOPICS, OTHERS_TOPIC)
    ]
    created = await client.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
    assert not any(topic.error_code for topic in created.topics), created
    image = await client.ask(
        MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in TOPICS]), 12
    )
    report = Report(idle_mb=_resident_mb(pid))
    source = Frames(random, [topic.topic_id for topic in image.topics])
    left = iter(range(frames))
    done = asyncio.Event()
    await _find_coordinators(client)
    other = asyncio.create_task(_work(client, report, done))
    hostile = [_hostile(port, source, random, left, report) for _ in range(CONNECTIONS)]
    hostile += [_strange(secured_port, source, left, report, secured) for _ in range(SECURED_CONNECTIONS)]
    await asyncio.gather(*hostile)
    done.set()
    await other
    await _read_back(client, report.written)
    client.close()
    report.end_mb = _resident_mb(pid)
    return report


async def _hostile(port: int, source: Frames, random: Random, left: Any, report: Report) -> None:
    """Open one connection after the other; each does one kind of harm."""
    while next(left, None) is not None:
        report.frames += 1
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            await _harm(reader, writer, source, random, left, report)
        except (OSError, EOFError, TimeoutError):
            pass
        finally:
            writer.transport.abort()


async def _strange(port: int, source: Frames, left: Any, report: Report, secured: SecuredListener) -> None:
    """Open one connection after the other to the listener with TLS and logins."""
    while next(left, None) is not None:
        report.frames += 1
        with contextlib.suppress(OSError, EOFError, TimeoutError):
            report.logins += await secured.harm(port, source)


async def _harm(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    source: Frames,
    random: Random,
    left: Any,
    report: Report,
) -> None:
    kind = random.randrange(6)
    if kind == 0:
        # Bytes that are no frame: another protocol, a size that is absurd.
        writer.write(
            random.choice((b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\0", b"\xff" * 64, random.randbytes(200)))
        )
        await asyncio.wait_for(reader.read(1024), 0.2)
        return
    burst = random.randrange(1, 60)
    for _ in range(burst):
        if writer.transport.is_closing() or next(left, None) is None:
            return
        report.frames += 1
        frame = source.one()
        writer.write(struct.pack(">i", len(frame)) + frame)
        if kind == 1:
            # One at a time, as a client would.
            async with asyncio.timeout(0.5):
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                await reader.readexactly(size)
    if kind == 2:
        # The last frame stays unfinished.
        writer.write(struct.pack(">i", random.choice((100, 1 << 20, 90_000_000))) + bytes(random.randrange(3000)))
        await asyncio.wait_for(writer.drain(), 0.5)
    elif kind == 3:
        # Never reads, for a while.
        await asyncio.wait_for(writer.drain(), 0.5)
        await asyncio.wait_for(asyncio.Event().wait(), 0.2)
    elif kind == 4:
        await asyncio.wait_for(reader.read(1 << 20), 0.5)
    # Else: gone before any answer.


async def _find_coordinators(client: Client) -> None:
    """Wait until the internal topics are there. On a busy machine that takes longer than the attack."""
    for kind in (0, 1):
        while True:
            found = await client.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=[OTHERS_GROUP]), 6)
            if not found.coordinators[0].error_code:
                break
            assert found.coordinators[0].error_code in RETRIABLE, found


async def _work(client: Client, report: Report, done: asyncio.Event) -> None:
    """The other client: ask, write, commit, until the attack is over."""
    while not done.is_set():
        began = time.perf_counter()
        versions = await client.ask(ApiVersionsRequest(), 0)
        report.waits.append(time.perf_counter() - began)
        assert versions.error_code == 0
        await _write(client, report)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), 0.02)


async def _write(client: Client, report: Report) -> None:
    batch = bytes(build_batch([(0, None, b"value %d" % report.written, [])]))
    data = ProduceRequest.TopicProduceData(
        name=OTHERS_TOPIC, partition_data=[ProduceRequest.PartitionProduceData(index=0, records=batch)]
    )
    produced = await client.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]), 9)
    assert produced.responses[0].partition_responses[0].error_code == 0, produced
    report.written += 1
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=report.written, committed_metadata=""
    )
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=OTHERS_TOPIC, partitions=[partition])
    committed = await client.ask(
        OffsetCommitRequest(group_id=OTHERS_GROUP, generation_id_or_member_epoch=-1, topics=[topic]), 8
    )
    code = committed.topics[0].partitions[0].error_code
    assert code == 0 or code in RETRIABLE, committed


async def _read_back(client: Client, written: int) -> None:
    values: list[bytes] = []
    while len(values) < written:
        partition = FetchRequest.FetchPartition(partition=0, fetch_offset=len(values), partition_max_bytes=1 << 20)
        topic = FetchRequest.FetchTopic(topic=OTHERS_TOPIC, partitions=[partition])
        fetched = await client.ask(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=[topic]), 11)
        data = bytearray(fetched.responses[0].partitions[0].records or b"")
        assert data, fetched
        for position, _ in iter_batches(data):
            values += [bytes(record.value or b"") for record in iter_records(data, position)]
    assert values == [b"value %d" % index for index in range(written)]


def _resident_mb(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024
